"""Estimate before a run: the difference that the gate could show after a number of rounds, for a given noise.

It uses the gate's own arithmetic (`interval`). A candidate whose true advantage equals the estimate is promoted about
half of the time; a larger advantage makes promotion more likely.
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
"""Usual coefficient of variation between two starts of a server (docs/gate.md). All workloads of a start deviate
alike."""
_PROMPTS = 0.15
"""Standard deviation of ln(speed-up) between prompts; each round sends other prompts. A modest value: published
speed-ups of one head range from 1.18x to 1.52x between prompt sets."""

_WIDEST = 100.0
"""A larger standard deviation of a logarithm is no server's; its square might be too large for a float."""


def enough_requests(spread: float, weights: Sequence[float]) -> int:
    """Requests per workload at which requests add as much noise as server starts do to the mean over workloads of these
    weights. Beyond that, another round tightens the interval more than more requests do (decision 0068). `spread`:
    standard deviation of ln(speed) between the baseline's requests, used for both arms. The spread between the prompts'
    speed-ups is assumed: it could only be measured from ratios."""
    equal = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
    return math.ceil((2 * min(spread, _WIDEST) ** 2 + _PROMPTS**2) / (equal * 2 * START**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How much ln(candidate/baseline) varies between rounds: standard deviations of the weighted mean over workloads,
    and of the workload that varies most."""

    mean: float
    workload: float


def smallest_shown(gate: Gate, candidates: int, look: int, noise: Noise) -> float:
    """The smallest true advantage, as a fraction and equal on all workloads, that is expected to pass after `look`
    rounds: the mean's lower bound exceeds the minimum improvement, and each workload's the tolerated regression."""
    error = (1 - gate.confidence) / (candidates * len(gate.decide_after_rounds))
    quantile = student_quantile(error, look - 1) / math.sqrt(look)
    mean = math.log1p(gate.min_improvement) + quantile * max(noise.mean, gate.variance_floor)
    each = math.log1p(-gate.max_regression) + quantile * max(noise.workload, gate.variance_floor)
    return math.expm1(max(mean, each))


def assumed_noise(
    requests: Mapping[str, int], weights: Mapping[str, float], spreads: Mapping[str, float] | None = None
) -> Noise:
    """`requests`: how many a round sends of each workload; `weights`: each workload's weight in the mean; `spreads`:
    standard deviation of ln(speed) between its requests."""
    own = {
        name: 2 * POINT**2 + (2 * (spreads or {}).get(name, 0.0) ** 2 + _PROMPTS**2) / sent
        for name, sent in requests.items()
    }
    total = math.fsum(weights.values())
    mean = math.fsum((weights[name] / total) ** 2 * variance for name, variance in own.items())
    shared = 2 * START**2
    return Noise(mean=math.sqrt(shared + mean), workload=math.sqrt(shared + max(own.values())))


def observed_noise(runs: Iterable[Rounds]) -> tuple[Noise, int] | None:
    """The noise pooled over the candidates of earlier runs, and the number of rounds it comes from; None if no
    candidate has two complete rounds."""
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
    """For each candidate: workload → ln(candidate/baseline) of its complete rounds."""
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
