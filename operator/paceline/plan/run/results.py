"""What a run shows: results per arm and workload, its cost, and Events when a round or the run has ended."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from paceline.api import run_status
from paceline.api.record import finite
from paceline.api.run_status import BenchmarkRunStatus, Cost
from paceline.core import ArmVerdict, Bounds
from paceline.evidence import fingerprint
from paceline.evidence.round_status import measurements
from paceline.gate import explain
from paceline.plan.run import sweep
from paceline.plan.run.own_args import own_args
from paceline.plan.run.parity import parity
from paceline.plan.run.snapshot import Evidence, Snapshot
from paceline.plan.run.taken import own
from paceline.plan.step import Event

MEAN = "mean"
MEAN_AT_A_RATE = "mean@rate"
"""Of a run that has closed loops, too. No workload is called so: a rate is a number."""


def results(evidence: Evidence, snapshot: Snapshot) -> dict[str, Any]:
    """Fields of status: ratios as the gate sees them at its latest look, provenance from the rounds."""
    told: dict[str, Any] = {"fingerprint": fingerprint(snapshot.manifest["spec"])}
    if not evidence.results:
        return told
    told |= _swept(evidence) if evidence.sweep else _judged(evidence)
    last = evidence.results[-1]
    images = {"server": last.image, "client": last.client_image}
    return told | {
        "crossover": sweep.spots(evidence),
        "engine_version": last.engine_version,
        "emulated": any(record.emulated for record in evidence.results),
        "gpus": last.gpus,
        "gpu_model": last.gpu_model,
        "driver": last.driver,
        "image_digests": {container: digest for container, digest in images.items() if digest},
        "paceline": ", ".join(dict.fromkeys(record.paceline for record in evidence.results if record.paceline)),
    }


def cost(evidence: Evidence) -> Cost | None:
    """What its rounds took, those that gave no result included, and how many servers were started for results. What
    another run has measured has cost that one."""
    if not evidence.records:
        return None
    gpus, mine = evidence.spec.server.accelerator.count, own(evidence.records)
    return Cost(
        gpu_seconds=sum(record.held_seconds or 0 for record in mine) * gpus,
        idle_gpu_seconds=sum(record.idle_seconds or 0 for record in mine) * gpus,
        server_starts=sum(len(record.replicates) for record in mine if not record.error),
    )


def _judged(evidence: Evidence) -> dict[str, Any]:
    verdicts = evidence.verdict.arms
    return {
        "results": tuple(entry for name in verdicts for entry in _arm(evidence, name)),
        "arm_verdicts": tuple(_verdict(evidence, name, arm) for name, arm in verdicts.items()),
    }


def _verdict(evidence: Evidence, name: str, arm: ArmVerdict) -> run_status.ArmVerdict:
    return run_status.ArmVerdict(
        arm=name,
        outcome=arm.outcome.value,
        reason=explain(arm),
        margin=finite(arm.margin),
        args=next((own_args(asked) for asked in evidence.spec.arms if asked.name == name), ()),
        parity=parity(evidence, name),
    )


def _swept(evidence: Evidence) -> dict[str, Any]:
    """Without a mean over concurrencies, which would be of no load at all."""
    table = sweep.found(evidence)
    return {"results": tuple(_result(evidence, *one) for one in (sweep.effects(table) if table else ()))}


def _arm(evidence: Evidence, name: str) -> Iterator[run_status.Result]:
    arm = evidence.verdict.arms[name]
    if arm.mean is not None:
        yield _bounded(name, MEAN, arm.mean)
    if arm.rated is not None:
        yield _bounded(name, MEAN_AT_A_RATE, arm.rated)
    for workload, bounds in arm.workloads.items():
        yield _result(evidence, name, workload, bounds)


def _bounded(arm: str, workload: str, bounds: Bounds) -> run_status.Result:
    return run_status.Result(arm=arm, workload=workload, ratio=bounds.ratio, lower=bounds.lower, upper=bounds.upper)


def _result(evidence: Evidence, arm: str, workload: str, bounds: Bounds) -> run_status.Result:
    """With how long its answers are, as far as the gate knows: not of a sweep, which it does not judge."""
    entry = replace(_bounded(arm, workload, bounds), accept_length=_accept_lengths(evidence, arm).get(workload))
    found = None if evidence.sweep else evidence.verdict.arms[arm].lengths.get(workload)
    if found is None:
        return entry
    return replace(entry, tokens=found.ratio, tokens_lower=found.lower, tokens_upper=found.upper)


def _accept_lengths(evidence: Evidence, name: str) -> Mapping[str, float]:
    """Workload → mean over valid measurements."""
    found: dict[str, list[float]] = {}
    for one in measurements(evidence.records):
        if one.arm == name and one.valid and "acceptLength" in one.metrics:
            found.setdefault(one.workload, []).append(one.metrics["acceptLength"])
    return {workload: sum(lengths) / len(lengths) for workload, lengths in found.items()}


def events(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> tuple[Event, ...]:
    known = {record.job for record in before.rounds or ()}
    rounds = [_round(record) for record in own(after.rounds or ()) if record.job not in known]
    verdict = after.verdict
    if verdict is None or before.verdict is not None:
        return tuple(rounds)
    outcome = verdict.outcome or "Swept"
    bad = outcome == "Error"
    told = Event(reason=outcome, note=verdict.message, type="Warning" if bad else "Normal")
    return (*rounds, told)


def _round(record: run_status.Round) -> Event:
    number = record.round + 1
    if record.error:
        note = f"round {number}: {record.reason}: {record.error}"
        return Event(reason="RoundFailed", note=note, type="Warning")
    invalid = [point for point in record.points if not point.valid]
    if invalid:
        first = invalid[0]
        note = f"round {number}: {len(invalid)} points are invalid; {first.arm} on {first.workload}: {first.why}"
        return Event(reason="RoundInvalid", note=note, type="Warning")
    arms = ", ".join(replicate.arm for replicate in record.replicates)
    return Event(reason="RoundMeasured", note=f"round {number} on {record.node}: {arms}")
