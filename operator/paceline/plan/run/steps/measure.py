"""Step 7: start the next round, one Job, preferably on the node of the last one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.round import Round
from paceline.api.run_status import RunProgress
from paceline.core import BASELINE, INCUMBENT, Arm, RunSpec
from paceline.plan.objects import WITHOUT_CLAIMS, finished
from paceline.plan.run.ends import deadlines
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.killed import is_cut_short
from paceline.plan.run.lacking import needs, waits_for
from paceline.plan.run.next_requests import next_workloads
from paceline.plan.run.next_round import next_try, not_before, where
from paceline.plan.run.no_more_rounds import in_question
from paceline.plan.run.origin import own
from paceline.plan.run.refusal import last_refusal
from paceline.plan.run.snapshot import RoundJob, Snapshot
from paceline.plan.step import Apply, Delete, StepResult, earliest, parse_time, timestamp
from paceline.plan.trouble import ASK_AGAIN, of_job, recheck_at, unplaced
from paceline.render import round_claims, round_job
from paceline.render.devices import RESOURCE_CLAIM_TEMPLATE as CLAIM_TEMPLATE
from paceline.render.guards import rounds_network
from paceline.render.round_job import NO_CELLS, round_plan


def measure(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult:
    """Watch the round under way, or start the next."""
    active = snapshot.active
    if snapshot.suspended:
        running = active is not None and not finished(active.job)
        stop = (
            (Delete(active.job, "spec.suspend is set; a stopped round does not count"),) if active and running else ()
        )
        return StepResult(
            causes=(Cause(Reason.RunSuspended),), actions=stop, status={"progress": RunProgress(step="Suspended")}
        )
    if active is not None and any(record.job == active.name for record in evidence.records):
        return _clear(evidence, active)
    if snapshot.opens_at and (active is None or not active.node):
        return _outside_window(snapshot, evidence, active)
    if active is not None:
        return _watch(snapshot, evidence, active, now)
    return _start(snapshot, evidence, now)


def _outside_window(snapshot: Snapshot, evidence: Evidence, active: RoundJob | None) -> StepResult:
    """Start no round; delete the Job of a round that has no node yet, so that it does not get one now."""
    message = f"the next round of {len(evidence.results)} so far starts at {snapshot.opens_at} or later"
    stop = (Delete(active.job, "benchmark.window closed before it had a node"),) if active else ()
    progress = replace(_progress(evidence, message), step="WaitingForWindow")
    return StepResult(
        causes=(Cause(Reason.RunOutsideWindow, None, message),), actions=stop, status={"progress": progress}
    )


def _clear(evidence: Evidence, active: RoundJob) -> StepResult:
    """Delete the Job of a round that was recorded before the Job ended; the next try starts once it is gone."""
    error = next(record.error for record in evidence.records if record.job == active.name)
    measured = len(evidence.results)
    message = (
        f"round {measured + 1}{_looks(evidence)} is tried again; {error}"
        if error
        else f"round {measured}{_looks(evidence)} is measured, and its Job is removed"
    )
    why = f"it can give no result: {error}" if error else "its result is known, but its pod will never report its end"
    return StepResult(
        causes=(Cause(Reason.RunMeasuring, None, message),),
        actions=(Delete(active.job, why),),
        status={"progress": _progress(evidence, message, active.name)},
    )


def _watch(snapshot: Snapshot, evidence: Evidence, active: RoundJob, now: datetime) -> StepResult:
    plan = active.plan
    placed = {"node": active.node} if active.node else {}
    arms = ", ".join(arm.name for arm in plan.arms)
    pods = [active.pod] if active.pod else []
    trouble = of_job(active.job, pods, snapshot.warnings, now)
    refused = trouble is not None and trouble.reason is Reason.PodRefused
    without_room = active.pod is not None and unplaced(active.pod) is not None
    waits = active.suspended or without_room
    held_up = timestamp(trouble.since) if trouble and trouble.since and (refused or waits) else ""
    accelerator = evidence.spec.server.accelerator
    purpose = evidence.searching.why if plan.cells else ""
    why = (purpose, needs(accelerator, active.pod), trouble.message if trouble else "", active.unread)
    message = "; ".join(filter(None, (f"round {plan.round + 1}{_looks(evidence)}: {arms}", *why)))
    reason = Reason.RunRefused if refused else Reason.RunWaiting if waits else Reason.RunMeasuring
    progress = replace(
        _progress(evidence, message, active.name),
        seen=_has_begun(snapshot, active) or refused or without_room,
        unplaced_since=held_up,
        waits_for_accelerators=waits_for(accelerator, active.pod),
    )
    return StepResult(
        causes=(Cause(reason, None, message),),
        status={**placed, "progress": progress},
        requeue_at=earliest((*deadlines(active), recheck_at(pods or [active.job], now), _again(active, now))),
    )


def _again(active: RoundJob, now: datetime) -> datetime | None:
    """When to request an unreadable log again: no event reports that the kubelet is back."""
    return now + ASK_AGAIN if active.unread else None


def _has_begun(snapshot: Snapshot, active: RoundJob) -> bool:
    """Whether this Job's pod has had a node. The Job then counts as a try if it disappears; otherwise it may be created
    again. Recorded together with the node, which saves a write per round."""
    before = snapshot.status.progress
    return bool(active.node) or bool(before and before.seen and before.job == active.name)


def _start(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult:
    spec = replace(evidence.spec, workloads=next_workloads(evidence.spec, evidence.records))
    number, try_ = next_try(evidence.records)
    if spec.server.accelerator.claims and CLAIM_TEMPLATE in snapshot.absent:
        return StepResult(
            causes=(Cause(Reason.RunRefused, None, f"spec.{WITHOUT_CLAIMS}"),),
            status={"progress": _progress(evidence, f"spec.{WITHOUT_CLAIMS}")},
        )
    due = not_before(evidence.records, now)
    if due is not None and now < due:
        return _wait(evidence, due)
    cells = evidence.searching.cells if evidence.searches else NO_CELLS
    arms = _searched(spec, cells) if cells else _in_turn(evidence)
    plan = round_plan(snapshot.owner, spec, arms, number, try_, cells)
    job = round_job(snapshot.owner, spec, plan, where(evidence.records, snapshot.namespaces), snapshot.settings)
    order = ", ".join(arm.name for arm in arms)
    again = f", try {try_ + 1}" if try_ else ""
    message = f"round {number + 1}{_looks(evidence)}{again}: {order}"
    message = f"{message}; {evidence.searching.why}" if cells else message
    actions = (
        *_isolate(snapshot, spec),
        *(Apply(one, "the devices that rounds claim") for one in round_claims(snapshot.owner, spec)),
        Apply(job, f"measure {order} one after another on the same GPUs"),
    )
    refused = last_refusal(snapshot, actions)
    if refused:
        message = f"{message}; {refused}"
    return StepResult(
        causes=(Cause(Reason.RunRefused if refused else Reason.RunMeasuring, None, message),),
        actions=actions,
        status={
            "start_time": snapshot.status.start_time or timestamp(now),
            "progress": _progress(evidence, message, job["metadata"]["name"]),
        },
    )


def _isolate(snapshot: Snapshot, spec: RunSpec) -> tuple[Apply, ...]:
    """The NetworkPolicy of rounds, applied before the Job so that no round runs without it."""
    if "rounds" not in snapshot.settings.network_policies:
        return ()
    policy = rounds_network(snapshot.owner, spec.pool)
    return (Apply(policy, "isolate rounds: no ingress, and egress to DNS only"),)


def _wait(evidence: Evidence, due: datetime) -> StepResult:
    """Wait between two tries, because the cause of the failure may disappear."""
    last = evidence.records[-1]
    message = f"round {last.round + 1}{_looks(evidence)} is tried again at {timestamp(due)}; {last.error}"
    return StepResult(
        causes=(Cause(Reason.RunMeasuring, None, message),),
        status={"progress": _progress(evidence, message)},
        requeue_at=due,
    )


def _searched(spec: RunSpec, cells: Mapping[str, tuple[str, ...]]) -> tuple[Arm, ...]:
    """The arms of a search's round, in the search's order."""
    arms = {arm.name: arm for arm in spec.arms}
    return tuple(arms[name] for name in cells)


def _in_turn(evidence: Evidence) -> tuple[Arm, ...]:
    """The arms of a comparison's next round, in rotated order."""
    spec = evidence.spec
    candidates = in_question(evidence) if evidence.results else tuple(arm.name for arm in spec.arms)
    names = {*evidence.references, *candidates}
    counted = (record for record in evidence.results if names <= _arms(record) or is_cut_short(record))
    arms = rotated(spec.arms, tuple(names), came_first(counted))
    return tuple(sorted(arms, key=lambda arm: arm.name in _failed_last(evidence)))


def _failed_last(evidence: Evidence) -> set[str]:
    """The baseline or the incumbent, if it failed in the last round: it comes last now, so that the other one is
    measured even if the round ends with its container again."""
    if len(evidence.references) < 2 or not evidence.results:
        return set()
    return {*evidence.references} & {point.arm for point in evidence.results[-1].points if not point.valid}


def rotated(arms: tuple[Arm, ...], names: tuple[str, ...] | None, first: Sequence[str]) -> tuple[Arm, ...]:
    """These arms (None: all), rotated so that drift affects all arms alike.

    `first`: the first arms of earlier rounds. The next round starts with the arm that was first least often; of
    several, with the one after the latest. So each arm is first once per turn, even if other arms drop out or a round
    was invalid.
    """
    remaining = [arm for arm in arms if names is None or arm.name in names]
    places = [arm.name for arm in arms]
    last = places.index(first[-1]) if first else -1
    in_turn = sorted(range(len(remaining)), key=lambda i: (places.index(remaining[i].name) - last - 1) % len(places))
    shift = min(in_turn, key=lambda i: first.count(remaining[i].name))
    return tuple(remaining[shift:] + remaining[:shift])


def came_first(records: Iterable[Round]) -> list[str]:
    """The first arm of each round that is valid evidence for it: the baseline, or a candidate with the baseline."""
    return [first for record in records if (first := record.replicates[0].arm) in _compared(record)]


def _arms(record: Round) -> set[str]:
    """The arms of a round. A round of another run may lack a candidate; it then does not count as one of that
    candidate's turns."""
    return {replicate.arm for replicate in record.replicates}


def _compared(record: Round) -> set[str]:
    """The arms that a round compares: none if the baseline (and the incumbent) or all others were invalid."""
    valid = {point.arm for point in record.points} - {point.arm for point in record.points if not point.valid}
    return valid if valid & {BASELINE, INCUMBENT} and len(valid) > 1 else set()


def _looks(evidence: Evidence) -> str:
    """` of 3, 5 or 8`: numbers of rounds at which the gate looks; per candidate if some rounds were taken over. "" for
    a search, which has no gate."""
    if evidence.searches:
        return ""
    looks = [str(look) for look in evidence.spec.gate.decide_after_rounds]
    text = f"{', '.join(looks[:-1])} or {looks[-1]}" if len(looks) > 1 else looks[0]
    return f" of {text}" if own(evidence.records) == evidence.records else f" (of each candidate {text})"


def _progress(evidence: Evidence, message: str, job: str = "") -> RunProgress:
    """`round`: number of measured rounds; `secondsPerRound`: their mean duration, from which readers can estimate the
    time of the next look. `job` is empty between two tries."""
    lengths = [_seconds(record) for record in evidence.results]
    return RunProgress(
        step="Measuring",
        round=len(evidence.results),
        job=job,
        message=message,
        seconds_per_round=round(sum(lengths) / len(lengths)) if lengths else None,
    )


def _seconds(record: Round) -> float:
    """Duration by the node's clock; 0 if the clock was set back in between."""
    return max(0.0, (parse_time(record.completion_time) - parse_time(record.start_time)).total_seconds())
