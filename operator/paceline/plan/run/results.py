"""Status fields derived from the rounds: results per arm and workload, provenance and cost; and Events about them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from paceline.api import run_status
from paceline.api.round import Round
from paceline.api.run_status import BenchmarkRunStatus, RunCost
from paceline.core import BASELINE, INCUMBENT, ArmOutcome, ArmVerdict, Bounds, Purpose
from paceline.core.manifest import Object
from paceline.core.record import finite
from paceline.core.text import count
from paceline.engines.pod_template import CLIENT, SERVER, arm_container
from paceline.evidence import fingerprint
from paceline.gate import ClassResult, Finding, explain
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.means import energy_ratio, means_of
from paceline.plan.run.origin import own
from paceline.plan.run.own_args import differs, own_args
from paceline.plan.run.parity import parity
from paceline.plan.run.searched import FOUND, MEAN, search_progress, search_results
from paceline.plan.run.sweep import crossover_status, effects
from paceline.plan.step import Event

MEAN_AT_A_RATE = "mean@rate"
"""Name of the mean at a rate, in a run with closed loops too. No workload can have it, because a rate is a number."""

_SLOW_ELSEWHERE = (
    Finding.SLOWER_THAN_BASELINE,
    Finding.WORKLOAD_REGRESSED,
    Finding.BELOW_MINIMUM_IMPROVEMENT,
    Finding.SLOWER_THAN_INCUMBENT,
)
"""Reasons against an arm that say nothing against it on the dataset where it is the fastest."""


def results(evidence: Evidence, spec: Object) -> dict[str, Any]:
    """Fields of status: ratios from the gate's latest look, provenance from the rounds. `spec`: as stored."""
    measured = {"fingerprint": fingerprint(spec)}
    if not evidence.results:
        return measured
    last = evidence.results[-1]
    ends = [one.completion_time for one in evidence.results]
    images = {CLIENT: last.client_image}
    for record in evidence.results:  # an arm may have dropped out of the last one
        images |= {SERVER: record.image} if record.image else {}
        images |= {arm_container(one.arm): one.image for one in record.replicates if one.image}
    return {
        **measured,
        **_RESULTS[evidence.spec.purpose](evidence),
        "arm_rounds": _arm_rounds(evidence),
        "first_measured_time": min(ends),
        "last_measured_time": max(ends),
        "crossover": crossover_status(evidence),
        "engine_version": last.engine_version,
        "emulated": any(record.emulated for record in evidence.results),
        "imported": any(record.imported for record in evidence.results),
        "signer": evidence.signer,
        "image_digests": {container: digest for container, digest in images.items() if digest},
    }


def _arm_rounds(evidence: Evidence) -> dict[str, int]:
    """Arm → its rounds with a valid point."""
    valid = ({point.arm for point in record.points if point.valid} for record in evidence.results)
    counts = Counter(arm for arms in valid for arm in arms)
    return {arm.name: counts[arm.name] for arm in evidence.spec.arms if counts[arm.name]}


def cost(evidence: Evidence) -> RunCost | None:
    """Accelerator time of this run's own rounds, including those without a result, and the servers started for results.
    Rounds taken over count for the run that measured them."""
    if not evidence.records:
        return None
    gpus, rounds = evidence.spec.server.accelerator.count, own(evidence.records)
    servers = [one for record in rounds for one in record.replicates]
    loads = [seconds for one in servers if one.seconds and (seconds := finite(one.seconds.loads)) is not None]
    return RunCost(
        gpu_seconds=sum(record.held_seconds or 0 for record in rounds) * gpus,
        idle_gpu_seconds=sum(record.idle_seconds or 0 for record in rounds) * gpus,
        starting_gpu_seconds=round(math.fsum(finite(one.start_seconds) or 0.0 for one in servers) * gpus),
        load_gpu_seconds=round(math.fsum(loads) * gpus) if loads else None,
        server_starts=sum(len(record.replicates) for record in rounds if not record.error),
    )


def _search_results(evidence: Evidence) -> dict[str, Any]:
    return {"results": search_results(evidence), "search": search_progress(evidence)}


def _gate_results(evidence: Evidence) -> dict[str, Any]:
    verdicts = evidence.verdict.arms
    return {
        "results": tuple(result for name in verdicts for result in _arm_results(evidence, name)),
        "arm_verdicts": tuple(_arm_verdict(evidence, name, arm) for name, arm in verdicts.items()),
        "classes": tuple(_class(found, verdicts.get(found.arm)) for found in evidence.classes),
    }


def _class(found: ClassResult, verdict: ArmVerdict | None) -> run_status.ClassSpot:
    """An arm that was rejected for more than its speed elsewhere, such as other answers, is best nowhere."""
    unfit = verdict is not None and verdict.outcome is ArmOutcome.REJECTED and verdict.reason not in _SLOW_ELSEWHERE
    return run_status.ClassSpot(
        dataset=found.dataset,
        best="" if unfit else found.best or "",
        arm=found.arm,
        rival=found.rival,
        ratio=found.bounds.ratio,
        lower=found.bounds.lower,
        upper=found.bounds.upper,
    )


def _arm_verdict(evidence: Evidence, name: str, verdict: ArmVerdict) -> run_status.CandidateVerdict:
    return run_status.CandidateVerdict(
        arm=name,
        outcome=verdict.outcome.value,
        reason=explain(verdict),
        margin=finite(verdict.margin),
        incumbent=_beside_incumbent(verdict.incumbent),
        args=next((own_args(arm) for arm in evidence.spec.arms if arm.name == name), ()),
        differs=differs(evidence, name).sentences,
        parity=parity(evidence, INCUMBENT if name == BASELINE else name),
    )


def _beside_incumbent(bounds: Bounds | None) -> run_status.BesideIncumbent | None:
    if bounds is None:
        return None
    return run_status.BesideIncumbent(ratio=bounds.ratio, lower=bounds.lower, upper=bounds.upper)


def _sweep_results(evidence: Evidence) -> dict[str, Any]:
    """Results without a mean, because a mean over several concurrencies would describe no real load."""
    table = evidence.crossover
    rows = effects(table) if table else ()
    return {"results": tuple(_result(evidence, arm, workload, bounds) for arm, workload, bounds in rows)}


_RESULTS: Mapping[Purpose, Callable[[Evidence], dict[str, Any]]] = {
    Purpose.GATE: _gate_results,
    Purpose.SEARCH: _search_results,
    Purpose.SWEEP: _sweep_results,
}


def _arm_results(evidence: Evidence, name: str) -> Iterator[run_status.Result]:
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
    """A candidate's result on one workload; with the answers' lengths if the gate compares them, which it does not in a
    Sweep."""
    means = means_of(evidence, arm, workload)
    result = replace(
        _bounded(arm, workload, bounds),
        accept_length=evidence.accept_lengths.get((arm, workload)),
        energy=energy_ratio(evidence, arm, workload),
        concurrency=means.concurrency,
        mean_ttft=means.mean_ttft,
        mean_tpot=means.mean_tpot,
    )
    tokens = None if evidence.sweep else evidence.verdict.arms[arm].lengths.get(workload)
    if tokens is None:
        return result
    return replace(result, tokens=tokens.ratio, tokens_lower=tokens.lower, tokens_upper=tokens.upper)


def round_events(rounds: Iterable[Round]) -> tuple[Event, ...]:
    """One Event for each round that the run measured itself."""
    return tuple(map(_round_event, own(rounds)))


def verdict_events(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> tuple[Event, ...]:
    """An Event for a new verdict."""
    verdict = after.verdict
    if verdict is None or before.verdict is not None:
        return ()
    outcome = verdict.outcome or (FOUND if verdict.winner else "Swept")
    return (Event(reason=outcome, note=verdict.message, type="Warning" if outcome == "Error" else "Normal"),)


def _round_event(record: Round) -> Event:
    number = record.round + 1
    if record.error:
        note = f"round {number}: {record.reason}: {record.error.removeprefix(f'{record.reason}: ')}"
        return Event(reason="RoundFailed", note=note, type="Warning")
    invalid = [point for point in record.points if not point.valid]
    if invalid:
        first = invalid[0]
        note = f"round {number}: {count(len(invalid), 'invalid point')}; {first.arm} on {first.workload}: {first.why}"
        return Event(reason="RoundInvalid", note=note, type="Warning")
    arms = ", ".join(replicate.arm for replicate in record.replicates)
    return Event(reason="RoundMeasured", note=f"round {number} on {record.node}: {arms}")
