"""`abort.paceline.dev/POOL: TOKEN`: end the present run, or the present roll-out of a candidate."""

from datetime import datetime
from typing import Any

from paceline.api.status import Hold, Target
from paceline.core import BASELINE
from paceline.engines.nodes import unmeasurable
from paceline.plan.deployment.choose import UNDONE, baseline, has_served, intent
from paceline.plan.deployment.holds import baseline_failure, held_by_a_person, with_person_hold
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.request import Request, StatusChange
from paceline.plan.step import timestamp


def abort(pool: Pool, request: Request, now: datetime) -> StatusChange:
    """Hold the question: `stop_runs` then ends its run, and no other is created. A candidate that is being rolled out
    is replaced by what served before. With nothing under way the request still counts as handled, so that it does not
    end the next run."""
    rolling = _rolled_out(pool)
    if rolling is None and not _asks(pool):
        return {}
    held = Hold(
        reason="Aborted",
        request=request.in_short,
        message=f"a person has ended the roll-out of {rolling.arm}" if rolling else "a person has ended the run",
        start_time=timestamp(now),
        revision=rolling.revision if rolling else "",
        arm=rolling.arm if rolling else "",
        run=rolling.evidence.run if rolling else "",
        fingerprint=pool.last_asked(rolling.fingerprint if rolling else ""),
    )
    effect: dict[str, Any] = {"holds": with_person_hold(pool, held)}
    return {**effect, "target": _before(pool, rolling, request, now)} if rolling else effect


def _rolled_out(pool: Pool) -> Target | None:
    """The candidate that is being rolled out. A return to a previous revision does not count: the other one does not
    run, or a person rolled it back."""
    target = pool.remembered.target
    if target is None or target.arm == BASELINE or target.reason in UNDONE or has_served(pool, target.revision):
        return None
    return target


def _asks(pool: Pool) -> bool:
    """Whether a question is open for a present or future run, which may still wait for accelerators or prompts."""
    if held_by_a_person(pool) or baseline_failure(pool):
        return False
    open_ = pool.decided is None and not unmeasurable(pool.server)
    return open_ or any(run.under_way for run in pool.runs)


def _before(pool: Pool, rolling: Target, request: Request, now: datetime) -> Target:
    """The target before the roll-out; else the baseline."""
    last, why = pool.remembered.serving, f"a person has ended the roll-out of {rolling.arm}"
    if last is None or last.revision == rolling.revision or last.revision not in pool.kept:
        return intent(baseline(pool, why, "Aborted"), timestamp(now), request.in_short)
    return Target(
        revision=last.revision,
        arm=last.arm,
        evidence=last.evidence,
        start_time=timestamp(now),
        message=f"{why}, and {last.arm} served before",
        reason="Aborted",
        request=request.in_short,
    )
