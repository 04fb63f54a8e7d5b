"""The chart of `trade_off`: to the right one user is faster, upwards all users together are."""

from matplotlib.figure import Figure

from paceline.report.draw import COLOUR, FONT, arm_colour, svg, tooltip
from paceline.report.figures import axes_in
from paceline.report.model import RunView, TradeOff
from paceline.report.text import significant

_SIZE = (420.0, 280.0)
ABOVE = 1.12
"""Margin beyond the largest value, for the label at its dot."""


def draw_trade_off(run: RunView, of: TradeOff) -> str:
    """A line per arm from load to load; each dot is labelled with its concurrency."""

    def draw(figure: Figure) -> None:
        axes = axes_in(figure, 52, 40, 14, 12)
        loads = [load for line in of.lines.values() for load in line]
        axes.set_xlim(0, ABOVE * max(load.per_user for load in loads))
        axes.set_ylim(0, ABOVE * max(load.per_gpu for load in loads))
        axes.locator_params(axis="both", nbins=6)
        axes.grid(color=COLOUR["line"], linewidth=1)
        axes.set_axisbelow(True)
        axes.set_xlabel("tokens/s per user", fontsize=FONT - 1)
        axes.set_ylabel("tokens/s per GPU", fontsize=FONT - 1)
        for arm, line in of.lines.items():
            colour = arm_colour(run.arms.index(arm))
            axes.plot([load.per_user for load in line], [load.per_gpu for load in line], color=colour, linewidth=1.8)
            for load in line:
                place = (load.per_user, load.per_gpu)
                tip = tooltip(
                    f"{arm} at {load.concurrency}: {significant(load.per_gpu)} tokens/s per GPU, "
                    f"{significant(load.per_user)} per user"
                )
                axes.plot(*([x] for x in place), "o", color=colour, markersize=5.5, zorder=4, gid=tip)
                axes.annotate(
                    str(load.concurrency), place, (5, 4), textcoords="offset points", fontsize=FONT - 2, color=colour
                )

    return svg(
        run,
        *_SIZE,
        draw,
        title=f"{of.dataset}: throughput over latency",
        description="Tokens per second per GPU and per user. "
        + " ".join(
            f"{arm} at {load.concurrency}: {significant(load.per_gpu)} and {significant(load.per_user)}."
            for arm, line in of.lines.items()
            for load in line
        ),
    )
