"""Step 5: write finished or taken-over rounds as BenchmarkRounds. They count from the next pass on."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.round import Round
from paceline.api.run_status import RunProgress
from paceline.plan.run import rounds
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.refusal import last_refusal
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.step import Apply, Delete, StepResult


def record(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult | None:
    """Write the new rounds. None if all rounds of the evidence are recorded."""
    new = rounds.new(evidence.records, snapshot.rounds)
    if not new:
        return None
    why = "what it has measured, before it counts"
    actions = tuple(Apply(rounds.manifest(snapshot.owner, snapshot.manifest, one), why, once=True) for one in new)
    if refused := last_refusal(snapshot, actions):
        if snapshot.superseded:
            return None  # the run ends without a verdict, so its rounds are not needed
        message = f"round {new[0].round + 1} cannot be recorded: {refused}"
        progress = replace(snapshot.status.progress or RunProgress(), message=message)
        return StepResult(
            causes=(Cause(Reason.RunRefused, None, message),),
            actions=(*_given_up(snapshot, new), *actions),
            status={"progress": progress},
        )
    return StepResult(actions=actions, requeue_at=now)


def _given_up(snapshot: Snapshot, new: Sequence[Round]) -> tuple[Delete, ...]:
    """Delete the Job of a try without a result, so that it holds no accelerators while waiting to be recorded."""
    active = snapshot.active
    if active is None or not any(one.error and one.job == active.name for one in new):
        return ()
    return (Delete(active.job, "it can give no result"),)
