"""`promote.paceline.dev/POOL: REVISION@TOKEN`: in Manual mode a person chooses what is served, once for each value."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from paceline.api.status import Target
from paceline.plan.deployment.choose import Choice, baseline, intent, winner
from paceline.plan.deployment.earned import manual, promoted_before
from paceline.plan.deployment.hold import baseline_held, held_revision, hold
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import timestamp


def promote(pool: Pool, value: str, now: datetime) -> Mapping[str, Target] | str:
    """The pool's next target; or why there is none, and the requests that would be carried out."""
    revision = value.partition("@")[0]
    if not manual(pool):
        return "promotion.mode is Automatic, which serves every winner; remove the annotation, or set Manual"
    if pool.suspended:
        return "spec.suspend is set: the request is carried out once it is removed"
    if (held := hold(pool)) and (revision == held.revision or baseline_held(pool)):
        return f"{held.revision} is held: {held.reason}; release it by retry.paceline.dev/{pool.name}=TOKEN first"
    if pool.remembered.target and revision == pool.remembered.target.revision:
        return {}
    choices = {choice.revision: choice for choice in promotable(pool)}
    if revision in choices:
        return {"target": intent(choices[revision], timestamp(now))}
    valid = " or ".join(f"{choice.revision}@TOKEN ({choice.arm})" for choice in choices.values())
    return f"no arm of revision {revision} waits to be served; {f'write {valid}' if valid else 'none does'}"


def promotable(pool: Pool) -> Iterator[Choice]:
    """Choices that a person may request now: the winner, and the baseline in place of a promoted candidate."""
    shown, target = winner(pool), promoted_before(pool)
    if shown and shown.revision not in (target.revision if target else None, held_revision(pool)):
        yield shown
    if target:
        yield baseline(pool, "a person has requested it")
