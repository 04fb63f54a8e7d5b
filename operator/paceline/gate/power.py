"""Before anything is measured: which difference the gate could show after so many rounds, at a stated noise.

The arithmetic is the gate's own (`interval`). A candidate whose true advantage equals what is shown here is promoted
about half of the time; whether one that is faster still is promoted depends on its luck less and less.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Gate
from paceline.gate.interval import student_quantile
from paceline.gate.rounds import Rounds, weighted_means

POINT = 0.005
"""Coefficient of variation of a point between repetitions on one server: 0.1 to 0.6 % is usual on one host, up to 10 %
was seen (vLLM issue 53436)."""
START = 0.01
"""That between two starts of a server, shared by all its workloads: usual (docs/gate.md)."""
_PROMPTS = 0.15
"""Standard deviation of ln(speed-up) between prompts. Each round sends other ones. Modest: published speed-ups
of one head range from 1.18x to 1.52x between sets."""


def enough_requests(spread: float, weights: Sequence[float]) -> int:
    """How many requests of each workload make the noise of requests, in the mean over workloads of these weights, as
    large as that of the servers' starts: then a further request of each costs about what a start does and tightens the
    interval less (decision 0068). `spread`: standard deviation of ln(speed) between the baseline's requests, which
    counts for both arms; the spread between the prompts' speed-ups is assumed, as it would have to be read off ratios.
    """
    equal = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
    return math.ceil((2 * spread**2 + _PROMPTS**2) / (equal * 2 * START**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How much ln(candidate/baseline) varies between rounds: standard deviations of the weighted mean over workloads,
    and of the workload that varies most."""

    mean: float
    workload: float


def smallest_shown(gate: Gate, candidates: int, look: int, noise: Noise) -> float:
    """The smallest true advantage, as a fraction and equal on all workloads, whose lower bounds after `look` rounds
    are expected to pass: the mean's the minimum improvement, and each workload's the tolerance."""
    error = (1 - gate.confidence) / (candidates * len(gate.decide_after_rounds))
    quantile = student_quantile(error, look - 1) / math.sqrt(look)
    mean = math.log1p(gate.min_improvement) + quantile * max(noise.mean, gate.variance_floor)
    each = math.log1p(-gate.max_regression) + quantile * max(noise.workload, gate.variance_floor)
    return math.expm1(max(mean, each))


def assumed_noise(requests: Mapping[str, int], weights: Mapping[str, float]) -> Noise:
    """`requests` that a round sends of each workload, and the workloads' weights in the mean."""
    own = {name: 2 * POINT**2 + _PROMPTS**2 / sent for name, sent in requests.items()}
    total = math.fsum(weights.values())
    mean = math.fsum((weights[name] / total) ** 2 * variance for name, variance in own.items())
    shared = 2 * START**2
    return Noise(mean=math.sqrt(shared + mean), workload=math.sqrt(shared + max(own.values())))


def observed_noise(runs: Iterable[Rounds]) -> tuple[Noise, int] | None:
    """Pooled over the candidates of earlier runs, and how many rounds it is from; None without two complete rounds of
    one candidate."""
    means: list[Sequence[float]] = []
    of_workload: dict[str, list[Sequence[float]]] = {}
    seen = 0
    for rounds in runs:
        counted = [logs for logs in _logs(rounds) if len(next(iter(logs.values()))) > 1]
        seen += max((len(next(iter(logs.values()))) for logs in counted), default=0)
        for logs in counted:
            means.append(weighted_means(rounds.workloads, logs))
            for workload, series in logs.items():
                of_workload.setdefault(workload, []).append(series)
    if not means:
        return None
    return Noise(mean=_pooled(means), workload=max(map(_pooled, of_workload.values()))), seen


def _logs(rounds: Rounds) -> Iterator[Mapping[str, Sequence[float]]]:
    """Of each candidate: workload → ln(candidate/baseline) of its complete rounds."""
    for candidate in rounds.numbers:
        if candidate != rounds.baseline and (complete := rounds.complete(candidate)):
            yield {workload: rounds.speed_ups(candidate, complete, workload) for workload in rounds.workloads}


def _pooled(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation within groups, each around its own mean."""
    squares = freedom = 0.0
    for logs in groups:
        mean = math.fsum(logs) / len(logs)
        squares += math.fsum((x - mean) ** 2 for x in logs)
        freedom += len(logs) - 1
    return math.sqrt(squares / freedom)
