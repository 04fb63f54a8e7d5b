"""`promote.paceline.dev/POOL: [REVISION]@TOKEN`: a person chooses what to serve, as far as verdicts allow."""

from collections.abc import Iterator
from datetime import datetime

from paceline.core import BASELINE
from paceline.plan.deployment.choose import Choice, baseline, intent, winner
from paceline.plan.deployment.holds import baseline_failure, failure, held_by_a_person, released
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.promoted import manual, overridden, promoted_before
from paceline.plan.deployment.requests.request import (
    REFUSED_WHILE_SUSPENDED,
    RefusalText,
    Request,
    StatusChange,
    annotation,
)
from paceline.plan.step import timestamp


def promote(pool: Pool, request: Request, now: datetime) -> StatusChange | RefusalText:
    """The pool's next target, which also ends a hold RolledBack or Aborted; or why there is none, and the valid
    requests. Without a revision it means the verdict's winner. In Automatic mode it only undoes an earlier request by a
    person."""
    target, by_a_person = pool.remembered.target, held_by_a_person(pool)
    if not (manual(pool) or by_a_person or overridden(pool)):
        return "promotion.mode is Automatic, which serves every winner; remove the annotation, or set Manual"
    if pool.suspended:
        return REFUSED_WHILE_SUSPENDED
    named, shown = request.value.partition("@")[0], winner(pool)
    revision = named or (shown.revision if shown else "")
    if held := failure(pool, revision) or (None if by_a_person else baseline_failure(pool)):
        return f"{held.revision} is held: {held.reason}; release it by retry.paceline.dev/{pool.name}=TOKEN first"
    if target and revision == target.revision:
        return {}
    choices = {choice.revision: choice for choice in promotable(pool)}
    if revision in choices:
        chosen = {"target": intent(choices[revision], timestamp(now), request.in_short)}
        return {**chosen, **released(pool, by_people=True)} if by_a_person else chosen
    valid = " or ".join(f"{choice.revision}@TOKEN ({choice.arm})" for choice in choices.values())
    what = f"no arm of revision {revision} waits" if revision else "no winner waits"
    return f"{what} to be served; {f'write {valid}' if valid else _nothing_waits(pool)}"


def _nothing_waits(pool: Pool) -> str:
    anyway = f"{annotation('promote-anyway', pool.name)}=REVISION@TOKEN serves a candidate all the same"
    if pool.decided is None:
        return f"the present question has no verdict yet; wait for it, or {anyway}"
    return f"nothing else does, as the verdict is {pool.decided.outcome}; {anyway}"


def promotable(pool: Pool) -> Iterator[Choice]:
    """Choices that a person may request now: the winner, and the baseline in place of something else. In Automatic mode
    with a winner the baseline is excluded, because the winner would replace it at once."""
    shown, by_a_person = winner(pool), held_by_a_person(pool)
    target = promoted_before(pool) or (pool.remembered.target if by_a_person else None)
    if shown and not (failure(pool, shown.revision) or (target and target.revision == shown.revision)):
        yield shown
    to_baseline = target is not None and target.revision != pool.revision(pool.arms[BASELINE])
    if to_baseline and (manual(pool) or shown is None):
        yield baseline(pool, "a person has requested it", "Demoted")
