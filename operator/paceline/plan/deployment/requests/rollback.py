"""`rollback.paceline.dev/POOL: [REVISION]@TOKEN`: back to a revision that has served and whose rendering is kept.

No measurement is needed: the revision keeps the evidence on which it served, or it is a baseline.
"""

from collections.abc import Mapping
from datetime import datetime

from paceline.api.status import Change, Hold, Target
from paceline.core import BASELINE
from paceline.plan.deployment.choose import past
from paceline.plan.deployment.holds import failure, holds, with_person_hold
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.request import RefusalText, Request, StatusChange
from paceline.plan.step import timestamp


def rollback(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target, and a hold on the present one; or why there is none, and the valid choices. Without a
    revision it means the one served before the present one, except those rolled back from, not running or no longer
    paying. It works while suspended: `suspend` stops the operator, not a rollback. If there is no revision to return
    to, only a named revision is refused; without one the request counts as handled, so that it does not undo the next
    promotion."""
    present, choices = pool.remembered.target, _to_be_had(pool)
    # A token may be any word, so without `@` only a known revision counts as a revision.
    known = {*pool.kept, *choices, present.revision if present else ""}
    named = request.revision or (request.value if request.value in known else "")
    if present is None:
        return "nothing is served yet; remove the annotation" if named else {}
    if named == present.revision:
        return {}
    if held := failure(pool, named):
        return f"{named} is held: {held.reason}: {held.message}; release it by retry.paceline.dev/{pool.name}=TOKEN"
    left = {one.revision for one in holds(pool)}
    revision = named or next((one for one in choices if one not in left), "")
    if not revision:
        return {}
    if revision not in choices:
        return _refusal(pool, named, choices)
    back = choices[revision]
    target = Target(
        revision=revision,
        arm=back.arm,
        evidence=back.evidence,
        start_time=timestamp(now),
        message=f"a person has rolled back from {present.arm}; {_evidence(back)}",
        reason="RolledBack",
        request=request.in_short,
    )
    return {"target": target, "holds": with_person_hold(pool, _hold(pool, present, request, now))}


def _hold(pool: Pool, present: Target, request: Request, now: datetime) -> Hold:
    return Hold(
        reason="RolledBack",
        request=request.in_short,
        message=f"a person has rolled back from {present.arm} at {present.revision}",
        start_time=timestamp(now),
        revision=present.revision,
        arm=present.arm,
        run=present.evidence.run,
        fingerprint=pool.last_asked(present.fingerprint),
    )


def _to_be_had(pool: Pool) -> Mapping[str, Change]:
    """Revision → when it last served, latest first; only kept revisions without a known failure."""
    present = pool.remembered.target
    choices: dict[str, Change] = {}
    for change in past(pool):
        fit = change.revision in pool.kept and not failure(pool, change.revision)
        if fit and not (present and change.revision == present.revision):
            choices.setdefault(change.revision, change)
    return choices


def _refusal(pool: Pool, named: str, choices: Mapping[str, Change]) -> RefusalText:
    limit = pool.deployment.promotion.revision_history_limit
    kept = f"(promotion.revisionHistoryLimit is {limit})"
    valid = " or ".join(f"{change.revision}@TOKEN ({change.arm}; {_evidence(change)})" for change in choices.values())
    what = f"revision {named} has not served here, or is no longer kept {kept}"
    return f"{what}; {f'write {valid}' if valid else 'nothing else that has served is kept'}"


def _evidence(change: Change) -> str:
    if not change.evidence.run:
        return "no evidence is needed" if change.arm == BASELINE else "there is no evidence"
    speedup = f" ({change.evidence.speedup:.2f}x)" if change.evidence.speedup else ""
    return f"its evidence is {change.evidence.run}{speedup}"
