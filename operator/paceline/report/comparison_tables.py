"""The tables of a comparison, and what explains them; HTML and Markdown share them."""

from collections.abc import Callable, Sequence

from paceline.core import Bounds
from paceline.report.comparison import between
from paceline.report.comparison_model import ChangeRow, Comparison, Differs, Moved, Speed
from paceline.report.tables import Cell, Table
from paceline.report.text import change, interval, number, ratio, workload

CHANGES = (
    "Each ratio is over the baseline of its own run. With {confidence} confidence all changes on this page lie within "
    "their bounds."
)
CAUSE = (
    "A change is one of the speed-up between these two runs. Whether the image made it, or another of the differences "
    "listed below, no interval says."
)
ACCEPTANCE = (
    "Tokens a verify step gives, with the change held against the same confidence. It counts tokens, so neither the "
    "clock nor the node is in it."
)
ABSOLUTE = (
    "Output tokens per second, in small figures the least and the most of the rounds. The two runs had other pods, "
    "perhaps another node, and another hour: nothing here was measured together, so these columns may be read and not "
    "be subtracted."
)


def says(of: Comparison) -> str:
    return CHANGES.format(confidence=f"{of.confidence:.0%}")


def tone(of: Comparison) -> str:
    """bad where any speed-up fell, good where all that moved rose."""
    moved = set(of.moved.values())
    return "bad" if Moved.FELL in moved else "good" if Moved.ROSE in moved else ""


def speed_ups(of: Comparison) -> Table:
    """Both ratios and the change."""
    return _changes(of.speed_ups, ratio)


def acceptance(of: Comparison) -> Table:
    """The same of acceptance lengths."""
    return _changes(of.acceptance, lambda value, digits: f"{value:.{digits}f}")


def _changes(rows: Sequence[ChangeRow], say: Callable[[float, int], str]) -> Table:
    def own(bounds: Bounds | None) -> Cell:
        return Cell(text=say(bounds.ratio, 3), note=interval(bounds, 3)) if bounds else Cell(text="–")

    cells = tuple(
        (
            Cell(text=row.arm),
            Cell(text=workload(row.workload)),
            Cell(text=row.moved, tone=row.moved),
            own(row.first),
            own(row.second),
            Cell(text=change(row.change.ratio - 1)) if row.change else Cell(text="–"),
            Cell(text=between(row.change) if row.change else _few(row)),
        )
        for row in rows
    )
    head = ("Arm", "Workload", "Shown", "Then", "Now", "Change", "Within")
    return Table(head=head, words=3, rows=cells)


def _few(row: ChangeRow) -> str:
    return f"{row.rounds[0]} and {row.rounds[1]} rounds"


def absolute(of: Comparison) -> Table:
    """Side by side, and nothing computed from both."""
    rows = tuple(
        (Cell(text=row.workload), Cell(text=row.arm), _speed(row.first), _speed(row.second)) for row in of.absolute
    )
    return Table(head=("Workload", "Arm", "Then", "Now"), words=2, rows=rows)


def _speed(speed: Speed | None) -> Cell:
    if speed is None:
        return Cell(text="–")
    return Cell(text=number(speed.typical), note=f"{number(speed.least)}–{number(speed.most)}")


def differs(rows: Sequence[Differs]) -> Table:
    """Facts that are not the same of both."""
    cells = tuple((Cell(text=row.name), Cell(text=row.first or "–"), Cell(text=row.second or "–")) for row in rows)
    return Table(head=("", "Then", "Now"), words=3, rows=cells)
