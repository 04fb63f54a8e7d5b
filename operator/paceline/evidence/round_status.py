"""Rounds as records (`api/round.py`); the gate's measurements and the noise from these records.

Numbers are rounded to the six digits of a BenchmarkRound at once, so that the gate reads the same values before and
after a round is recorded.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

from paceline.api import round as recorded
from paceline.api.round import ReplicateParity, Round
from paceline.core import BASELINE, INCUMBENT, Answers, Measurement, Workload
from paceline.core.manifest import Scalar
from paceline.core.numbers import ContextNumbers, Numbers
from paceline.core.record import finite, from_status, inner, slots, to_status
from paceline.evidence import clocks
from paceline.evidence.failures import BLAMES_THE_SERVER, Failure, of_server
from paceline.evidence.judge import Judged, nothing_accepted
from paceline.evidence.loads import load_notes, mean_under_way, saturated
from paceline.evidence.outputs import Outputs, cut
from paceline.evidence.prompts import repeated_note
from paceline.evidence.result import Parts, Replicate, RoundResult
from paceline.evidence.result_log import PARTS
from paceline.evidence.round_plan import RoundPlan

_TAKEN = tuple(field.name for field in fields(Numbers) if field.name != "contexts")
"""Numbers of a point that a record takes from the round's result."""
METRICS = {slot.wire: slot.name for slot in slots(recorded.PointRecord) if inner(slot.type) in (int, float)}
"""Metrics of a measurement: name in status and in `Gate.limits` → the point record's field. `kvTokens` is added from
the replicate."""
UNSEEN = {
    "accept_length": "acceptance is unavailable: could not check that anything was accepted",
    "verify_calls": "verify calls are unavailable: could not check that speculation ran and accepted anything",
    "retractions": "retractions are unavailable: could not check whether requests were retracted",
    "draft_tokens": "proposed tokens are unavailable: could not see how deep the engine drafted",
    "accepted_at": "acceptance by position is unavailable: this engine does not report it",
}
"""Note for each number that an engine cannot show (`ArmCommand.unseen`)."""


def round_record(
    plan: RoundPlan,
    result: RoundResult,
    judged: Sequence[Judged],
    job: str,
    node: str,
    image: str = "",
    held_seconds: float | None = None,
    client_image: str = "",
    own_images: Mapping[str, str] | None = None,
    image_seconds: Mapping[str, float] | None = None,
) -> Round:
    """A round with a result (docs/architecture.md). Images: the digests that ran; `own_images`: of the arms with an
    engine of their own. `held_seconds`: how long the round's
    pod held accelerators; None: as long as the client's clock shows. `image_seconds`: how long each arm's container
    waited for its image."""
    lasted = result.finished - result.started
    held = lasted if held_seconds is None else max(held_seconds, lasted)
    workloads = {workload.name: workload for workload in plan.workloads}
    drafts = {arm.name: arm.drafts for arm in plan.arms}
    lines = recorded.Raw(path=plan.lines_path, sha256=result.lines_sha256, bytes=result.lines_bytes)
    record = Round(
        round=plan.round,
        try_=plan.try_,
        job=job,
        node=node,
        start_time=_rfc3339(result.started),
        completion_time=_rfc3339(result.finished),
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
            *_unseen_notes(plan),
            *_all_cut_note(plan, judged),
            *_rest_notes(judged),
            *_fewer_note(plan),
            *_more_note(plan),
            *load_notes(plan, judged),
            *repeated_note(plan.workloads, plan.drawn, result.prompts),
            *clocks.throttle_note((replicate.arm, replicate.clocks) for replicate in result.replicates),
            *_energy_notes(result.replicates),
            *result.notes,
        ),
        inputs=tuple(_inputs(judged)),
        engine_version=result.engine_version,
        emulated=result.emulated,
        replicates=tuple(
            replace(
                _replicate(one, judged, (own_images or {}).get(one.arm)),
                seconds=_seconds(one.seconds, (image_seconds or {}).get(one.arm)),
            )
            for one in result.replicates
        ),
        points=tuple(_point(point, workloads[point.workload], drafts[point.arm]) for point in judged),
    )
    return from_status(Round, to_status(record))


def _inputs(judged: Sequence[Judged]) -> Iterable[recorded.Inputs]:
    """One record per workload, because a workload's prompts are the same on all arms."""
    for workload in dict.fromkeys(entry.workload for entry in judged):
        points = [entry.point for entry in judged if entry.workload == workload and entry.point]
        if counted := next((point for point in points if point.mean_input), None):
            yield recorded.Inputs(
                workload=workload,
                mean=counted.mean_input,
                p50=counted.p50_input,
                p99=counted.p99_input,
                client_cpu=max((point.client_cpu or 0.0 for point in points), default=None),
                client_lag=max((point.client_lag or 0.0 for point in points), default=None),
            )


def _rest_notes(judged: Sequence[Judged]) -> list[str]:
    """One note per arm, with the workloads on which the arm's engine chose not to draft."""
    where: dict[str, list[str]] = defaultdict(list)
    for point in judged:
        if point.at_rest:
            where[point.arm].append(point.workload)
    return [
        f"{arm} rested on {', '.join(workloads)}: its engine chose not to draft at these loads"
        for arm, workloads in where.items()
    ]


def _unseen_notes(plan: RoundPlan) -> Iterator[str]:
    """One note per number, with the arms that cannot show it if others can."""
    for name, note in UNSEEN.items():
        arms = [arm.name for arm in plan.arms if name in arm.unseen]
        if arms:
            yield note if len(arms) == len(plan.arms) else f"{', '.join(arms)}: {note}"


def _energy_notes(replicates: Sequence[Replicate]) -> Iterator[str]:
    """One note per reason why the energy is unknown, with the arms."""
    arms: dict[str, list[str]] = defaultdict(list)
    for one in replicates:
        if one.no_energy:
            arms[one.no_energy].append(one.arm)
    for why, names in arms.items():
        yield f"energy is unknown on {', '.join(names)}: {why}"


def _fewer_note(plan: RoundPlan) -> list[str]:
    """Note on workloads for which this round sent fewer requests than the first one."""
    sizes = {load.name: (load.dataset.requests, load.dataset.part) for load in plan.workloads if load.dataset.part}
    fewer = [f"{sent} of {part} on {name}" for name, (sent, part) in sizes.items() if part and sent < part]
    if not fewer:
        return []
    return [
        "fewer requests were sent, as more would not tighten the interval by the first round's baseline: "
        f"{', '.join(fewer)}"
    ]


def _more_note(plan: RoundPlan) -> list[str]:
    """Note on workloads for which this round sent more requests than the first one."""
    more = [f"{sent} on {load.name}" for load in plan.workloads if (sent := load.dataset.requests) == load.dataset.part]
    if not more:
        return []
    return [f"more requests were sent, as the noise of the first round's baseline asks for: {', '.join(more)}"]


def _all_cut_note(plan: RoundPlan, judged: Sequence[Judged]) -> list[str]:
    """If every answer hit max_tokens, all arms produce the same token count, so comparing counts proves nothing."""
    most = {load.name: load.dataset.requests * load.dataset.max_tokens for load in plan.workloads}
    counts: dict[str, set[int | None]] = defaultdict(set)
    for entry in judged:
        if entry.valid and entry.point:
            counts[entry.workload].add(entry.point.output_tokens)
    all_cut = [name for name in most if counts[name] == {most[name]}]
    if not all_cut:
        return []
    return [f"every answer reached maxTokens on {', '.join(all_cut)}: equal token counts prove nothing there"]


def failed_round(
    *,
    round: int,
    try_: int,
    job: str,
    node: str,
    error: str,
    reason: Failure,
    held_seconds: int | None = None,
    ended: datetime | None = None,
) -> Round:
    """A round without a result: it counts as a try, measures nothing, and all of its time was idle. `ended`: when it
    was given up; the next try waits for some time after it."""
    return Round(
        round=round,
        try_=try_,
        job=job,
        node=node,
        completion_time=_rfc3339(ended.timestamp()) if ended else "",
        held_seconds=held_seconds,
        idle_seconds=held_seconds,
        reason=reason.name,
        error=error,
    )


def last_tries(rounds: Iterable[Round]) -> tuple[Round, ...]:
    """The last try with a result of every round, in order."""
    return tuple({record.round: record for record in sorted(rounds, key=_order) if not record.error}.values())


def measurements(rounds: Iterable[Round]) -> list[Measurement]:
    """The gate's input: of each round, in order, the last try that has a result; every point of that try, with the
    point's `judged_speed`."""
    return [
        _measurement(record.round, point, _replicate_of(record, point.arm))
        for record in last_tries(rounds)
        for point in record.points
    ]


def _replicate_of(record: Round, arm: str) -> recorded.ReplicateRecord:
    return next((replicate for replicate in record.replicates if replicate.arm == arm), recorded.ReplicateRecord())


def answers(rounds: Iterable[Round]) -> list[Answers]:
    """The gate's input about answers: every round with a result whose baseline answered, in order."""
    return [answers for record in rounds if not record.error and (answers := _answers(record))]


def _answers(record: Round) -> Answers | None:
    parities = {replicate.arm: replicate.parity or ReplicateParity() for replicate in record.replicates}
    baseline = next((parity.outputs for parity in parities.values() if parity.outputs), "")
    if not baseline:
        return None
    return Answers(
        round=record.round,
        baseline=tuple(cut(baseline)),
        diverged={
            arm: frozenset(parity.diverged_at) for arm, parity in parities.items() if parity.diverged is not None
        },
    )


def point_noise(rounds: Iterable[Round]) -> float | None:
    """The noise of a point: pooled standard deviation of ln throughput over rounds, per arm and workload.

    Small values are close to the coefficient of variation (0.003 is 0.3 %). None until a point was measured twice.
    """
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for measured in measurements(rounds):
        if measured.valid and measured.output_throughput:
            groups[measured.arm, measured.workload].append(math.log(measured.output_throughput))
    repeated = [logs for logs in groups.values() if len(logs) > 1]
    freedom = sum(len(logs) - 1 for logs in repeated)
    if not freedom:
        return None
    means = [math.fsum(logs) / len(logs) for logs in repeated]
    squares = math.fsum((x - mean) ** 2 for logs, mean in zip(repeated, means, strict=True) for x in logs)
    return math.sqrt(squares / freedom)


def _replicate(replicate: Replicate, judged: Sequence[Judged], image: str | None) -> recorded.ReplicateRecord:
    """`image`: of an arm with an engine of its own, else None."""
    failure = of_server(replicate.exit_code, replicate.error, replicate.failure) or _of_requests(replicate.arm, judged)
    return recorded.ReplicateRecord(
        arm=replicate.arm,
        start_seconds=replicate.start_seconds,
        exit_code=replicate.exit_code,
        error=replicate.error,
        reason=failure.name if failure else "",
        resolved={key: _text(value) for key, value in replicate.resolved.items()},
        rest_sha256=replicate.rest_sha256,
        differs=tuple(map(str, replicate.differs or ())),
        differing=replicate.differing or None,
        version="" if image is None else replicate.version,
        image=image or "",
        kv_tokens=replicate.kv_tokens or None,
        clocks=clocks_record(replicate.clocks) if replicate.clocks else None,
        parity=_parity(replicate.outputs) if replicate.outputs else None,
    )


def _seconds(parts: Parts, image: float | None) -> recorded.ReplicateTime | None:
    """None if nothing is known."""
    found = recorded.ReplicateTime(image=image, **{part: _finite(getattr(parts, part)) for part in PARTS})
    return None if found == recorded.ReplicateTime() else found


def _of_requests(arm: str, judged: Sequence[Judged]) -> Failure | None:
    """The worst failure of an arm's requests on any workload, if its server lived to the end."""
    failures = {objection.failure for point in judged if point.arm == arm for objection in point.objections}
    worst_first = (Failure.Retracted, Failure.RequestsFailed, Failure.Malformed, Failure.ClientBusy)
    return next((failure for failure in worst_first if failure in failures), None)


def clocks_record(readings: clocks.Clocks) -> recorded.ReplicateClocks:
    """Convert the clocks of a replicate to a record."""
    return recorded.ReplicateClocks(
        sm_mhz=readings.sm_mhz,
        most_sm_mhz=readings.most_sm_mhz,
        power_limit_watts=readings.limit_watts,
        celsius=readings.celsius,
        throttled=tuple(
            recorded.ReplicateThrottled(
                workload=load.workload, reasons=tuple(clocks.throttle_names(load.reasons)), percent=load.percent
            )
            for load in readings.throttled
        ),
    )


def _parity(outputs: Outputs) -> ReplicateParity:
    if outputs.unknown:
        return ReplicateParity(unknown=outputs.unknown)
    if outputs.digests:
        return ReplicateParity(samples=len(outputs.digests), outputs="".join(outputs.digests))
    return ReplicateParity(
        samples=outputs.samples,
        identical=outputs.identical,
        near_ties=outputs.near_ties,
        diverged=len(outputs.diverged),
        diverged_at=outputs.diverged,
        first_divergence=outputs.first,
        largest_gap=outputs.gap,
    )


def _point(judged: Judged, workload: Workload, drafts: int | None) -> recorded.PointRecord:
    record = recorded.PointRecord(arm=judged.arm, workload=judged.workload, valid=judged.valid, why=judged.why)
    if judged.point is None:
        return record
    numbers: dict[str, Any] = {name: _finite(getattr(judged.point, name)) for name in _TAKEN}
    proposed, length = drafts or judged.point.draft_tokens, judged.point.accept_length
    return replace(
        record,
        **numbers,
        contexts=tuple(ContextNumbers(**asdict(one)) for one in judged.point.contexts),
        at_rest=judged.at_rest,
        accept_rate=(length - 1) / proposed if length and proposed else None,
        mean_concurrency=mean_under_way(judged.point, workload) or None if workload.at_one_load else None,
        offered_rate=workload.rate or None,
        request_speed=None if workload.at_one_load else judged.point.request_speed or None,
        saturated=saturated(judged.point, workload),
        goodput=judged.point.goodput,
        good_throughput=judged.point.good_throughput,
    )


def _finite(value: Any) -> Any:
    """The number if it is finite, else None; tuples are returned unchanged."""
    return value if isinstance(value, tuple) else finite(value)


def judged_speed(point: recorded.PointRecord) -> float | None:
    """The speed that the gate compares, in output tokens per second: of a request under way at a rate (0014) or on a
    ramp; of all requests in the steady window for a closed loop (0025). None if it is missing; nothing replaces it."""
    return finite(point.steady_throughput if point.request_speed is None else point.request_speed)


def _measurement(number: int, point: recorded.PointRecord, replicate: recorded.ReplicateRecord) -> Measurement:
    throughput = judged_speed(point)
    values = {wire: value for wire, name in METRICS.items() if (value := getattr(point, name)) is not None}
    if replicate.kv_tokens is not None:
        values["kvTokens"] = replicate.kv_tokens
    metrics = {name: float(value) for name, value in values.items() if finite(value) is not None}
    garbage = throughput is None or throughput <= 0 or len(metrics) < len(values)
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


def _ended(replicate: recorded.ReplicateRecord) -> str:
    """Why the arm's server did not last the round: any failure for the baseline and for the incumbent; for a candidate
    only a failure that blames the server. "" if neither."""
    blamed = replicate.arm in (BASELINE, INCUMBENT) or replicate.reason in {
        failure.name for failure in BLAMES_THE_SERVER
    }
    return replicate.reason if blamed else ""


def _text(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rfc3339(epoch: float) -> str:
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _order(record: Round) -> tuple[int, int]:
    return record.round, record.try_
