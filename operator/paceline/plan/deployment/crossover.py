"""The load above which the baseline is faster than a candidate, as the runs of all pools of a deployment show it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.api.record import from_status
from paceline.api.run_status import Result
from paceline.core.canonical import without_empty
from paceline.evidence.fingerprint import SERVER
from paceline.plan.deployment.alike import LOAD
from paceline.plan.objects import Object, finished

Spec = Mapping[str, Any]
"""The spec of a BenchmarkRun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Candidate over baseline at one concurrency: geometric means over its datasets."""

    ratio: float
    lower: float
    upper: float


def crossover(evidence: Spec, arm: str, runs: Iterable[Object]) -> float | None:
    """The concurrency at which the arm of `evidence` is as fast as the baseline, on a straight line of ln(ratio) over
    ln(concurrency) between the largest load at which it was shown faster and the next at which it was shown slower.
    None if it was shown slower at no load, or faster at none below. Of one load the latest run counts."""
    ratios: dict[int, Ratio] = {}
    for run in sorted(runs, key=lambda run: str((run.get("status") or {}).get("completionTime", ""))):
        if finished(run) and (name := _same_arm(evidence, arm, run["spec"])):
            ratios |= _by_load(_results(run, name))
    slower = min((load for load, found in ratios.items() if found.upper < 1), default=None)
    faster = max((load for load, found in ratios.items() if found.lower > 1 and load < (slower or 0)), default=None)
    return None if slower is None or faster is None else _zero(faster, ratios[faster], slower, ratios[slower])


def _zero(faster: int, above: Ratio, slower: int, below: Ratio) -> float:
    high, low = math.log(above.ratio), math.log(below.ratio)
    return faster * math.pow(slower / faster, high / (high - low))


def _same_arm(evidence: Spec, arm: str, other: Spec) -> str | None:
    """The name in `other` of this arm, if its server is the same. The pool's largest concurrency may differ: it bounds
    the number of requests, and shapes none of them."""
    keys = [key for key in SERVER if key != LOAD]
    if any(without_empty(evidence.get(key)) != without_empty(other.get(key)) for key in keys):
        return None
    wanted = next((_unnamed(each) for each in evidence["arms"] if each["name"] == arm), None)
    return next((each["name"] for each in other["arms"] if _unnamed(each) == wanted), None)


def _unnamed(arm: Spec) -> Any:
    return without_empty({key: value for key, value in arm.items() if key != "name"})


def _results(run: Object, arm: str) -> Iterator[tuple[int, Result]]:
    """Concurrency and result of each closed loop that has bounds."""
    for entry in (run.get("status") or {}).get("results") or ():
        result = from_status(Result, entry)
        load = result.workload.rpartition("@")[2]
        if result.arm == arm and load.isdigit() and result.ratio and result.lower and result.upper:
            yield int(load), result


def _by_load(results: Iterable[tuple[int, Result]]) -> dict[int, Ratio]:
    found = defaultdict[int, list[Result]](list)
    for load, result in results:
        found[load].append(result)
    return {
        load: Ratio(
            ratio=_mean(result.ratio for result in of_load),
            lower=_mean(result.lower for result in of_load),
            upper=_mean(result.upper for result in of_load),
        )
        for load, of_load in found.items()
    }


def _mean(values: Iterable[float | None]) -> float:
    """Geometric."""
    logs = [math.log(value) for value in values if value and value > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else math.nan
