"""The chart of `over_loads`: a line per arm, and where a schedule changes its depth."""

from collections.abc import Iterable, Iterator

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paceline.report.draw import COLOUR, FONT, arm_colour, svg, tooltip
from paceline.report.figures import axes_in
from paceline.report.model import RunView
from paceline.report.search_model import Throughput
from paceline.report.text import significant

_SIZE = (420.0, 280.0)
_HEAD = 22
"""Space above the axes for the depths of a schedule, in pixels."""


def draw_over_loads(run: RunView, of: Throughput) -> str:
    """Both axes are logarithmic: equal distances are equal factors."""

    def draw(figure: Figure) -> None:
        axes = axes_in(figure, 56, 40, 14, _HEAD if of.thresholds else 12)
        places = sorted({load for line in of.lines.values() for load in line})
        speeds = [speed for line in of.lines.values() for speed in line.values()]
        axes.set_xscale("log", base=2)
        apart = list(_apart(places))
        axes.set_xticks(apart, [str(place) for place in apart])
        axes.set_xlim(places[0] / 1.25, places[-1] * 1.25)
        axes.set_yscale("log")
        axes.set_ylim(min(speeds) / 1.15, max(speeds) * 1.15)
        ticks = list(_round_numbers(min(speeds) / 1.15, max(speeds) * 1.15))
        axes.set_yticks(ticks, [significant(tick) for tick in ticks])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks([], minor=True)
        axes.grid(axis="y", color=COLOUR["line"], linewidth=1)
        axes.set_axisbelow(True)
        axes.set_xlabel("concurrency", fontsize=FONT - 1)
        axes.set_ylabel("tokens/s", fontsize=FONT - 1)
        _schedule(axes, run, of)
        for arm, line in of.lines.items():
            colour = arm_colour(run.arms.index(arm))
            axes.plot(list(line), list(line.values()), color=colour, linewidth=1.8, zorder=3)
            for load, speed in line.items():
                tip = tooltip(f"{arm} at {load}: {significant(speed)} tokens/s")
                axes.plot([load], [speed], "o", color=colour, markersize=5.5, zorder=4, gid=tip)

    return svg(
        run,
        *_SIZE,
        draw,
        title=f"{of.dataset}: throughput over concurrency",
        description=" ".join(
            f"{arm} at {load}: {significant(speed)} tokens/s."
            for arm, line in of.lines.items()
            for load, speed in line.items()
        ),
    )


def _schedule(axes: Axes, run: RunView, of: Throughput) -> None:
    """A dashed line at each change of depth, with the new depth above."""
    for one in of.thresholds:
        colour = arm_colour(run.arms.index(one.arm)) if one.arm in run.arms else COLOUR["quiet"]
        low, high = axes.get_xlim()
        if not low < one.batch_size < high:
            continue
        tip = tooltip(f"{one.arm}: {_depth(one.steps)} from {one.batch_size} requests on")
        axes.axvline(one.batch_size, color=colour, linewidth=1.4, ls=(0, (4, 3)), zorder=2, gid=tip)
        axes.annotate(
            _depth(one.steps), (one.batch_size, 1), (2, 3), xycoords=("data", "axes fraction"),
            textcoords="offset points", fontsize=FONT - 2, color=colour, annotation_clip=False,
        )  # fmt: skip


def _depth(steps: int) -> str:
    return f"depth {steps}" if steps else "off"


def _apart(places: Iterable[int]) -> Iterator[int]:
    """Skips thresholds whose number would overlap the previous one."""
    last = 0.0
    for place in places:
        if place > 1.15 * last:
            yield place
            last = place


def _round_numbers(low: float, high: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten."""
    power = 10.0**-3
    while power <= high:
        yield from (step * power for step in (1, 2, 5) if low <= step * power <= high)
        power *= 10
