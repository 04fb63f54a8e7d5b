"""What was measured: values over rounds, rounds one by one, and what was not used and why."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from paceline import core, evidence, gate
from paceline.report import read
from paceline.report.model import Counts, Dot, LimitEffect, Manifest, Positions, Replicate, Series, Shown, Value
from paceline.report.read import number
from paceline.report.words import LATENCIES

METRICS = (
    "outputThroughput",
    "steadyThroughput",
    "meanConcurrency",
    "requestSpeed",
    "keptRate",
    "p99ITL",
    "acceptLength",
    "acceptRate",
    "draftTokens",
    *(metric for family in LATENCIES for metric in family.metrics.values()),
)
"""What is shown of a point: its fields in status."""


def judged(point: Manifest) -> float | None:
    """Output tokens per second, as the gate compares them."""
    found = evidence.judged_speed(point)
    return found if found and found > 0 else None


def kept(rounds: Iterable[Manifest]) -> list[Manifest]:
    """The last try of every round that gave a result, as the gate reads them."""
    return list({entry["round"]: entry for entry in sorted(rounds, key=_order) if not entry.get("error")}.values())


def values(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Value]:
    """Every metric that was measured, of every arm on every workload, from the points that are valid."""
    seen: dict[tuple[str, str, str], dict[int, float]] = {}
    for entry in kept(rounds):
        for point in entry.get("points") or ():
            for metric in METRICS if not why(point) else ():
                found = number(point.get(metric))
                if found is not None and found > 0:
                    seen.setdefault((metric, point["workload"], point["arm"]), {})[entry["round"]] = found
    for metric in METRICS:
        for workload in workloads:
            base = seen.get((metric, workload, arms[0]), {})
            for arm in arms:
                if mine := seen.get((metric, workload, arm)):
                    paired = [math.log(mine[n] / base[n]) for n in mine if n in base]
                    yield Value(
                        metric=metric,
                        arm=arm,
                        workload=workload,
                        typical=_geometric(mine.values()),
                        least=min(mine.values()),
                        most=max(mine.values()),
                        rounds=len(mine),
                        change=math.expm1(math.fsum(paired) / len(paired)) if paired and arm != arms[0] else None,
                    )


def counts(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Counts]:
    """Of every arm on every workload that was measured at all."""
    for workload, arm, points in _points(arms, workloads, rounds):
        if sent := [point for point in points if number(point.get("asked")) is not None]:
            yield Counts(
                arm=arm,
                workload=workload,
                rounds=len(sent),
                asked=_total(sent, "asked"),
                completed=_total(sent, "completed"),
                errors=_total(sent, "errors"),
                retractions=_total(sent, "retractions"),
                output_tokens=_total(sent, "outputTokens"),
                verify_calls=_total(sent, "verifyCalls"),
            )


def _points(
    arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]
) -> Iterator[tuple[str, str, list[Manifest]]]:
    """Workload, arm and its points, one a round, workload by workload."""
    found: dict[tuple[str, str], list[Manifest]] = {}
    for entry in kept(rounds):
        for point in entry.get("points") or ():
            found.setdefault((point["workload"], point["arm"]), []).append(point)
    for workload in workloads:
        for arm in arms:
            yield workload, arm, found.get((workload, arm), [])


def _total(points: Sequence[Manifest], field: str) -> int | None:
    told = [one for point in points if (one := number(point.get(field))) is not None]
    return round(math.fsum(told)) if told else None


def positions(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Positions]:
    """Of every arm on every workload that has any. A round that knows fewer positions says nothing of the others."""
    for workload, arm, points in _points(arms, workloads, rounds):
        if mine := [told for point in points if not why(point) and (told := _accepted(point))]:
            columns = ([one for one in column if one is not None] for column in zip_longest(*mine))
            accepted = tuple(math.fsum(column) / len(column) for column in columns)
            yield Positions(arm=arm, workload=workload, accepted=accepted)


def _accepted(point: Manifest) -> list[float]:
    """By position; nothing where one of them is no number."""
    found = [number(said) for said in point.get("acceptedAt") or ()]
    told = [fraction for fraction in found if fraction is not None]
    return told if len(told) == len(found) else []


def limits(spec: Manifest, rule: core.Gate, workloads: Sequence[str], rounds: Sequence[Manifest]) -> list[LimitEffect]:
    """What the gate finds on its limits, from the rounds in status: `status.results` has throughput alone."""
    arms = [arm["name"] for arm in spec["arms"]]
    weights = {name: float(w.get("weight", 1)) for name, w in zip(workloads, spec["workloads"], strict=True)}
    rated = read.rated(spec)
    asked = [limit for limit in gate.limits(rule, rated) if limit.maximum is None]
    if not asked:
        return []
    measurements = evidence.measurements(rounds)
    found = gate.decide(rule, arms, weights, measurements, evidence.answers(rounds), rated).arms
    return [
        LimitEffect(
            metric=limit.metric,
            arm=arm,
            workload=workload,
            bounds=(bounds := found[arm].limits.get(limit.metric, {}).get(workload)),
            threshold=gate.threshold(limit),
            at_least=limit.maximum_decrease is not None,
            shown=_shown(bounds, limit),
        )
        for limit in asked
        for arm in arms[1:]
        for workload in ([""] if limit.metric in gate.OF_THE_SERVER else rated if limit.at_a_rate else workloads)
    ]


def _shown(bounds: core.Bounds | None, limit: core.Limit) -> Shown:
    if bounds is None:
        return Shown.OPEN
    threshold = gate.threshold(limit)
    above, below = bounds.lower > threshold, bounds.upper < threshold
    kept, broken = (above, below) if limit.maximum_decrease is not None else (below, above)
    return Shown.KEPT if kept else Shown.BROKEN if broken else Shown.OPEN


def series(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Series]:
    """Every arm on every workload, round by round."""
    for workload in workloads:
        for arm in arms:
            dots = [dot for entry in kept(rounds) for dot in _dots(entry, arm, (workload,)) if dot.why != ABSENT]
            valid = [dot.speed for dot in dots if not dot.why and dot.speed]
            if dots:
                typical = _geometric(valid) if valid else None
                yield Series(arm=arm, workload=workload, typical=typical, dots=tuple(dots))


def replicates(workloads: Sequence[str], rounds: Sequence[Manifest]) -> Iterator[Replicate]:
    """Every server process, in the order run; a round that gave no result is one line."""
    for entry in sorted(rounds, key=_order):
        number_of_try = entry.get("try") or 0
        if entry.get("error"):
            yield Replicate(
                round=entry["round"],
                attempt=number_of_try,
                arm="",
                start_seconds=None,
                dots=(),
                error=_why_ended(entry),
            )
            continue
        for replicate in entry.get("replicates") or ():
            yield Replicate(
                round=entry["round"],
                attempt=number_of_try,
                arm=replicate["arm"],
                start_seconds=number(replicate.get("startSeconds")),
                dots=tuple(_dots(entry, replicate["arm"], workloads)),
                error=_why_ended(replicate),
            )


def _why_ended(entry: Manifest) -> str:
    """Of a round or a replicate: what kind of failure, and the last useful line."""
    return ": ".join(filter(None, (entry.get("reason"), entry.get("error"))))


def unused(found: Iterable[Replicate], workloads: Sequence[str]) -> Iterator[str]:
    """One sentence for each; points that are missing for the same reason share it."""
    for replicate in found:
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


ABSENT = "not measured"


def why(point: Manifest) -> str:
    """Why the gate does not use it; empty if it does."""
    if point.get("valid") is not True:
        return point.get("why") or ABSENT
    return "" if judged(point) else "no throughput"


def _dots(entry: Manifest, arm: str, workloads: Sequence[str]) -> Iterator[Dot]:
    points = {(point.get("arm"), point.get("workload")): point for point in entry.get("points") or ()}
    for workload in workloads:
        point = points.get((arm, workload), {})
        yield Dot(round=entry["round"], speed=judged(point), why=why(point))


def _order(entry: Manifest) -> tuple[int, int]:
    return entry["round"], entry.get("try") or 0


def _geometric(positive: Iterable[float]) -> float:
    logs = [math.log(x) for x in positive]
    return math.exp(math.fsum(logs) / len(logs))
