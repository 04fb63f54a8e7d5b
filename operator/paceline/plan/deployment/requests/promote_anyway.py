"""`promote-anyway.paceline.dev/POOL: [REVISION]@TOKEN`: a person promotes a candidate regardless of the verdict.

The verdict stands, and the candidate serves without evidence. Because the person knew that verdict, later verdicts on
the same measurement do not remove the candidate; a verdict on another measurement can (decision 0043).
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from paceline.api.status import Target
from paceline.plan.deployment.choose import intent, winner
from paceline.plan.deployment.holds import baseline_failure, failure, released, way_out
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.promoted import speedup_text
from paceline.plan.deployment.requests.request import REFUSED_WHILE_SUSPENDED, RefusalText, Request, StatusChange
from paceline.plan.step import timestamp


def promote_anyway(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target; or why there is none. Without a revision it means the only candidate."""
    candidates = {pool.revision(arm): arm for arm in pool.spec.arms[1:]}
    named, target = request.value.partition("@")[0], pool.remembered.target
    if pool.suspended:
        return REFUSED_WHILE_SUSPENDED
    revision = named or (next(iter(candidates)) if len(candidates) == 1 else "")
    if revision not in candidates:
        valid = " or ".join(f"{one}@TOKEN ({arm.name})" for one, arm in candidates.items())
        return f"{f'no candidate has revision {named}' if named else 'it names no candidate'}; write {valid}"
    held = failure(pool, revision)
    if held and held.reason == "Fallback":  # the candidate runs, it only stopped paying
        held = None
    if held := held or baseline_failure(pool):
        return f"{held.revision} is held: {held.reason}: {held.message}; {way_out(pool)}, then ask again"
    without = released(pool, revision, by_people=True)
    if target and target.revision == revision:
        if target.reason != "PromotedAnyway":
            return {}
        return {"target": replace(target, fingerprint=_fingerprint(pool), request=request.in_short)}
    if (shown := winner(pool)) and shown.revision == revision:
        return {**without, "target": intent(shown, timestamp(now), request.in_short)}
    chosen = Target(
        revision=revision,
        arm=candidates[revision].name,
        message="; ".join(_why(pool, candidates[revision].name)),
        start_time=timestamp(now),
        reason="PromotedAnyway",
        request=request.in_short,
        fingerprint=_fingerprint(pool),
    )
    return {**without, "target": chosen}


def _fingerprint(pool: Pool) -> str:
    """Fingerprint of the overridden verdict; without a verdict, of the coming one."""
    return pool.decided.fingerprint if pool.decided else pool.fingerprint


def _why(pool: Pool, arm: str) -> Iterator[str]:
    run = pool.decided
    if run is None:
        yield "a person has promoted it without a verdict"
        return
    yield f"a person has promoted it against {run.name}: {run.outcome}"
    if (speed := run.ratio(arm)) and speed.ratio is not None:
        yield f"{arm} was {speedup_text(speed)} as fast as the baseline"
