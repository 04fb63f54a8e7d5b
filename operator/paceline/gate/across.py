"""Two runs of one question, apart in time, node or image: whether a candidate's speed-up changed.

Nothing absolute is compared: the two runs had other pods, perhaps another node, and another hour. Each run has its own
ratio, paired with the baseline in its own rounds; what is judged is the difference of two independent means of ln
(candidate/baseline), by Welch's t with the gate's floor on each run's deviation. Acceptance lengths are compared in the
same way, without a baseline: they count tokens, so no clock, node or neighbour is in them.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Bounds, Gate, Measurement
from paceline.gate.interval import Interval, interval, student_quantile
from paceline.gate.rounds import Rounds, positive, table, weighted_means

MEANS = ("mean", "mean@rate")
"""Named as in `status.results`."""
ACCEPTANCE = "acceptLength"

Logs = Mapping[str, Sequence[float]]
"""Workload or mean → a logarithm a round."""
LogsOf = Callable[[Rounds, str, Sequence[int], Mapping[str, float], Collection[str]], Logs]
"""Of a candidate in a run: its rounds, the workloads that the means have with their weights, and those at a rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`first` and `second` are a ratio of either run within its own bounds, as the gate of a run has them; `change` is
    the second over the first. None where one run has fewer than two rounds to tell it from."""

    first: Bounds | None
    second: Bounds | None
    change: Bounds | None
    rounds: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmChanges:
    speed_ups: Mapping[str, Change]
    """By workload, the means first."""
    acceptance: Mapping[str, Change]
    """By workload: lengths, no ratios, in `first` and `second`."""


def across(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    first: Sequence[Measurement],
    second: Sequence[Measurement],
    rated: Collection[str] = (),
) -> Mapping[str, ArmChanges]:
    """Of every candidate. `arms` starts with the baseline, `workloads` maps names to weights, `rated` names those at a
    rate.

    `confidence` covers all changes together: the probability of a wrong one is split over them, over both directions,
    and over each pair of looks at which the two runs may have stopped. The bounds of either run by itself are the
    gate's.
    """
    baseline, *candidates = arms
    runs = [table(baseline, workloads, measured) for measured in (first, second)]
    kept = {w: weight for w, weight in workloads.items() if not any(_saturated(gate, run, w) for run in runs)}
    pairs = {
        arm: (_pair(gate, runs, arm, kept, rated, _speed_ups), _pair(gate, runs, arm, kept, rated, _accepted))
        for arm in candidates
    }
    looks = len(gate.decide_after_rounds)
    claims = sum(len(pair[0]) for both in pairs.values() for pair in both)
    alone = (1 - gate.confidence) / (len(candidates) * looks)
    together = (1 - gate.confidence) / (2 * max(claims, 1) * looks**2)
    return {
        arm: ArmChanges(
            speed_ups=dict(_changes(gate, *speeds, alone, together)),
            acceptance=dict(_changes(gate, *lengths, alone, together)),
        )
        for arm, (speeds, lengths) in pairs.items()
    }


def welch(first: Sequence[float], second: Sequence[float], *, error: float, floor: float) -> Interval:
    """Bounds on mean(second) − mean(first) that each fail with probability `error`, if the logs of either are
    independent and normal, whatever their two deviations. Needs at least two logs of each."""
    means, squares, freedoms = [], [], []
    for logs in (first, second):
        mean = math.fsum(logs) / len(logs)
        variance = max(math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1), floor**2)
        means.append(mean)
        squares.append(variance / len(logs))
        freedoms.append(len(logs) - 1)
    freedom = math.fsum(squares) ** 2 / math.fsum(s**2 / n for s, n in zip(squares, freedoms, strict=True))
    reach = student_quantile(error, freedom) * math.sqrt(math.fsum(squares))
    change = means[1] - means[0]
    return Interval(mean=change, lower=change - reach, upper=change + reach)


def _changes(gate: Gate, first: Logs, second: Logs, alone: float, together: float) -> Iterator[tuple[str, Change]]:
    floor = gate.variance_floor
    for name in first:
        logs = (first[name], second[name])
        own = [interval(one, error=alone, floor=floor).bounds if len(one) > 1 else None for one in logs]
        known = all(len(one) > 1 for one in logs)
        yield (
            name,
            Change(
                first=own[0],
                second=own[1],
                change=welch(*logs, error=together, floor=floor).bounds if known else None,
                rounds=(len(logs[0]), len(logs[1])),
            ),
        )


def _pair(
    gate: Gate,
    runs: Sequence[Rounds],
    arm: str,
    kept: Mapping[str, float],
    rated: Collection[str],
    of: LogsOf,
) -> tuple[Logs, Logs]:
    """Of both runs, the same names in each."""
    first, second = (of(run, arm, _used(gate, run, arm), kept, rated) for run in runs)
    names = [name for name in first if name in second]
    return {name: first[name] for name in names}, {name: second[name] for name in names}


def _used(gate: Gate, run: Rounds, arm: str) -> list[int]:
    """As many rounds as the last look did, because a look decides whether more are measured; all before the first."""
    complete = run.complete(arm)
    return complete[: max((n for n in gate.decide_after_rounds if n <= len(complete)), default=len(complete))]


def _speed_ups(
    run: Rounds, arm: str, numbers: Sequence[int], kept: Mapping[str, float], rated: Collection[str]
) -> Logs:
    logs = {w: run.speed_ups(arm, numbers, w) for w in run.workloads}
    loops = {w: weight for w, weight in kept.items() if w not in rated}
    rates = {w: weight for w, weight in kept.items() if w in rated}
    kinds = [kind for kind in (loops, rates) if math.fsum(kind.values()) > 0]
    means = {name: weighted_means(kind, logs) for name, kind in zip(MEANS, kinds, strict=False)}
    return {**means, **logs}


def _accepted(run: Rounds, arm: str, numbers: Sequence[int], kept: Mapping[str, float], rated: Collection[str]) -> Logs:
    """Of the workloads on which every round tells it."""
    found = {w: [run.cells[n, arm, w].metrics.get(ACCEPTANCE) for n in numbers] for w in run.workloads}
    return {
        w: [math.log(length) for length in lengths if positive(length)]
        for w, lengths in found.items()
        if lengths and all(map(positive, lengths))
    }


def _saturated(gate: Gate, run: Rounds, workload: str) -> bool:
    """The baseline missed its rate in half of the rounds: what the speed-up is there depends on how long was measured,
    and the gate leaves it out of the means."""
    measured = [n for n in run.of(run.baseline) if (n, run.baseline, workload) in run.cells]
    return 2 * run.saturated(workload, measured) >= len(measured) > 0
