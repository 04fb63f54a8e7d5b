"""The hold of a pool: what must not be served, the evidence that had promoted it, and what releases it.

Released by `retry` are all. NotReady, Crashed and Fallback end with newer evidence; RolledBack and Aborted, by which a
person has spoken, end with `promote`, and no run is made for them. A changed fingerprint ends those of candidates.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from paceline.api.status import Hold
from paceline.core import BASELINE
from paceline.plan.deployment.past_failures import asked_for_again, taken_down
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import parse_time

BY_A_PERSON = ("RolledBack", "Aborted")
"""Reasons that a person's request gives. What was chosen need not be broken, and no run goes on."""


def hold(pool: Pool) -> Hold | None:
    """The hold, if nothing has released it. Nothing does while suspended: the question is then the former one,
    although the spec may ask another."""
    held = pool.remembered.hold
    return held if held and (pool.suspended or not _released(pool, held)) else _returned(pool)


def held_revision(pool: Pool) -> str | None:
    held = hold(pool)
    return held.revision if held else None


def fallen_revision(pool: Pool) -> str | None:
    """The winner of the present verdict, if it has stopped paying since: also while the pool's one hold is on something
    else, which then stopped paying as well."""
    fallen = _returned(pool)
    return fallen.revision if fallen else None


def held_by_a_person(pool: Pool) -> Hold | None:
    """The hold, if a person has asked for it. What they left the pool to serve stays until it is released."""
    held = hold(pool)
    return held if held and held.reason in BY_A_PERSON else None


def baseline_held(pool: Pool) -> bool:
    """Whether the spec's baseline is held as it does not run. None of its arms can be served then: candidates are
    measured against it."""
    held = hold(pool)
    return held is not None and held.arm == BASELINE and held.reason not in BY_A_PERSON


def release(pool: Pool, revision: str) -> Mapping[str, Any]:
    """New fields of the pool's memory, by which a person releases its hold so that this revision may be served. A hold
    Fallback of it does not return either."""
    return {"holds": (), **asked_for_again(pool.remembered, revision)}


def way_out(pool: Pool) -> str:
    """What a person can do about a hold."""
    if held := held_by_a_person(pool):
        what, to = "change what is measured", "go by verdicts again" if held.revision else "measure anew"
    else:
        what, to = "change the spec" if baseline_held(pool) else "newer evidence releases it", "try it again"
    return f"{what}, or annotate retry.paceline.dev/{pool.name}=TOKEN (TOKEN: any word) to {to}"


def _released(pool: Pool, held: Hold) -> bool:
    """Released by a spec without this revision, unless the pool gave it up under that spec; by a longer deadline than
    the one that it missed; and for a candidate by another question or by a run that has ended since. What a person has
    asked for is released only by another question."""
    if held.reason in BY_A_PERSON:
        return held.fingerprint != pool.fingerprint
    rendered = held.revision in {pool.revision(arm) for arm in pool.spec.arms}
    if not (rendered or _gave_way(pool, held)):
        return True
    missed = held.deadline_seconds
    if missed and pool.deployment.promotion.progress_deadline > timedelta(seconds=missed):
        return True
    if held.arm == BASELINE:
        return False
    return held.fingerprint != pool.fingerprint or _newer_evidence(pool, held)


def _gave_way(pool: Pool, held: Hold) -> bool:
    """Whether the pool serves, or is about to, its baseline in place of this candidate. The spec need not render it: it
    served until another shape of it would be decided."""
    target = pool.remembered.target
    if target is None or held.arm == BASELINE:
        return False
    in_its_place = target.revision == pool.revision(pool.arms[BASELINE]) and target.start_time == held.start_time
    return target.revision == held.revision or in_its_place


def _returned(pool: Pool) -> Hold | None:
    """A hold Fallback that another question has released, where the present one would promote the candidate on evidence
    from before it stopped paying; so it does after a spec that was changed and is as before."""
    run, target = pool.decided, pool.remembered.target
    arm = pool.arms.get((run.winner if run else None) or "")
    before = taken_down(pool.remembered, pool.revision(arm)) if arm else None
    if pool.suspended or run is None or arm is None or before is None or not before.fell_back:
        return None
    served = target is not None and target.revision == before.revision
    if served or run.outcome != "Promote":
        return None
    held = Hold(
        reason="Fallback",
        message=f"speculation stopped paying after {run.name} had shown it",
        start_time=before.fell_back,
        revision=before.revision,
        arm=arm.name,
        run=run.name,
        fingerprint=pool.fingerprint,
    )
    return None if _newer_evidence(pool, held) else held


def _newer_evidence(pool: Pool, held: Hold) -> bool:
    """By time and not by name: a run that was deleted is made again under the same name. By the time of its rounds:
    judging old rounds again is no newer evidence."""
    if pool.decided is None or pool.decided.outcome == "Error":  # says nothing of the candidate
        return False
    measured = pool.decided.measured_at
    return bool(measured) and parse_time(measured) > parse_time(held.start_time)
