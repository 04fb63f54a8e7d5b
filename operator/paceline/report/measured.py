"""The measurements: values over rounds, individual rounds, and unused points with the reason."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from paceline import core, gate
from paceline.api import round as recorded
from paceline.api.round import PointRecord, Round
from paceline.core.manifest import Object
from paceline.core.record import finite, inner, slots
from paceline.evidence import round_status
from paceline.report import read
from paceline.report.model import CountsView, Dot, LimitEffect, Positions, ReplicateView, SeriesView, Shown, Value

_ELSEWHERE = frozenset({
    "offered_rate", "goodput", "good_throughput", "worst_decile", "median_prompt", "best_decile", "slower_prompts",
    "request_spread",
})  # fmt: skip
"""Fields that are not measurements, or that have a table of their own, some because zeros count there (`by_request`).
"""
_METRICS = tuple(slot.wire for slot in slots(PointRecord) if inner(slot.type) is float and slot.name not in _ELSEWHERE)
"""The measurements of a point that are shown, by their names in status."""
_SPEEDS = ("outputThroughput", "steadyThroughput")
"""Metrics of throughput, the one that is preferred last."""


def _judged(point: PointRecord) -> float | None:
    """Output tokens per second, in the form that the gate compares."""
    speed = round_status.judged_speed(point)
    return speed if speed and speed > 0 else None


def values(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[Value]:
    """Every measured metric of every arm on every workload, from the valid points."""
    seen: dict[tuple[str, str, str], dict[int, float]] = {}
    for entry in round_status.last_tries(rounds):
        for point in entry.points:
            for metric in _METRICS if not why(point) else ():
                value = finite(getattr(point, round_status.METRICS[metric]))
                if value is not None and value > 0:
                    seen.setdefault((metric, point.workload, point.arm), {})[entry.round] = value
    for metric in _METRICS:
        for workload in workloads:
            base = seen.get((metric, workload, arms[0]), {})
            for arm in arms:
                if mine := seen.get((metric, workload, arm)):
                    paired = [math.log(mine[n] / base[n]) for n in mine if n in base]
                    yield Value(
                        metric=metric,
                        arm=arm,
                        workload=workload,
                        typical=geometric(mine.values()),
                        least=min(mine.values()),
                        most=max(mine.values()),
                        rounds=len(mine),
                        change=math.expm1(math.fsum(paired) / len(paired)) if paired and arm != arms[0] else None,
                    )


COST = "costPerMillion"


def money(spec: Object, values: Iterable[Value]) -> Iterator[Value]:
    """What a million output tokens cost at `accelerator.pricePerHour`, on GPUs that are busy as under the load: of each
    throughput in the steady window, or else of the whole load."""
    price = read.price(spec)
    if price is None:
        return
    a_second = price * read.gpus_of(spec) / 3600
    speeds = {(v.arm, v.workload): v for metric in _SPEEDS for v in values if v.metric == metric}
    for speed in speeds.values():
        yield replace(
            speed,
            metric=COST,
            typical=1e6 * a_second / speed.typical,
            least=1e6 * a_second / speed.most,
            most=1e6 * a_second / speed.least,
            change=None if speed.change is None else 1 / (1 + speed.change) - 1,
        )


def counts(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[CountsView]:
    """Counts of requests, for every arm on every workload that was measured at all."""
    for workload, arm, points in points_of(arms, workloads, rounds):
        if sent := [point for point in points if point.asked is not None]:
            yield CountsView(
                arm=arm,
                workload=workload,
                rounds=len(sent),
                asked=_total(point.asked for point in sent),
                completed=_total(point.completed for point in sent),
                errors=_total(point.errors for point in sent),
                retractions=_total(point.retractions for point in sent),
                output_tokens=_total(point.output_tokens for point in sent),
                verify_calls=_total(point.verify_calls for point in sent),
            )


def points_of(
    arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]
) -> Iterator[tuple[str, str, list[PointRecord]]]:
    """Workload, arm and its points, one a round, workload by workload."""
    points: dict[tuple[str, str], list[PointRecord]] = {}
    for entry in round_status.last_tries(rounds):
        for point in entry.points:
            points.setdefault((point.workload, point.arm), []).append(point)
    for workload in workloads:
        for arm in arms:
            yield workload, arm, points.get((workload, arm), [])


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def positions(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[Positions]:
    """Acceptance by position, for every arm on every workload that has it. A round with fewer positions does not count
    for the others."""
    for workload, arm, points in points_of(arms, workloads, rounds):
        if mine := [share for point in points if not why(point) and (share := _accepted(point))]:
            columns = ([one for one in column if one is not None] for column in zip_longest(*mine))
            accepted = tuple(math.fsum(column) / len(column) for column in columns)
            yield Positions(arm=arm, workload=workload, accepted=accepted)


def _accepted(point: PointRecord) -> list[float]:
    """Acceptance by position; empty if a value is not a number."""
    return list(point.accepted_at) if all(map(math.isfinite, point.accepted_at)) else []


def limit_effects(
    spec: Object, rule: core.Gate, workloads: Sequence[str], rounds: Sequence[Round]
) -> list[LimitEffect]:
    """The gate's findings on its limits, from the rounds in status: `status.results` has only throughput."""
    arms, rated = [arm["name"] for arm in spec["arms"]], read.rated(spec)
    asked = [limit for limit in gate.limits(rule, rated) if limit.max is None]
    if not asked:
        return []
    verdicts = verdict_view(gate.decide, spec, rule, workloads, rounds).arms
    return [
        LimitEffect(
            metric=limit.metric,
            arm=arm,
            workload=workload,
            bounds=(bounds := verdicts[arm].limits.get(limit.metric, {}).get(workload)),
            threshold=gate.threshold(limit),
            at_least=limit.max_decrease is not None,
            shown=_shown(bounds, limit),
        )
        for limit in asked
        for arm in arms[1:]
        if arm != core.INCUMBENT
        for workload in _bounded(limit, workloads, rated)
    ]


def _bounded(limit: core.Limit, workloads: Sequence[str], rated: Sequence[str]) -> Sequence[str]:
    if limit.metric in gate.OF_THE_SERVER:
        return ("",)
    return rated if limit is gate.AT_A_RATE else workloads


def verdict_view(
    rule_of: Callable[..., core.Verdict],
    spec: Object,
    rule: core.Gate,
    workloads: Sequence[str],
    rounds: Sequence[Round],
) -> core.Verdict:
    """The result of `gate.decide` or `gate.so_far` for the rounds in status."""
    return rule_of(
        rule,
        [arm["name"] for arm in spec["arms"]],
        {name: float(w.get("weight", 1)) for name, w in zip(workloads, spec["workloads"], strict=True)},
        round_status.measurements(rounds),
        round_status.answers(rounds),
        read.rated(spec),
    )


def _shown(bounds: core.Bounds | None, limit: core.Limit) -> Shown:
    if bounds is None:
        return Shown.OPEN
    threshold = gate.threshold(limit)
    above, below = bounds.lower > threshold, bounds.upper < threshold
    kept, broken = (above, below) if limit.max_decrease is not None else (below, above)
    return Shown.KEPT if kept else Shown.BROKEN if broken else Shown.OPEN


def series(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[SeriesView]:
    """Every arm on every workload, round by round."""
    for workload in workloads:
        for arm in arms:
            dots = [
                dot
                for entry in round_status.last_tries(rounds)
                for dot in _dots(entry, arm, (workload,))
                if dot.why != _ABSENT
            ]
            valid = [dot.speed for dot in dots if not dot.why and dot.speed]
            if dots:
                typical = geometric(valid) if valid else None
                yield SeriesView(arm=arm, workload=workload, typical=typical, dots=tuple(dots))


def speed_series(spec: Object, series: Iterable[SeriesView]) -> Iterator[tuple[str, float]]:
    """Each arm with all workloads, and its weighted mean over them. Like the gate's mean, it uses workloads at a rate,
    whose speed is per request, only if there are no others."""
    weights = {read.named_workload(one): float(one.get("weight", 1)) for one in spec["workloads"]}
    weights = {name: weights[name] for name in weights if name not in read.rated(spec)} or weights
    typical = {(one.arm, one.workload): one.typical for one in series if one.typical}
    for arm in (one["name"] for one in spec["arms"]):
        known = [(weights[name], math.log(typical[arm, name])) for name in weights if (arm, name) in typical]
        if len(known) == len(weights):
            yield arm, math.exp(math.fsum(w * log for w, log in known) / math.fsum(weights.values()))


def replicates(workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[ReplicateView]:
    """Every server process, in the order run; a round without a result is one line."""
    for entry in sorted(rounds, key=_order):
        if entry.error:
            yield ReplicateView(
                round=entry.round,
                attempt=entry.try_,
                arm="",
                start_seconds=None,
                dots=(),
                error=_why_ended(entry),
            )
            continue
        for replicate in entry.replicates:
            yield ReplicateView(
                round=entry.round,
                attempt=entry.try_,
                arm=replicate.arm,
                start_seconds=finite(replicate.start_seconds),
                dots=tuple(_dots(entry, replicate.arm, workloads)),
                error=_why_ended(replicate),
            )


def _why_ended(entry: Round | recorded.ReplicateRecord) -> str:
    """Kind of failure of a round or a replicate, and the last useful line."""
    return ": ".join(filter(None, (entry.reason, entry.error)))


def unused(replicates: Iterable[ReplicateView], workloads: Sequence[str]) -> Iterator[str]:
    """One sentence per measurement; points that are missing for the same reason share one."""
    for replicate in replicates:
        again = f", try {replicate.attempt + 1}" if replicate.attempt else ""
        where = f"Round {replicate.round + 1}{again}"
        if not replicate.arm:
            yield f"{where} gave no result: {replicate.error}"
        whys: dict[str, list[str]] = {}
        for workload, dot in zip(workloads, replicate.dots, strict=False):
            if dot.why:
                whys.setdefault(dot.why, []).append(workload)
        for reason, names in whys.items():
            on = "" if len(names) == len(workloads) else f" on {', '.join(names)}"
            yield f"{where}, {replicate.arm}{on}: {reason}"


_ABSENT = "not measured"


def why(point: PointRecord) -> str:
    """Why the gate does not use the point; empty if it does."""
    if not point.valid:
        return point.why or _ABSENT
    return "" if _judged(point) else "no throughput"


def _dots(entry: Round, arm: str, workloads: Sequence[str]) -> Iterator[Dot]:
    points = {(point.arm, point.workload): point for point in entry.points}
    for workload in workloads:
        point = points.get((arm, workload), PointRecord())
        yield Dot(round=entry.round, speed=_judged(point), why=why(point))


def _order(entry: Round) -> tuple[int, int]:
    return entry.round, entry.try_


def geometric(positive: Iterable[float]) -> float:
    logs = [math.log(x) for x in positive]
    return math.exp(math.fsum(logs) / len(logs))
