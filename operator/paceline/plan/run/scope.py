"""Limits of a verdict: ramps, sampling of requests, and whether it covers only the prompts that were sent."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from paceline.api.round import Round
from paceline.core import RunSpec, Workload
from paceline.core.text import count
from paceline.engines import ENGINES
from paceline.evidence import of_these_prompts
from paceline.evidence.result import MOST_WINDOWS, WARM


def scope(spec: RunSpec, rounds: Iterable[Round]) -> str:
    """What the verdict covers, for the end of its message. `rounds`: the records with a result."""
    rounds = tuple(rounds)
    prompts = ((_as_sent(spec, record), record.round, record.prompts) for record in rounds)
    return "; ".join(filter(None, (ramps(spec), sampled(spec), of_these_prompts(prompts), _cold(rounds))))


def _cold(rounds: Sequence[Round]) -> str:
    """`narrow on code@32 was still becoming faster after 4 windows of warm-up in 2 rounds`; "" if none was."""
    found = Counter(
        f"{point.arm} on {point.workload}"
        for record in rounds
        for point in record.points
        if (point.warm_up_windows or 0) >= MOST_WINDOWS and (point.warm_up_gain or 0) > WARM
    )
    return ", ".join(
        f"{where} was still becoming faster after {MOST_WINDOWS} windows of warm-up in {count(times, 'round')}"
        for where, times in found.items()
    )


def ramps(spec: RunSpec) -> str:
    """`code@1-32 is a ramp: …` for each ramp; "" without one."""
    return ", ".join(
        f"{workload.name} is a ramp: requests under way rise from {workload.dataset.ramp_from} to "
        f"{workload.concurrency} and fall back, and the speed of a request is compared"
        for workload in spec.workloads
        if workload.levels
    )


def _as_sent(spec: RunSpec, record: Round) -> tuple[Workload, ...]:
    """The workloads with the number of requests in this round, which differs from the first round's (0068)."""
    asked = {point.workload: point.asked for point in record.points if point.asked}
    return tuple(
        replace(load, dataset=replace(load.dataset, requests=sent, part=max(sent, load.dataset.requests)))
        if (sent := asked.get(load.name))
        else load
        for load in spec.workloads
    )


def sampled(spec: RunSpec) -> str:
    """`at temperature 0`; if workloads differ, each with its name."""
    by_workload = {workload.name: _sampling(spec, workload) for workload in spec.workloads}
    kinds = dict.fromkeys(by_workload.values())
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(
        f"{' and '.join(name for name, way in by_workload.items() if way == kind)} {kind}" for kind in kinds
    )


def _sampling(spec: RunSpec, workload: Workload) -> str:
    if workload.dataset.temperature is not None:
        return f"at temperature {workload.dataset.temperature:g}"
    engine = spec.server.engine
    own = ENGINES[engine.type].probe(engine.version).own_temperature
    return "at the model's own sampling" if own is None else f"at the server's own temperature, {own:g}"
