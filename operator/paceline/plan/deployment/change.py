"""The condition ChangePending: a changed spec that does not serve yet, because what serves was not shown to be no
faster."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api import Cause, Reason, served_spec
from paceline.core import BASELINE, Arm, Server, server_of
from paceline.evidence.changes import summary
from paceline.plan.deployment.choose import Choice, Rollout, baseline, winner
from paceline.plan.deployment.doubt import doubt
from paceline.plan.deployment.holds import failure, way_out
from paceline.plan.deployment.incumbent import Incumbent
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests import annotation
from paceline.plan.step import StepResult, parse_time

FIRST_ROUND_WITHIN = timedelta(hours=1)
"""How long a change may wait for its first round before a person is told."""
_OUTCOMES = {
    "Reject": Reason.ChangeRejected,
    "Inconclusive": Reason.ChangeInconclusive,
    "Error": Reason.ChangeNotMeasured,
    "Promote": Reason.ChangeAwaitsPromote,
}
"""Outcome of the run → reason, while what served before still serves."""
_ON_TIME = (Reason.Measuring, Reason.WaitingForWindow, Reason.Suspended)
"""Reasons of Measuring whose end is known, or a person's decision."""


def report_change(rollout: Rollout, incumbent: Incumbent, measuring: Iterable[Cause], now: datetime) -> StepResult:
    """`measuring`: what `measure` reports."""
    pool = rollout.pool
    if rollout.choice.revision not in (incumbent.revision, incumbent.was.revision):
        return StepResult()
    due = _due(pool)
    shown, choice = winner(pool), rollout.choice
    asked = shown or baseline(pool, "", "Updated")
    held = failure(pool, asked.revision)
    if held:
        reason = Reason.ChangeRejected
        note = f"{held.arm} of the changed spec did not run: {held.message}; {way_out(pool)}"
    else:
        reason, note = _reason(pool, measuring, late=due is not None and now >= due)
    serves_on = f"{choice.arm} at revision {choice.revision} serves on; {in_what(pool, incumbent)}"
    # What is held has a way out of its own.
    ask = "" if held else _request(pool, "promote" if shown else "promote-anyway", asked)
    said = "; ".join(filter(None, (note, serves_on, ask)))
    return StepResult(
        causes=(Cause(reason, pool.name, said),),
        requeue_at=due if due and now < due else None,
    )


def _due(pool: Pool) -> datetime | None:
    """When a person is told that the change's run has had no round; None once it has one."""
    run = None if pool.decided else next((run for run in pool.attempts if run.under_way), None)
    return parse_time(run.made_at) + FIRST_ROUND_WITHIN if run and not run.status.recorded else None


def _reason(pool: Pool, measuring: Iterable[Cause], late: bool) -> tuple[Reason, str]:
    run = pool.decided
    if run:
        why = f"{run.name}: {run.verdict.message}"
        return _OUTCOMES[run.outcome or "Error"], "; ".join(filter(None, (why, doubt(pool))))
    progress = next((cause for cause in measuring if cause.reason.value.condition == "Measuring"), None)
    if late and progress and progress.reason not in _ON_TIME:
        return Reason.ChangeWithoutRound, progress.note
    if progress and progress.reason is not Reason.Measuring:
        return Reason.ChangeWaits, progress.note
    return Reason.ChangeCompared, ""


def in_what(pool: Pool, incumbent: Incumbent) -> str:
    """In what the spec differs from what serves, in one line."""
    then = pool.inputs(incumbent.was.revision)
    now = pool.server, pool.arms.get(incumbent.was.arm, pool.arms[BASELINE])
    was, asked = (_alone(server, replace(arm, name=incumbent.was.arm)) for server, arm in (then or now, now))
    return summary(was, asked)


def _alone(server: Server, arm: Arm) -> dict[str, Any]:
    """A run's spec of one arm, with its whole engine as the shared one."""
    spec = served_spec(server_of(server, arm), replace(arm, engine=None))
    return {**spec, "arms": [spec.pop("arm")], "workloads": []}


def _request(pool: Pool, verb: str, asked: Choice) -> str:
    ask = f"annotate {annotation(verb, pool.name)}={asked.revision}@TOKEN (TOKEN: any word)"
    return f"to serve {asked.arm} of the changed spec, {ask}"
