"""The tables that HTML and Markdown share: text in rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from paceline.report.measured import COST
from paceline.report.model import CostView, EffectView, LimitEffect, RunView, Shown, Value
from paceline.report.search_model import SearchView, Throughput
from paceline.report.text import (
    LATENCIES,
    beside_the_grid,
    change,
    duration_words,
    interval_text,
    ratio_text,
    significant,
    workload_text,
)

VERDICT = {Shown.KEPT: "shown", Shown.BROKEN: "broken", Shown.OPEN: "not shown"}
PACE = {Shown.KEPT: "faster", Shown.BROKEN: "slower", Shown.OPEN: "not shown"}
"""Words for an interval without a threshold, relative to the baseline."""


STATES = {"best": "kept", "may be best": "kept", "behind": "broken", "failed": "broken"}
"""State of a searched arm → its tone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    text: str
    note: str = ""
    """Shown next to the text, less prominently."""
    tone: str = ""
    """The page's colour class: kept, broken, open."""
    link: str = ""
    """The run or pool to link to, if the page has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlTable:
    head: tuple[str, ...]
    words: int
    """Number of leading columns with words; the others have numbers."""
    rows: tuple[tuple[TableCell, ...], ...]


def speed_ups(run: RunView) -> HtmlTable:
    """Every interval, its threshold, and whether it was shown."""
    with_tokens = any(effect.tokens for candidate in run.candidates for effect in candidate.effects)
    against = "Asked for" if run.asks else "Beside the baseline"
    rows = (
        (
            TableCell(text=candidate.name),
            TableCell(text=workload_text(effect.workload)),
            *_against(effect, ">"),
            *((_drift(effect),) if with_tokens else ()),
        )
        for candidate in run.candidates
        for effect in candidate.effects
    )
    head = ("Arm", "Workload", against, "Ratio", "Interval", *(("Tokens written",) if with_tokens else ()))
    return HtmlTable(head=head, words=2, rows=tuple(rows))


def searched_table(search: SearchView) -> HtmlTable:
    """The state of each measured arm, best first."""
    best = next((arm.speed.ratio for arm in search.arms if arm.speed), None)
    rows = (
        (
            TableCell(text=arm.name, note=arm.shape),
            TableCell(text=arm.state, note=arm.why, tone=STATES.get(arm.state, "open")),
            TableCell(text=str(arm.points)),
            TableCell(text=ratio_text(arm.speed.ratio, 3) if arm.speed else "–"),
            TableCell(text=interval_text(arm.speed, 3) if arm.speed else "–"),
            TableCell(text=change(arm.speed.ratio / best - 1) if arm.speed and best else "–"),
        )
        for arm in search.arms
    )
    return HtmlTable(head=("Arm", "State", "Points", "Ratio", "Interval", "Behind the best"), words=2, rows=tuple(rows))


def over_loads_table(of: Throughput) -> HtmlTable:
    """Tokens per second by concurrency."""
    loads = sorted({load for line in of.lines.values() for load in line})
    rows = (
        (TableCell(text=arm), *(TableCell(text=significant(line[load]) if load in line else "–") for load in loads))
        for arm, line in of.lines.items()
    )
    return HtmlTable(head=("Arm", *map(str, loads)), words=1, rows=tuple(rows))


def _drift(effect: EffectView) -> TableCell:
    """How much longer the candidate's answers are than the baseline's, with bounds."""
    tokens = effect.tokens
    return TableCell(text=change(tokens.ratio - 1), note=interval_text(tokens, 3)) if tokens else TableCell(text="–")


def limits_table(run: RunView) -> HtmlTable:
    """Every interval of a metric that the gate limits, its threshold, and whether it was shown."""
    rows = (
        (
            TableCell(text=one.arm),
            TableCell(text=one.metric),
            TableCell(text=one.workload or "–"),
            *_against(one, ">" if one.at_least else "<"),
        )
        for one in run.limits
    )
    return HtmlTable(head=("Arm", "Limited", "Workload", "Asked for", "Ratio", "Interval"), words=3, rows=tuple(rows))


def outputs_table(run: RunView) -> HtmlTable:
    """Counts of answers over all rounds."""
    numbers = ("Rounds", "Baseline agrees", "Identical", "Near ties", "Diverged", "First left at token", "Gap, nats")
    rows = (
        (TableCell(text=one.arm), TableCell(text=one.unknown or "unknown", tone="open"), *[TableCell(text="–")] * 6)
        if not one.rounds
        else (
            TableCell(text=one.arm),
            TableCell(text=str(one.rounds)),
            TableCell(text=str(one.settled), note=f"of {one.samples}"),
            TableCell(text=str(one.identical)),
            TableCell(text=str(one.near_ties)),
            TableCell(text=str(one.diverged)),
            TableCell(text="–" if one.first is None else str(one.first)),
            TableCell(text="–" if one.gap is None else f"{one.gap:.2f}"),
        )
        for one in run.outputs.arms
    )
    return HtmlTable(head=("Arm", *numbers), words=1, rows=tuple(rows))


def _against(effect: EffectView | LimitEffect, sign: str) -> tuple[TableCell, ...]:
    bounds, threshold = effect.bounds, effect.threshold
    return (
        TableCell(text=PACE[effect.shown], tone=effect.shown)
        if threshold is None
        else TableCell(text=f"{sign} {ratio_text(threshold)}", note=VERDICT[effect.shown], tone=effect.shown),
        TableCell(text=ratio_text(bounds.ratio, 3) if bounds else "–"),
        TableCell(text=interval_text(bounds, 3) if bounds else "–"),
    )


def latencies_table(run: RunView) -> HtmlTable:
    """Throughput, acceptance and every measured latency, by arm; changes are those of paired rounds."""
    values = {(v.metric, v.arm, v.workload): v for v in run.values}
    columns = [column for column in _COLUMNS if any(metric == column.metric for metric, _, _ in values)]
    longest = {c.metric: max(v.typical for v in run.values if v.metric == c.metric) for c in columns}
    units = [c.unit(longest[c.metric]) for c in columns]
    rows = tuple(
        (
            TableCell(text=name),
            TableCell(text=arm),
            *(_value(values.get((c.metric, arm, name)), scale) for c, (_, scale) in zip(columns, units, strict=True)),
        )
        for name in run.workloads
        for arm in run.arms
        if any((c.metric, arm, name) in values for c in columns)
    )
    heads = [", ".join(filter(None, (c.head, unit))) for c, (unit, _) in zip(columns, units, strict=True)]
    return HtmlTable(head=("Workload", "Arm", *heads), words=2, rows=rows)


def requests_table(run: RunView) -> HtmlTable:
    """Requests sent and their outcomes, over all rounds."""
    told = attrgetter("rounds", "asked", "completed", "errors", "retractions", "output_tokens", "verify_calls")
    rows = (
        (
            TableCell(text=one.workload),
            TableCell(text=one.arm),
            *(TableCell(text="–" if value is None else f"{value:,}") for value in told(one)),
        )
        for one in run.counts
    )
    head = ("Rounds", "Requests", "Completed", "Errors", "Retracted", "Output tokens", "Verify steps")
    return HtmlTable(head=("Workload", "Arm", *head), words=2, rows=tuple(rows))


Unit = tuple[str, float]
"""Name of a unit, and the factor from status's unit to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    head: str
    metric: str
    unit: Callable[[float], Unit] = lambda _: ("", 1.0)
    """Unit for the largest value."""


_COLUMNS = (
    Column(head="Tokens/s, steady", metric="steadyThroughput"),
    Column(head="Under way", metric="meanConcurrency"),
    Column(head="Tokens/s, ramp and tail included", metric="outputThroughput"),
    Column(head="Tokens/s of a request", metric="requestSpeed"),
    Column(head="Requests/s answered", metric="keptRate"),
    Column(head="Accepted length", metric="acceptLength"),
    Column(head="Accepted", metric="acceptRate", unit=lambda _: ("%", 100.0)),
    Column(head="Proposed", metric="draftTokens"),
    Column(head="Prompt from the cache", metric="cacheHitRate", unit=lambda _: ("%", 100.0)),
    Column(head="J a token", metric="energyPerToken"),
    Column(head="Cost of a million tokens", metric=COST),
    *(
        Column(
            head=f"{family.short} {stat}", metric=metric, unit=lambda most: ("s", 1.0) if most >= 1 else ("ms", 1000.0)
        )
        for family in LATENCIES
        for stat, metric in family.metrics.items()
    ),
    Column(head="Between pieces p99", metric="p99ITL", unit=lambda most: ("s", 1.0) if most >= 1 else ("ms", 1000.0)),
)


def _value(value: Value | None, scale: float) -> TableCell:
    return (
        TableCell(text=significant(scale * value.typical), note=change(value.change)) if value else TableCell(text="–")
    )


def costs_table(run: RunView) -> Iterator[tuple[str, str]]:
    """Name and value."""
    if run.search:
        points, starts = beside_the_grid(run.search)
        yield "Points besides the grid's, measured once", points
        yield "Server starts besides the grid's", starts
    if run.cost.gpu_seconds is not None:
        yield "GPU time", f"{run.cost.gpu_seconds / 3600:.2f} h ({run.cost.gpu_seconds:,} GPU-seconds)"
    if run.cost.gpu_seconds and run.cost.price is not None:
        yield "At accelerator.pricePerHour", f"{run.cost.price * run.cost.gpu_seconds / 3600:,.2f}"
    if run.cost.gpu_seconds and run.cost.idle_gpu_seconds is not None:
        share = run.cost.idle_gpu_seconds / run.cost.gpu_seconds
        yield "Of it neither start nor measurement", f"{share:.0%} ({run.cost.idle_gpu_seconds:,} GPU-seconds)"
    yield from _floor(run.cost)
    if run.cost.server_starts is not None:
        yield "Server starts", f"{run.cost.server_starts}, {_of(run.cost.starting, run.cost.held)}"
    yield "Measuring", _of(run.cost.measuring, run.cost.held)
    if run.noise is not None:
        margins = (f", margin {one.margin:.2%} ({one.name})" for one in run.candidates if one.margin is not None)
        yield "Noise of a point between rounds", f"{run.noise:.2%}{''.join(margins)}"


def _floor(cost: CostView) -> Iterator[tuple[str, str]]:
    if cost.floor_seconds is not None:
        both = cost.starting + cost.measuring
        starts = f", {cost.starting / both:.0%} of it starts" if both > 0 else ""
        yield "Floor: starts and answers alone", f"{cost.floor_seconds / 3600:.2f} h{starts}"


def _of(part: float, whole: float) -> str:
    share = f" of {duration_words(whole)} that rounds took ({part / whole:.0%})" if whole > 0 else ""
    return f"{duration_words(part)}{share}"
