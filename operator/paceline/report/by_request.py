"""Results per request: goodput, speed-ups by prompt, and lengths of prompts and answers with the speed at each."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from paceline.api.round import Inputs, PointRecord, Round
from paceline.core.manifest import Object
from paceline.core.numbers import ContextNumbers
from paceline.core.record import finite
from paceline.evidence.round_status import last_tries
from paceline.report.measured import geometric, points_of, why
from paceline.report.model import ContextView, Goodput, Lengths, PromptsView
from paceline.report.read import named_workload

Points = Sequence[PointRecord]


def goodput(spec: Object, arms: Sequence[str], rounds: Sequence[Round]) -> Iterator[Goodput]:
    """Goodput of every arm on every workload with an slo, over all valid rounds together, including those without a
    good request."""
    slos = {named_workload(one): slo_text(one["slo"]) for one in spec["workloads"] if one.get("slo")}
    for name, arm, points in points_of(arms, tuple(slos), rounds):
        if counted := [point for point in points if not why(point) and point.good_requests is not None]:
            yield Goodput(
                arm=arm,
                workload=name,
                slo=slos[name],
                good=sum(point.good_requests or 0 for point in counted),
                asked=sum(point.asked or 0 for point in counted),
                requests=_over_time(counted, lambda point: point.goodput),
                tokens=_over_time(counted, lambda point: point.good_throughput),
            )


def prompts(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[PromptsView]:
    """The speed-ups by prompt of every candidate on every workload. Deciles are geometric means over rounds, the
    fraction is an arithmetic mean."""
    for name, arm, points in points_of(arms[1:], workloads, rounds):
        seen = [point for point in points if not why(point)]
        worst, median, best = (
            _geometric(seen, of)
            for of in (lambda p: p.worst_decile, lambda p: p.median_prompt, lambda p: p.best_decile)
        )
        slower = _values(seen, lambda point: point.slower_prompts)
        if worst and median and best:
            share = math.fsum(slower) / len(slower) if slower else None
            yield PromptsView(arm=arm, workload=name, worst=worst, median=median, best=best, slower=share)


def lengths(arms: Sequence[str], workloads: Sequence[str], rounds: Sequence[Round]) -> Iterator[Lengths]:
    """The lengths for every arm on every workload: means over rounds, each of which has different prompts."""
    sent = [one for entry in last_tries(rounds) for one in entry.inputs]
    for name, arm, points in points_of(arms, workloads, rounds):
        inputs = [one for one in sent if one.workload == name]
        seen = [point for point in points if not why(point)]
        if inputs or any(point.p50_output for point in seen):
            yield Lengths(
                arm=arm,
                workload=name,
                prompt=_inputs(inputs),
                answer=(
                    _mean([point.output_tokens / point.completed
                           for point in seen if point.output_tokens and point.completed]),
                    _mean(_values(seen, lambda point: point.p50_output)),
                    _mean(_values(seen, lambda point: point.p99_output)),
                ),
            )  # fmt: skip


def contexts(arms: Sequence[str], rounds: Sequence[Round]) -> Iterator[ContextView]:
    """The results of every arm by the length of prompts."""
    seen: dict[tuple[str, int], dict[str, dict[int, ContextNumbers]]] = {}
    for entry in last_tries(rounds):
        for point in entry.points:
            for one in () if why(point) else point.contexts:
                seen.setdefault((point.workload, one.over), {}).setdefault(point.arm, {})[entry.round] = one
    for (workload, over), by_arm in sorted(seen.items()):
        base = _speeds(by_arm.get(arms[0], {}))
        for arm in arms:
            if mine := by_arm.get(arm, {}):
                speeds = _speeds(mine)
                ratios = [speed / base[number] for number, speed in speeds.items() if number in base]
                yield ContextView(
                    arm=arm,
                    workload=workload,
                    over=over,
                    requests=sum(one.requests or 0 for one in mine.values()),
                    speed=_positive(speeds.values()),
                    ratio=_positive(ratios) if arm != arms[0] else None,
                    ttft=_positive(one.mean_ttft for one in mine.values()),
                    tokens_per_chunk=_positive(one.tokens_per_chunk for one in mine.values()),
                )


def _speeds(by_round: Mapping[int, ContextNumbers]) -> dict[int, float]:
    return {number: speed for number, one in by_round.items() if (speed := finite(one.speed)) and speed > 0}


def slo_text(slo: Object) -> str:
    """For example TTFT ≤ 500ms, ITL ≤ 50ms."""
    return ", ".join(f"{name.upper()} ≤ {slo[name]}" for name in ("ttft", "itl") if slo.get(name))


def _inputs(inputs: Sequence[Inputs]) -> tuple[float | None, float | None, float | None]:
    mean, p50, p99 = (
        _mean([float(value) for one in inputs if (value := finite(getattr(one, name))) is not None])
        for name in ("mean", "p50", "p99")
    )
    return mean, p50, p99


def _over_time(points: Points, of: Callable[[PointRecord], float | None]) -> float | None:
    """A number per second, over the time of all points: None if a point has no time."""
    pairs = [(finite(of(point)), _seconds(point)) for point in points]
    if not all(value is not None and seconds for value, seconds in pairs):
        return None
    time = math.fsum(seconds or 0.0 for _, seconds in pairs)
    return math.fsum((value or 0.0) * (seconds or 0.0) for value, seconds in pairs) / time


def _seconds(point: PointRecord) -> float | None:
    throughput = finite(point.output_throughput)
    return point.output_tokens / throughput if point.output_tokens and throughput else None


def _values(points: Points, of: Callable[[PointRecord], float | None]) -> list[float]:
    return [float(value) for point in points if (value := finite(of(point))) is not None]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _geometric(points: Points, of: Callable[[PointRecord], float | None]) -> float | None:
    return _positive(map(of, points))


def _positive(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the positive ones."""
    positive = [value for one in values if (value := finite(one)) is not None and value > 0]
    return geometric(positive) if positive else None
