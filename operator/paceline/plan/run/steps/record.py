"""Step 5: a round that has ended, or was taken over, becomes a BenchmarkRound. It counts from the next pass on."""

from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.run import rounds
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.refusal import refusal
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.step import Apply, StepResult


def record(snapshot: Snapshot, evidence: Evidence, now: datetime) -> StepResult | None:
    """None if all rounds of the evidence are recorded."""
    new = rounds.new(evidence.records, snapshot.rounds)
    if not new:
        return None
    why = "what it has measured, before it counts"
    actions = tuple(Apply(rounds.manifest(snapshot.owner, snapshot.manifest, one), why) for one in new)
    if refused := refusal(snapshot, actions):
        if snapshot.superseded:
            return None  # it ends without a verdict; its rounds would count for nothing
        message = f"round {new[0].round + 1} cannot be recorded: {refused}"
        return StepResult(causes=(Cause(Reason.RunRefused, None, message),), actions=actions)
    return StepResult(actions=actions, requeue_at=now)
