"""What a run's status keeps of its rounds, and what is made of it again: measurements for the gate, the noise.

The records are those of `api/run_status.py`. A number is kept as status has it, with at most six digits, so that the
gate reads the same in the pass that collects a round and in all later ones.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

from paceline.api import run_status
from paceline.api.record import finite, from_status, inner, slots, to_status
from paceline.api.run_status import ReplicateParity, Round
from paceline.core import BASELINE, Answers, Measurement, Workload
from paceline.evidence import clocks
from paceline.evidence.failures import BLAMES_THE_SERVER, Failure, of_server
from paceline.evidence.judge import Judged, nothing_accepted
from paceline.evidence.loads import load_notes, saturated, under_way
from paceline.evidence.outputs import Outputs, cut
from paceline.evidence.prompts import repeated_note
from paceline.evidence.result import Point, Replicate, RoundResult
from paceline.evidence.round_plan import RoundPlan, Scalar

SHARED = tuple({one.name for one in fields(run_status.Point)} & {one.name for one in fields(Point)} - {"workload"})
"""Numbers that status keeps of a point as the round's message has them."""
METRICS = {slot.wire: slot.name for slot in slots(run_status.Point) if inner(slot.type) in (int, float)}
"""What a measurement carries of a point: name in status, which `Gate.limits` have too, → the record's field. And
`kvTokens`, which is the replicate's."""
UNSEEN = {
    "accept_length": "acceptance is unavailable: whether anything was accepted was not checked",
    "verify_calls": "verify calls are unavailable: whether speculation ran and accepted anything was not checked",
    "retractions": "retractions are unavailable: whether requests lost their place was not checked",
    "draft_tokens": "proposed tokens are unavailable: how deep the engine drafted was not seen",
    "accepted_at": "acceptance by position is unavailable: this engine does not report it",
}
"""What is said of a number that the engine cannot show (`RoundPlan.unseen`)."""


def round_record(
    plan: RoundPlan,
    result: RoundResult,
    judged: Sequence[Judged],
    job: str,
    node: str,
    image: str = "",
    held_seconds: float | None = None,
    client_image: str = "",
) -> Round:
    """Of a round that gave a result (docs/architecture.md). Images are those that ran, by digest; `held_seconds` how
    long the round's pod held accelerators, by the client's own clock if nobody says."""
    lasted = result.finished - result.started
    held = lasted if held_seconds is None else max(held_seconds, lasted)
    asked = {workload.name: workload for workload in plan.workloads}
    drafts = {arm.name: arm.drafts for arm in plan.arms}
    lines = run_status.Raw(path=plan.lines_path, sha256=result.lines_sha256, bytes=result.lines_bytes)
    entry = Round(
        round=plan.round,
        try_=plan.attempt,
        job=job,
        node=node,
        started_at=_rfc3339(result.started),
        finished_at=_rfc3339(result.finished),
        held_seconds=round(held),
        idle_seconds=round(max(0.0, held - lasted + result.overhead_seconds)),
        gpus=result.gpus,
        gpu_model=result.gpu_model or "",
        driver=result.driver or "",
        image=image,
        client_image=client_image,
        paceline=result.paceline,
        datasets=dict(result.datasets),
        prompts=dict(result.prompts),
        raw=lines if result.lines_sha256 else None,
        notes=(
            *(UNSEEN[name] for name in plan.unseen if name in UNSEEN),
            *_all_cut(plan, judged),
            *_rests(judged),
            *load_notes(plan, judged),
            *repeated_note(plan.workloads, plan.round, result.prompts),
            *clocks.note((one.arm, one.clocks) for one in result.replicates),
            *result.notes,
        ),
        engine_version=result.engine_version,
        emulated=result.emulated,
        replicates=tuple(_replicate(replicate, judged) for replicate in result.replicates),
        points=tuple(_point(one, asked[one.workload], drafts[one.arm]) for one in judged),
    )
    return from_status(Round, to_status(entry))


def _rests(judged: Sequence[Judged]) -> list[str]:
    """By arm, where its engine chose not to speculate (0028)."""
    where: dict[str, list[str]] = defaultdict(list)
    for one in judged:
        if one.at_rest:
            where[one.arm].append(one.workload)
    return [
        f"{arm} rested on {', '.join(workloads)}: its engine chose not to draft at these loads"
        for arm, workloads in where.items()
    ]


def _all_cut(plan: RoundPlan, judged: Sequence[Judged]) -> list[str]:
    """Where answers are cut, all arms write as many tokens whatever they write: the judge's comparison is an empty
    one."""
    most = {one.name: one.dataset.requests * one.dataset.max_tokens for one in plan.workloads}
    points = [one.point for one in judged if one.valid and one.point]
    cut = [name for name in most if all(one.output_tokens == most[name] for one in points if one.workload == name)]
    cut = [name for name in cut if any(one.workload == name for one in points)]
    if not cut:
        return []
    return [f"every answer reached maxTokens on {', '.join(cut)}: equal token counts prove nothing there"]


def failed_round(
    *,
    round: int,
    attempt: int,
    job: str,
    node: str,
    error: str,
    reason: Failure,
    held_seconds: int | None = None,
    ended: datetime | None = None,
) -> Round:
    """A round that gave no result: it counts as a try and measures nothing; all of its time was idle.
    `ended` is when that was known: the next try keeps a distance from it."""
    return Round(
        round=round,
        try_=attempt,
        job=job,
        node=node,
        finished_at=_rfc3339(ended.timestamp()) if ended else "",
        held_seconds=held_seconds,
        idle_seconds=held_seconds,
        reason=reason.name,
        error=error,
    )


def last_tries(rounds: Iterable[Round]) -> tuple[Round, ...]:
    """Of every round that gave a result the last try that did, in order."""
    return tuple({one.round: one for one in sorted(rounds, key=_order) if not one.error}.values())


def measurements(rounds: Iterable[Round]) -> list[Measurement]:
    """What the gate reads: every point of the last try of each round that gave a result, in order.

    Its speed is `judged_speed`: of a closed loop in its steady window, at a rate that of a request."""
    return [
        _measurement(one.round, point, _of_arm(one, point.arm)) for one in last_tries(rounds) for point in one.points
    ]


def _of_arm(entry: Round, arm: str) -> run_status.Replicate:
    """Its replicate in that round."""
    return next((one for one in entry.replicates if one.arm == arm), run_status.Replicate())


def answers(rounds: Iterable[Round]) -> list[Answers]:
    """What the gate reads: of every round that gave a result and whose baseline answered, in order."""
    return [found for one in rounds if not one.error and (found := _answers(one))]


def _answers(entry: Round) -> Answers | None:
    said = {one.arm: one.parity or ReplicateParity() for one in entry.replicates}
    baseline = next((parity.outputs for parity in said.values() if parity.outputs), "")
    if not baseline:
        return None
    return Answers(
        round=entry.round,
        baseline=tuple(cut(baseline)),
        diverged={arm: frozenset(parity.diverged_at) for arm, parity in said.items() if parity.diverged is not None},
    )


def point_noise(rounds: Iterable[Round]) -> float | None:
    """The noise of a point: pooled standard deviation of ln throughput over rounds, per arm and workload.

    Near the coefficient of variation for small values (0.003 is 0.3 %). None before anything was measured twice.
    """
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in measurements(rounds):
        if one.valid and one.output_throughput:
            groups[one.arm, one.workload].append(math.log(one.output_throughput))
    repeated = [logs for logs in groups.values() if len(logs) > 1]
    freedom = sum(len(logs) - 1 for logs in repeated)
    if not freedom:
        return None
    means = [math.fsum(logs) / len(logs) for logs in repeated]
    squares = math.fsum((x - mean) ** 2 for logs, mean in zip(repeated, means, strict=True) for x in logs)
    return math.sqrt(squares / freedom)


def _replicate(replicate: Replicate, judged: Sequence[Judged]) -> run_status.Replicate:
    failure = of_server(replicate.exit_code, replicate.error, replicate.failure) or _of_requests(replicate.arm, judged)
    return run_status.Replicate(
        arm=replicate.arm,
        start_seconds=replicate.start_seconds,
        exit_code=replicate.exit_code,
        error=replicate.error,
        reason=failure.name if failure else "",
        resolved={key: _text(value) for key, value in replicate.resolved.items()},
        rest_sha256=replicate.rest_sha256,
        differs=tuple(map(str, replicate.differs or ())),
        kv_tokens=replicate.kv_tokens or None,
        clocks=clocks_record(replicate.clocks) if replicate.clocks else None,
        parity=_parity(replicate.outputs) if replicate.outputs else None,
    )


def _of_requests(arm: str, judged: Sequence[Judged]) -> Failure | None:
    """The worst failure of an arm's requests, on any workload, of a server that lived to the end."""
    failures = {objection.failure for point in judged if point.arm == arm for objection in point.objections}
    return next((failure for failure in (Failure.Retracted, Failure.RequestsFailed) if failure in failures), None)


def clocks_record(found: clocks.Clocks) -> run_status.ReplicateClocks:
    """`clocks` of a replicate."""
    return run_status.ReplicateClocks(
        sm_mhz=found.sm_mhz,
        most_sm_mhz=found.most_sm_mhz,
        power_limit_watts=found.limit_watts,
        celsius=found.celsius,
        throttled=tuple(
            run_status.ReplicateThrottled(
                workload=one.workload, reasons=tuple(clocks.names(one.reasons)), percent=one.percent
            )
            for one in found.throttled
        ),
    )


def _parity(found: Outputs) -> ReplicateParity:
    if found.unknown:
        return ReplicateParity(unknown=found.unknown)
    if found.digests:
        return ReplicateParity(samples=len(found.digests), outputs="".join(found.digests))
    return ReplicateParity(
        samples=found.samples,
        identical=found.identical,
        near_ties=found.near_ties,
        diverged=len(found.diverged),
        diverged_at=found.diverged,
        first_divergence=found.first,
        largest_gap=found.gap,
    )


def _point(judged: Judged, workload: Workload, drafts: int | None) -> run_status.Point:
    known = run_status.Point(arm=judged.arm, workload=judged.workload, valid=judged.valid, why=judged.why)
    if judged.point is None:
        return known
    numbers: dict[str, Any] = {name: _kept(getattr(judged.point, name)) for name in SHARED}
    proposed, length = drafts or judged.point.draft_tokens, judged.point.accept_length
    return replace(
        known,
        **numbers,
        at_rest=judged.at_rest,
        accept_rate=(length - 1) / proposed if length and proposed else None,
        mean_concurrency=None if workload.rate else under_way(judged.point, workload) or None,
        offered_rate=workload.rate or None,
        request_speed=judged.point.request_speed or None if workload.rate else None,
        saturated=saturated(judged.point, workload),
    )


def _kept(value: Any) -> Any:
    """A number that is finite, or a row of them."""
    return value if isinstance(value, tuple) else finite(value)


def judged_speed(point: run_status.Point) -> float | None:
    """What the gate compares, in output tokens per second: of a request under way where requests arrived at a rate
    (0014), else of all together in the steady window (0025). None, and nothing else in its place, where that is not
    there."""
    return finite(point.steady_throughput if point.request_speed is None else point.request_speed)


def _measurement(number: int, point: run_status.Point, replicate: run_status.Replicate) -> Measurement:
    throughput = judged_speed(point)
    said = {wire: value for wire, name in METRICS.items() if (value := getattr(point, name)) is not None}
    if replicate.kv_tokens is not None:
        said["kvTokens"] = replicate.kv_tokens
    metrics = {name: float(value) for name, value in said.items() if finite(value) is not None}
    garbage = throughput is None or throughput <= 0 or len(metrics) < len(said)
    valid = point.valid and not garbage
    accepted_nothing = nothing_accepted(finite(point.accept_length), point.verify_calls) and not point.at_rest
    return Measurement(
        round=number,
        arm=point.arm,
        workload=point.workload,
        output_throughput=throughput,
        valid=valid,
        nothing_accepted=valid and point.arm != BASELINE and accepted_nothing,
        ended=_ended(replicate),
        saturated=point.saturated,
        metrics=metrics,
    )


def _ended(replicate: run_status.Replicate) -> str:
    """Why its server did not get through the round: of the baseline whatever happened to it, of a candidate what
    blames its own server and not the one who asked."""
    blamed = replicate.arm == BASELINE or replicate.reason in {failure.name for failure in BLAMES_THE_SERVER}
    return replicate.reason if blamed else ""


def _text(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rfc3339(epoch: float) -> str:
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _order(one: Round) -> tuple[int, int]:
    return one.round, one.try_
