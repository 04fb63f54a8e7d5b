"""The charts of a run, as SVGs for a page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paceline.report.draw import COLOUR, FONT, arm_colour, svg, tooltip
from paceline.report.model import MEANS, CandidateView, Curve, EffectView, RunView, SeriesView, Shown
from paceline.report.text import Family, change, interval_text, ratio_text, significant, workload_text

TONE = {Shown.KEPT: COLOUR["good"], Shown.BROKEN: COLOUR["bad"], Shown.OPEN: COLOUR["open"]}
FACE = {Shown.KEPT: COLOUR["good"], Shown.BROKEN: COLOUR["bad"], Shown.OPEN: COLOUR["paper"]}
"""Filled if the interval shows something: colour is not the only sign."""


def axes_in(figure: Figure, left: float, bottom: float, right: float, top: float) -> Axes:
    """Axes with these margins, in pixels."""
    width, height = (72 * size for size in figure.get_size_inches())
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def _fitting(text: str, pixels: float) -> str:
    """Shortened in the middle if too long; its end is a concurrency."""
    most = int(pixels / (0.62 * FONT))
    return text if len(text) <= most else f"{text[: most - 6]}…{text[-5:]}"


# Speed-ups: dots and intervals.


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Layout of a chart of ratios: a row's words are beside or above its bar."""

    width: float
    left: float
    right: float
    row: float
    words: float
    """Space for words above a row's bar."""


WIDE = Layout(width=860, left=170, right=170, row=30, words=0)
NARROW = Layout(width=350, left=6, right=6, row=52, words=22)
BOTTOM, TOP, HEAD, GAP = 54, 4, 34, 6
_KEY = 48
"""Space between the axes and the legend below."""
AT_SIDE: dict[str, Any] = {
    "xycoords": ("axes fraction", "data"),
    "textcoords": "offset points",
    "annotation_clip": False,
}


def forest(run: RunView, layout: Layout, title: str = "Speed-up of every candidate over the baseline") -> str:
    """Every candidate's ratio to the baseline with its interval, and the gate's thresholds. A different title changes
    the SVG's ids: a page may have both."""
    key = ("shown above the line", "below", "neither") if run.asks else ("shown to be faster", "slower", "neither")
    return _rows_of_bars(run, _best_first(run), layout, "baseline", title, key)


def _rows_of_bars(
    run: RunView,
    candidates: Sequence[CandidateView],
    layout: Layout,
    at_one: str,
    title: str,
    key: tuple[str, str, str],
) -> str:
    """A block per candidate, a bar per effect; `at_one` is the text at the ratio 1, `key` the meaning of green, red and
    hollow dots."""
    blocks = [candidate for candidate in candidates if candidate.effects]
    tall = sum(HEAD + layout.row * len(candidate.effects) for candidate in blocks)

    def draw(figure: Figure) -> None:
        axes = axes_in(figure, layout.left, BOTTOM, layout.right, TOP)
        ticks = _ratios_across(axes, [effect for candidate in blocks for effect in candidate.effects])
        axes.set_ylim(tall, 0)
        y = 0.0
        for candidate in blocks:
            place = (6 - layout.left, 0)
            axes.annotate(
                candidate.name, (0, y + HEAD / 2), place, va="center", weight="bold", size=FONT + 1, **AT_SIDE
            )
            y += HEAD
            for effect in candidate.effects:
                bottom = y + layout.row - (GAP if layout.words else 0)
                _ground(axes, effect, ticks, y + layout.words, bottom)
                if candidate is blocks[0] and effect in candidate.effects[:2] and not layout.words:
                    _named(axes, effect, y, at_one if effect is candidate.effects[0] else "")
                _bar(axes, effect, (y + layout.words + bottom) / 2)
                _words(axes, effect, y + (layout.words or layout.row) / 2, layout)
                y += layout.row
        _key(axes, key, layout)

    return svg(
        run,
        layout.width,
        tall + TOP + BOTTOM,
        draw,
        title=title,
        description=" ".join(
            f"{c.name}, {workload_text(e.workload)}: {ratio_text(e.bounds.ratio)}, {interval_text(e.bounds)}."
            for c in blocks
            for e in c.effects
        ),
    )


def _key(axes: Axes, key: tuple[str, str, str], layout: Layout) -> None:
    x = 6 - layout.left
    for shown, word in zip((Shown.KEPT, Shown.BROKEN, Shown.OPEN), key, strict=True):
        word = f"{'○' if shown is Shown.OPEN else '●'} {word}"
        axes.annotate(word, (0, 0), (x, -_KEY), xycoords="axes fraction", textcoords="offset points", color=TONE[shown])
        x += 0.55 * FONT * len(word) + 14


def _best_first(run: RunView) -> tuple[CandidateView, ...]:
    """The candidates of a comparison, or a search's arms as the rows of one block."""
    if run.search is None:
        return run.candidates
    means = tuple(replace(one.mean, workload=one.name) for one in run.candidates if one.mean)
    return (CandidateView(name="Best first", outcome="", reason="", effects=means, margin=None),)


def _ratios_across(axes: Axes, effects: Sequence[EffectView]) -> list[float]:
    """Scales the axis to all effects, the baseline and the thresholds; intervals beyond fourfold are cut. Returns the
    ticks."""
    ratios = [x for e in effects for x in (e.bounds.lower, e.bounds.upper, e.threshold or 1)]
    low, high = _reach(ratios, 0.06)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = _ticks(low, high, 6)
    axes.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks([])
    return ticks


def _reach(ratios: Sequence[float], room: float) -> tuple[float, float]:
    """The range of the baseline and the ratios, cut at fourfold, with this margin at both ends."""
    inside = [1.0, *(min(max(x, 0.25), 4.0) for x in ratios)]
    beyond = max(max(inside) / min(inside), 1.02) ** room
    return min(inside) / beyond, max(inside) * beyond


def _ticks(low: float, high: float, most: int) -> list[float]:
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / s <= most)
    return [round(n * step, 2) for n in range(math.ceil(low / step), math.floor(high / step) + 1) if n > 0]


def _ground(axes: Axes, effect: EffectView, ticks: Sequence[float], top: float, bottom: float) -> None:
    """The background of a bar: round ratios, the baseline, and the range beyond the threshold, if there is one."""
    high = axes.get_xlim()[1]
    for tick in ticks:
        axes.plot([tick, tick], [top, bottom], color=COLOUR["line"], linewidth=1, zorder=1)
    axes.plot([1, 1], [top, bottom], color=COLOUR["quiet"], linewidth=1.2, zorder=2)
    if effect.threshold is None:
        return
    axes.fill_between([effect.threshold, high], top, bottom, color=COLOUR["good"], alpha=0.07, linewidth=0, zorder=0)
    axes.plot(
        [effect.threshold] * 2, [top + 2, bottom - 2], color=COLOUR["ink"], linewidth=1.4, ls=(0, (3, 2)), zorder=2
    )


def _named(axes: Axes, effect: EffectView, y: float, at_one: str) -> None:
    """Labels the threshold at its first bar, and the ratio 1 at the top."""
    at: dict[str, Any] = {"textcoords": "offset points", "size": FONT - 2, "annotation_clip": False}
    if effect.threshold is not None:
        low = effect.threshold < 1
        place, across, down = ((-4, -6), "right", "center") if low else ((3, 3), "left", "bottom")
        axes.annotate(f"> {ratio_text(effect.threshold)}", (effect.threshold, y), place, ha=across, va=down, **at)
    if at_one:
        axes.annotate(at_one, (1, y), (-3, 3), ha="right", va="bottom", color=COLOUR["quiet"], **at)


def _bar(axes: Axes, effect: EffectView, y: float) -> None:
    bounds, tone, (low, high) = effect.bounds, TONE[effect.shown], axes.get_xlim()
    tip = tooltip(f"{workload_text(effect.workload)}: {ratio_text(bounds.ratio, 3)}, {interval_text(bounds, 3)}")
    ends = [max(bounds.lower, low), min(bounds.upper, high)]
    if ends[0] < ends[1]:
        axes.plot(ends, [y, y], color=tone, linewidth=5, alpha=0.4, zorder=3, gid=tip)
    for cut, at, marker in ((bounds.lower < low, low, "<"), (bounds.upper > high, high, ">")):
        if cut:
            axes.plot([at], [y], marker=marker, color=tone, markersize=6, clip_on=False, zorder=4, gid=tip)
    if low < bounds.ratio < high:
        axes.plot(
            [bounds.ratio], [y], marker="D" if effect.workload in MEANS else "o", markersize=8, markeredgewidth=1.6,
            color=tone, markerfacecolor=FACE[effect.shown], zorder=5, gid=tip,
        )  # fmt: skip


def _words(axes: Axes, effect: EffectView, y: float, layout: Layout) -> None:
    bounds, weight = effect.bounds, "bold" if effect.workload in MEANS else "normal"
    right, room = layout.right - 2, layout.left if layout is WIDE else layout.width - 155
    side: dict[str, Any] = {"va": "center", **AT_SIDE}
    axes.annotate(
        _fitting(workload_text(effect.workload), room), (0, y), (6 - layout.left, 0), ha="left", weight=weight, **side
    )
    axes.annotate(interval_text(bounds, 3), (1, y), (right, 0), ha="right", color=COLOUR["quiet"], **side)
    axes.annotate(
        ratio_text(bounds.ratio, 3),
        (1, y),
        (right - 96, 0),
        ha="right",
        weight="bold",
        color=TONE[effect.shown],
        **side,
    )


# Over concurrencies.

CROSSING = (420.0, 240.0)


def crossing(run: RunView, dataset: str, curves: Sequence[Curve]) -> str:
    """A dataset's ratio over the concurrency, with the range in which the baseline takes over."""

    def draw(figure: Figure) -> None:
        axes = axes_in(figure, 44, 40, 14, 12)
        places = sorted({spot.concurrency for curve in curves for spot in curve.spots})
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, [str(place) for place in places])
        axes.set_xticks([], minor=True)
        axes.set_xlim(places[0] / 1.25, places[-1] * 1.25)
        axes.set_xlabel("concurrency", fontsize=FONT - 1)
        spots = [spot.bounds for curve in curves for spot in curve.spots]
        low, high = _reach([x for spot in spots for x in (spot.lower, spot.upper)], 0.12)
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        ticks = _ticks(low, high, 5)
        axes.set_yticks(ticks, [f"{tick:g}x" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.grid(axis="y", color=COLOUR["line"], linewidth=1)
        axes.axhspan(low, 1, color=COLOUR["line"], alpha=0.45, linewidth=0)
        axes.axhline(1, color=COLOUR["quiet"], linewidth=1.2)
        if run.crossover and run.crossover.between:
            axes.axvspan(*run.crossover.between, color=COLOUR["open"], alpha=0.1, linewidth=0)
        for curve in curves:
            colour = arm_colour(run.arms.index(curve.arm))
            across = [spot.concurrency for spot in curve.spots]
            axes.plot(across, [spot.bounds.ratio for spot in curve.spots], color=colour, linewidth=1.8, zorder=3)
            for spot in curve.spots:
                tip = tooltip(
                    f"{curve.arm} at {spot.concurrency}: {ratio_text(spot.bounds.ratio, 3)}, "
                    f"{interval_text(spot.bounds, 3)}"
                )
                ends = [max(spot.bounds.lower, low), min(spot.bounds.upper, high)]
                axes.plot([spot.concurrency] * 2, ends, color=colour, linewidth=5, alpha=0.35, zorder=2, gid=tip)
                axes.plot([spot.concurrency], [spot.bounds.ratio], "o", color=colour, markersize=5.5, zorder=4, gid=tip)

    return svg(
        run,
        *CROSSING,
        draw,
        title=f"{workload_text(dataset)}: candidate over baseline by concurrency",
        description=" ".join(
            f"{curve.arm} at {spot.concurrency}: {ratio_text(spot.bounds.ratio)}, {interval_text(spot.bounds)}."
            for curve in curves
            for spot in curve.spots
        ),
    )


# A metric by workload.

_SMALL = 380
BAND = 15


def by_workload(run: RunView, title: str, metrics: Sequence[str], unit: str, scale: float, start: float = 0.0) -> str:
    """One dot per arm for the first of `metrics`, a line to the last measured one; values are multiplied by `scale`."""
    shown = {(v.metric, v.arm, v.workload): v for v in run.values if v.metric in metrics}
    names = [w for w in run.workloads if any((m, a, w) in shown for m in metrics for a in run.arms)]
    arms = [a for a in run.arms if any((m, a, w) in shown for m in metrics for w in names)]
    step = BAND * len(arms) + 12

    def draw(figure: Figure) -> None:
        axes = axes_in(figure, 96, 32, 22, 4)
        axes.set_ylim(step * len(names), 0)
        axes.set_yticks([])
        axes.grid(axis="x", color=COLOUR["line"], linewidth=1)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(unit, fontsize=FONT - 1)
        for row, name in enumerate(names):
            axes.annotate(_fitting(name, 92), (0, step * (row + 0.5)), (-90, 0), ha="left", va="center", **AT_SIDE)
            if row:
                axes.axhline(step * row, color=COLOUR["line"], linewidth=1, xmin=-0.4, clip_on=False)
            for place, arm in enumerate(arms):
                spread = [scale * shown[m, arm, name].typical for m in metrics if (m, arm, name) in shown]
                if not spread:
                    continue
                y = step * row + 6 + BAND * (place + 0.5)
                colour = arm_colour(run.arms.index(arm))
                tip = tooltip(
                    f"{arm} on {name}: "
                    f"{' to '.join(significant(x) for x in dict.fromkeys((spread[0], spread[-1])))} {unit}"
                )
                axes.plot([spread[0], spread[-1]], [y, y], color=colour, linewidth=2.5, alpha=0.45, gid=tip)
                if len(spread) > 1:
                    axes.plot([spread[-1]], [y], marker="|", markersize=9, markeredgewidth=2, color=colour, gid=tip)
                axes.plot([spread[0]], [y], marker="o", markersize=7, color=colour, zorder=4, gid=tip)
        high = axes.get_xlim()[1]
        axes.set_xlim(start, start + (high - start) * 1.04)

    return svg(
        run,
        _SMALL,
        step * len(names) + 36,
        draw,
        title=title,
        description="The numbers are in the table below.",
    )


def latency(run: RunView, family: Family) -> str:
    typical = [v.typical for v in run.values if v.metric in family.metrics.values()]
    unit, scale = ("s", 1.0) if max(typical) >= 1 else ("ms", 1000.0)
    return by_workload(run, family.name, tuple(family.metrics.values()), unit, scale)


def acceptance(run: RunView) -> str:
    return by_workload(run, "Acceptance length", ("acceptLength",), "tokens a verify step", 1.0, start=1.0)


# Rounds.

PANEL = (230.0, 140.0)
LEAST_REACH = 0.01


def panels(run: RunView) -> Iterator[tuple[str, str]]:
    """Workload and chart: every arm's throughput relative to its own mean, by round; all charts have one scale."""
    reach = max([LEAST_REACH, *(abs(x) for one in run.series for _, x, why in _deviations(one) if not why)]) * 1.15
    last = max([1, *(dot.round for one in run.series for dot in one.dots)])
    for name in run.workloads:
        series = [line for line in run.series if line.workload == name]
        if series:
            yield name, svg(
                run, *PANEL,
                _panel(run, series, reach, last),
                title=f"{name}: throughput over rounds",
                description="; ".join(
                    f"{line.arm} {', '.join(_dot_text(*dot) for dot in _deviations(line))}" for line in series
                ),
            )  # fmt: skip


def _panel(run: RunView, series: Sequence[SeriesView], reach: float, last: int) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        axes = axes_in(figure, 42, 24, 10, 8)
        axes.set_xlim(-0.3, last + 0.3)
        axes.set_ylim(-reach, reach)
        every = max(1, math.ceil((last + 1) / 8))
        axes.set_xticks(range(0, last + 1, every), [str(n + 1) for n in range(0, last + 1, every)])
        tick = reach / 1.15
        axes.set_yticks([-tick, 0, tick], [change(-tick), "mean", change(tick)])
        axes.grid(axis="y", color=COLOUR["line"], linewidth=1)
        axes.axhline(0, color=COLOUR["quiet"], linewidth=1)
        for line in series:
            colour = arm_colour(run.arms.index(line.arm))
            dots = _deviations(line)
            used = [(n, x) for n, x, why in dots if not why]
            axes.plot([n for n, _ in used], [x for _, x in used], color=colour, linewidth=1.8)
            for n, x, why in dots:
                tip = tooltip(f"{line.arm}, {_dot_text(n, x, why)}")
                if why:
                    place = min(max(x, -0.94 * reach), 0.94 * reach)
                    mark: dict[str, Any] = {"marker": "X", "markersize": 9, "markerfacecolor": COLOUR["bad"]}
                    axes.plot([n], [place], color=colour, zorder=6, gid=tip, **mark)
                else:
                    axes.plot([n], [x], marker="o", markersize=5.5, color=colour, zorder=4, gid=tip)

    return draw


def _dot_text(n: int, x: float, why: str) -> str:
    return f"round {n + 1} {change(x)}" + (f", not used: {why}" if why else "")


def _deviations(one: SeriesView) -> list[tuple[int, float, str]]:
    """Round, throughput relative to the series' mean, minus 1, and why it is not used; 0 for a missing number."""
    return [(dot.round, dot.speed / one.typical - 1 if dot.speed and one.typical else 0.0, dot.why) for dot in one.dots]
