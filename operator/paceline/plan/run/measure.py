"""The next round: one Job, best on the node where the run measured last."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason, run_status
from paceline.api.run_status import RunProgress
from paceline.core import BASELINE, Arm
from paceline.plan.pods import of_job, unplaced
from paceline.plan.run.again import next_try, not_before, where
from paceline.plan.run.conclude import in_question
from paceline.plan.run.ends import wakes
from paceline.plan.run.snapshot import Evidence, Round, Snapshot
from paceline.plan.run.taken import own
from paceline.plan.silence import recheck_at
from paceline.plan.step import Apply, Delete, StepResult, earliest, parse_time, timestamp
from paceline.render import round_job
from paceline.render.benchmark import round_plan
from paceline.render.guards import rounds_network


def measure(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult:
    """Watch the round that is going on, or start the next."""
    active = snapshot.active
    if snapshot.suspended:
        stop = (Delete(active.job, "spec.suspend is set; a stopped round does not count"),) if active else ()
        return StepResult(
            causes=(Cause(Reason.RunSuspended),), actions=stop, status={"progress": RunProgress(step="Suspended")}
        )
    if active is not None and any(record.job == active.name for record in evidence.records):
        return _clear(evidence, active)
    if active is not None:
        return _watch(snapshot, evidence, active, now)
    return _start(snapshot, evidence, now)


def _clear(evidence: Evidence, active: Round) -> StepResult:
    """Of a round that is recorded before its Job has ended: the next one, or its next try, starts once that is gone."""
    error = next(record.error for record in evidence.records if record.job == active.name)
    measured = len(evidence.results)
    message = (
        f"round {measured + 1}{_looks(evidence)} is tried again; {error}"
        if error
        else f"round {measured}{_looks(evidence)} is measured, and its Job is removed"
    )
    why = f"it can give no result: {error}" if error else "its result is known, and its pod will never report its end"
    return StepResult(
        causes=(Cause(Reason.RunMeasuring, None, message),),
        actions=(Delete(active.job, why),),
        status={"progress": _progress(evidence, message, active.name)},
    )


def _watch(snapshot: Snapshot, evidence: Evidence, active: Round, now: datetime) -> StepResult:
    asked = active.plan
    placed = {"node": active.node} if active.node else {}
    arms = ", ".join(arm.name for arm in asked.arms)
    pods = [active.pod] if active.pod else []
    found = of_job(active.job, pods, snapshot.warnings, now)
    refused = found is not None and found.reason is Reason.PodRefused
    waits = active.suspended or (active.pod is not None and unplaced(active.pod) is not None)
    held_up = timestamp(found.since) if found and found.since and (refused or waits) else ""
    message = f"round {asked.round + 1}{_looks(evidence)}: {arms}" + (f"; {found.message}" if found else "")
    reason = Reason.RunRefused if refused else Reason.RunWaiting if waits else Reason.RunMeasuring
    progress = replace(_progress(evidence, message, active.name), seen=True, unplaced_since=held_up)
    return StepResult(
        causes=(Cause(reason, None, message),),
        status={**placed, "progress": progress},
        requeue_at=earliest((*wakes(active), recheck_at(pods or [active.job], now))),
    )


def _start(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult:
    assert snapshot.spec is not None
    number, attempt = next_try(evidence.records)
    due = not_before(evidence.records)
    if due is not None and now < due:
        return _rest(evidence, due)
    candidates = in_question(evidence) if evidence.results else None
    kept = {BASELINE, *(candidates or (arm.name for arm in snapshot.spec.arms))}
    arms = rotated(snapshot.spec.arms, candidates, came_first(r for r in evidence.results if kept <= _there(r)))
    asked = round_plan(snapshot.owner, snapshot.spec, arms, number, attempt)
    job = round_job(
        snapshot.owner,
        snapshot.spec,
        asked,
        where(evidence.records, snapshot.namespaces),
        snapshot.settings,
    )
    names = ", ".join(arm.name for arm in arms)
    again = f", try {attempt + 1}" if attempt else ""
    message = f"round {number + 1}{_looks(evidence)}{again}: {names}"
    actions = (*_apart(snapshot), Apply(job, f"measure {names} one after another on the same GPUs"))
    refused = _refused(snapshot, actions)
    if refused:
        message = f"{message}; {refused}"
    return StepResult(
        causes=(Cause(Reason.RunRefused if refused else Reason.RunMeasuring, None, message),),
        actions=actions,
        status={
            "started_at": snapshot.status.started_at or timestamp(now),
            "progress": _progress(evidence, message, job["metadata"]["name"]),
        },
    )


def _refused(snapshot: Snapshot, wanted: Iterable[Apply]) -> str:
    """Which of these the API server refused last, in its words; "" if none. Its NetworkPolicy holds a round up, too."""
    for kind, name in ((one.manifest["kind"], one.manifest["metadata"]["name"]) for one in wanted):
        if words := snapshot.refusals.get((kind, name)):
            return f"its {kind} is refused: {words}"
    return ""


def _apart(snapshot: Snapshot) -> tuple[Apply, ...]:
    """Before the Job: no round is ever without it."""
    if "rounds" not in snapshot.settings.network_policies:
        return ()
    assert snapshot.spec is not None
    made = rounds_network(snapshot.owner, snapshot.spec.pool)
    return (Apply(made, "isolate rounds: no ingress, and egress to DNS only"),)


def _rest(evidence: Evidence, due: datetime) -> StepResult:
    """Between two tries: what went wrong may pass."""
    last = evidence.records[-1]
    message = f"round {last.round + 1}{_looks(evidence)} is tried again at {timestamp(due)}; {last.error}"
    return StepResult(
        causes=(Cause(Reason.RunMeasuring, None, message),),
        status={"progress": _progress(evidence, message)},
        requeue_at=due,
    )


def rotated(arms: tuple[Arm, ...], candidates: tuple[str, ...] | None, first: Sequence[str]) -> tuple[Arm, ...]:
    """The baseline and the candidates still in question, another one first in each round: drift hits all alike.

    `first` are the arms that rounds began with so far. Whoever was first least often is next; of several the one that
    comes next after the last of them. So each is first once in every turn, and goes on to be when others drop out or a
    round that it began was no evidence.
    """
    kept = [arm for arm in arms if candidates is None or arm.name == BASELINE or arm.name in candidates]
    names = [arm.name for arm in arms]
    last = names.index(first[-1]) if first else -1
    in_turn = sorted(range(len(kept)), key=lambda i: (names.index(kept[i].name) - last - 1) % len(names))
    shift = min(in_turn, key=lambda i: first.count(kept[i].name))
    return tuple(kept[shift:] + kept[:shift])


def came_first(records: Iterable[run_status.Round]) -> list[str]:
    """With which arm each round began that is evidence of it: with the baseline, of a candidate next to it."""
    return [first for record in records if (first := record.replicates[0].arm) in _compared(record)]


def _there(record: run_status.Round) -> set[str]:
    """The arms of a round. One of another run may lack a candidate: who was first in it is no affair of that one's."""
    return {replicate.arm for replicate in record.replicates}


def _compared(record: run_status.Round) -> set[str]:
    """The arms of a round that were compared: nothing, where the baseline or all candidates were not measured."""
    valid = {point.arm for point in record.points} - {point.arm for point in record.points if not point.valid}
    return valid if BASELINE in valid and len(valid) > 1 else set()


def _looks(evidence: Evidence) -> str:
    """` of 3, 5 or 8`: after how many rounds the gate is asked; of each candidate, where some have rounds already."""
    looks = [str(look) for look in evidence.spec.gate.decide_after_rounds]
    said = f"{', '.join(looks[:-1])} or {looks[-1]}" if len(looks) > 1 else looks[0]
    return f" of {said}" if own(evidence.records) == evidence.records else f" (of each candidate {said})"


def _progress(evidence: Evidence, message: str, job: str = "") -> RunProgress:
    """`round` counts the rounds measured; `secondsPerRound` is their mean: a reader knows when the next look comes. Of
    no `job` between two tries."""
    done = len(evidence.results)
    lengths = [_seconds(record) for record in evidence.results]
    return RunProgress(
        step="Measuring",
        round=done,
        job=job,
        message=message,
        seconds_per_round=round(sum(lengths) / len(lengths)) if lengths else None,
    )


def _seconds(record: run_status.Round) -> float:
    """By the node's clock, which somebody may have put back meanwhile."""
    return max(0.0, (parse_time(record.finished_at) - parse_time(record.started_at)).total_seconds())
