"""The history of pools: what served when, why, who asked, and on which evidence."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from paceline.api.status import Change
from paceline.cli.live.deployment import ObservedPool
from paceline.cli.live.wording import faster, marked, when

_COLUMNS = ("since", "pool", "how", "serves", "speed-up", "revision")
_GAP = "  "


def history_lines(pools: Sequence[ObservedPool]) -> RenderableType:
    """The changes pool by pool, the newest first, each with its reason below."""
    changes = [(pool, change) for pool in pools for change in pool.status.history]
    rows = [_cells(pool, change) for pool, change in changes]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    drawn: list[RenderableType] = [Text(_aligned(_COLUMNS, widths), style="dim")]
    for (_, change), cells in zip(changes, rows, strict=True):
        drawn += [Text(_aligned(cells, widths)), Padding(Text(_why(change)), (0, 0, 0, widths[0] + len(_GAP)))]
    return Group(*drawn)


def change_line(pool: ObservedPool, change: Change) -> str:
    """One change as one line."""
    asked = f", asked for by {change.request}" if change.request else ""
    time, _, *words, _ = _cells(pool, change)
    return " ".join(filter(None, (time, *words))) + asked


def _cells(pool: ObservedPool, change: Change) -> tuple[str, ...]:
    evidence = change.evidence
    emulated = evidence.run in pool.emulated
    speed = marked(faster(evidence.speedup), emulated=emulated, imported=evidence.imported)
    return when(change.time), pool.name, change.reason or "", change.arm or "nothing", speed, change.revision


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _why(change: Change) -> str:
    return "; ".join(_parts(change))


def _parts(change: Change) -> Iterator[str]:
    if change.message:
        yield change.message
    if change.evidence.run and change.evidence.run not in change.message:
        yield f"on the evidence of {change.evidence.run}"
    if change.request:
        yield f"asked for by {change.request}"
