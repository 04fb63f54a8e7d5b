"""Sets the next round's number of requests per workload, from the first round's baseline and never from a ratio.

The records are the whole state, so every pass and every try of a round compute the same numbers, and all arms of a
round get the same. Later looks at the same candidates do not depend on their results in the first rounds, which
preserves the gate's error rates (decision 0068).
"""

from collections.abc import Sequence
from dataclasses import replace

from paceline.api.load import MOST_REQUESTS
from paceline.api.round import PointRecord, Round
from paceline.core import BASELINE, Gate, Purpose, RunSpec, Workload
from paceline.core.record import finite
from paceline.gate import enough_requests

OF_REQUESTS = ("p95TTFT", "p95TPOT", "p95E2E")
"""Metrics whose limits need a percentile over a round's requests."""


def next_workloads(run: RunSpec, records: Sequence[Round]) -> tuple[Workload, ...]:
    """The workloads of the next round."""
    if run.purpose is not Purpose.GATE or not by_noise(run.gate):
        return run.workloads
    weights = [workload.weight for workload in run.workloads if not workload.rate]
    return tuple(_next(run, workload, records, weights) for workload in run.workloads)


def by_noise(gate: Gate) -> bool:
    """Whether fewer requests are enough for everything that is judged."""
    return not any(limit.metric in OF_REQUESTS for limit in gate.limits)


def _next(run: RunSpec, workload: Workload, records: Sequence[Round], weights: Sequence[float]) -> Workload:
    """By the first round with a valid baseline that reports its spread."""
    for record in records:
        for point in () if record.error else record.points:
            spread = finite(point.request_spread)
            of_this = point.arm == BASELINE and point.workload == workload.name and point.valid
            if of_this and spread is not None and spread >= 0:
                return with_enough_requests(workload, spread, weights, _most(run, workload, record, point))
    return workload


def with_enough_requests(workload: Workload, spread: float, weights: Sequence[float], most: int) -> Workload:
    """The workload with enough requests for this spread of the baseline: fewer than in the first round, or up to `most`
    if that sends as few as the steady window allows. `weights`: of all closed loops."""
    dataset = workload.dataset
    if dataset.min_requests is None:
        return workload
    most = dataset.requests if dataset.min_requests < dataset.requests else max(dataset.requests, most)
    enough = max(dataset.min_requests, min(most, enough_requests(spread, weights)))
    if enough == dataset.requests:
        return workload
    return replace(workload, dataset=replace(dataset, requests=enough, part=max(enough, dataset.requests)))


def _most(run: RunSpec, workload: Workload, record: Round, point: PointRecord) -> int:
    """Requests for which the set has prompts and the load takes no longer than the server's start, which it shares with
    the other loads. 0 if a person has set a limit that longer rounds may exceed."""
    if run.gpu_hours is not None or run.timeouts.workload is not None:
        return 0
    size = record.prompts.get(workload.dataset.name) or 0
    start = next((one.start_seconds for one in record.replicates if one.arm == BASELINE), None)
    return min(share_of(size, run.gate), in_the_time_of_a_start(start, len(run.workloads), point), MOST_REQUESTS)


def share_of(size: int, gate: Gate) -> int:
    """Prompts for each round from a set of `size`; the warm-up and a round that is lost have one more share."""
    return size // (gate.decide_after_rounds[-1] + 1)


def size_for(share: int, gate: Gate) -> int:
    """Prompts of a set that has such a share for each round."""
    return share * (gate.decide_after_rounds[-1] + 1)


def in_the_time_of_a_start(start: float | None, workloads: int, point: PointRecord) -> int:
    """Requests that all `workloads` together can send, each as many, while a server starts: until then starts cost more
    than loads. `start`: seconds."""
    speed, tokens = finite(point.output_throughput), finite(point.output_tokens)
    if not start or not speed or not tokens or not point.asked:
        return 0
    return int(finite(start / workloads * speed / (tokens / point.asked)) or 0)
