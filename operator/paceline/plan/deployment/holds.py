"""The holds of a pool: what must not be served, why, and what releases it. At most one per revision and one by a
person.

    NotReady, Crashed, Fallback   a revision failed. Newer evidence releases a candidate, another spec a baseline
    RolledBack, Aborted           a person's request: no run is created, and its choice keeps serving,
                                  until another question is asked or they ask for `promote`
    all                           released by `retry`

A revision that fails repeatedly is measured again less and less often; the number of failures outlives the hold.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api.status import MOST_TAKEN_DOWN, Hold, PoolStatus, TakenDown
from paceline.core import BASELINE, Trigger
from paceline.plan.deployment.pool import Pool, remembering
from paceline.plan.step import parse_time, timestamp

BY_A_PERSON = ("RolledBack", "Aborted")
"""Reasons given by a person's request. The revision need not be broken; no run continues."""
FORGOTTEN = timedelta(days=64)
"""After this time without a failure, a revision's count starts again."""
_FIRST = timedelta(days=1)
"""Delay from a hold, or a run that it caused, to the next run: another day may bring another node, driver or load."""
MOST_DOUBLINGS = 4
"""A delay of sixteen days at most."""


def holds(pool: Pool) -> tuple[Hold, ...]:
    """Holds that nothing has released. None is released while the pool is frozen: the former question then still
    applies, even if the spec asks another."""
    if pool.frozen or not (pool.remembered.holds or pool.remembered.taken_down):
        return pool.remembered.holds
    stand = tuple(held for held in pool.remembered.holds if not _released(pool, held))
    again = _fell_back_before(pool)
    known = again is None or any(held.revision == again.revision for held in stand)
    return stand if known or again is None else (*stand, again)


def held(pool: Pool, revision: str) -> Hold | None:
    """The hold on a revision, for any reason; a failure comes before a person's hold."""
    return failure(pool, revision) or next((one for one in _by_people(pool) if one.revision == revision), None)


def failure(pool: Pool, revision: str) -> Hold | None:
    """The hold on a revision that does not run, or does not pay."""
    return next((one for one in holds(pool) if one.revision == revision and one.reason not in BY_A_PERSON), None)


def held_by_a_person(pool: Pool) -> Hold | None:
    return next(iter(_by_people(pool)), None)


def baseline_failure(pool: Pool) -> Hold | None:
    """The hold on the spec's baseline if it does not run. Then none of the spec's arms can be served, because
    candidates are measured against it."""
    return failure(pool, pool.revision(pool.arms[BASELINE]))


def with_hold(pool: Pool, new: Hold, now: datetime) -> Pool:
    """The pool with a new hold, which replaces one on the same revision; failures are counted."""
    others = (one for one in holds(pool) if one.revision != new.revision or one.reason in BY_A_PERSON)
    remembered = replace(pool.remembered, holds=(new, *others))
    return remembering(pool, remembered if new.arm == BASELINE else _counted(remembered, new, now))


def with_person_hold(pool: Pool, new: Hold) -> tuple[Hold, ...]:
    """The pool's holds with this one by a person, in place of their previous one."""
    return (new, *(one for one in holds(pool) if one.reason not in BY_A_PERSON))


def released(pool: Pool, *revisions: str, by_people: bool = False) -> Mapping[str, Any]:
    """New fields of the pool's entry, without the holds on these revisions; `by_people` also removes a person's hold.
    Without arguments, all holds are removed. Evidence from before their speculation stopped paying counts again."""
    every = not (revisions or by_people)

    def goes(one: Hold) -> bool:
        return every or one.revision in revisions or (by_people and one.reason in BY_A_PERSON)

    gone = {one.revision for one in holds(pool) if goes(one)} | set(revisions)
    return {
        "holds": tuple(one for one in holds(pool) if not goes(one)),
        "taken_down": tuple(
            replace(one, fell_back="") if one.revision in gone else one for one in pool.remembered.taken_down
        ),
    }


def way_out(pool: Pool) -> str:
    """How a person can release the pool's holds."""
    if by_person := held_by_a_person(pool):
        what, to = "change what is measured", "go by verdicts again" if by_person.revision else "measure again"
    else:
        what, to = "change the spec" if baseline_failure(pool) else "newer evidence releases it", "try it again"
    return f"{what}, or annotate retry.paceline.dev/{pool.name}=TOKEN (TOKEN: any word) to {to}"


def measured_again_at(pool: Pool, served: str) -> tuple[datetime, Hold] | None:
    """The time when a failed candidate is measured again, and the candidate's hold. The delay is a day, doubled for
    each further consecutive failure and for each run that did not release the hold. None while a candidate is
    `served`."""
    failed = [one for one in holds(pool) if one.reason not in BY_A_PERSON and one.arm != BASELINE]
    if not failed or (served != BASELINE and not pool.incumbent):
        return None
    return min(((_again_at(pool, one), one) for one in failed), key=lambda found: found[0])


def _again_at(pool: Pool, one: Hold) -> datetime:
    since = parse_time(one.start_time)
    runs = (parse_time(run.made_at) for run in pool.runs if run.trigger == Trigger.HOLD)
    made = [at for at in runs if at >= since]  # runs that did not release it
    before = _taken_down(pool.remembered, one.revision)
    times = before.times or 1 if before else 1
    wait: timedelta = _FIRST * 2 ** min(times - 1 + len(made), MOST_DOUBLINGS)
    return max([since, *made]) + wait


def _by_people(pool: Pool) -> list[Hold]:
    return [one for one in holds(pool) if one.reason in BY_A_PERSON]


def _released(pool: Pool, one: Hold) -> bool:
    """Whether a hold is released. A failure's hold is released by a spec without this revision, unless the pool gave it
    up under that spec, and by a longer deadline than the missed one. A candidate's hold is also released by another
    question or by a run that ended since; a person's only by another question."""
    if one.reason in BY_A_PERSON:
        return one.fingerprint not in pool.fingerprints
    rendered = one.revision in {pool.revision(arm) for arm in pool.spec.arms}
    if not (rendered or _gave_way(pool, one)):
        return True
    missed = one.deadline_seconds
    if missed and pool.deployment.promotion.progress_deadline > timedelta(seconds=missed):
        return True
    if one.arm == BASELINE:
        return False
    return one.fingerprint != pool.fingerprint or _newer_evidence(pool, one.start_time)


def _gave_way(pool: Pool, one: Hold) -> bool:
    """Whether the pool serves, or is about to serve, what was chosen in place of this revision. The spec need not
    render the revision: it may have served while a changed spec was undecided, or after a person's rollback to it."""
    target = pool.remembered.target
    if target is None:
        return False
    return target.revision == one.revision or target.start_time == one.start_time


def _fell_back_before(pool: Pool) -> Hold | None:
    """The hold Fallback that another question released, if the present verdict would promote the candidate on evidence
    from before it stopped paying. This happens after a spec was changed and changed back."""
    run, target = pool.decided, pool.remembered.target
    arm = pool.arms.get((run.winner if run else None) or "")
    before = _taken_down(pool.remembered, pool.revision(arm)) if arm else None
    if run is None or arm is None or before is None or not before.fell_back or run.outcome != "Promote":
        return None
    if (target and target.revision == before.revision) or _newer_evidence(pool, before.fell_back):
        return None
    return Hold(
        reason="Fallback",
        message=f"speculation stopped paying after {run.name} had shown it",
        start_time=before.fell_back,
        revision=before.revision,
        arm=arm.name,
        run=run.name,
        fingerprint=pool.fingerprint,
    )


def _newer_evidence(pool: Pool, than: str) -> bool:
    """Compares times, not names: a deleted run is created again under the same name. Uses the time of the rounds:
    judging old rounds again is not newer evidence."""
    if pool.decided is None or pool.decided.outcome == "Error":  # Error says nothing about the candidate
        return False
    measured = pool.decided.measured_at
    return bool(measured) and parse_time(measured) > parse_time(than)


def _taken_down(entry: PoolStatus, revision: str) -> TakenDown | None:
    """The last failure of this revision."""
    return next((one for one in entry.taken_down if one.revision == revision), None)


def _counted(entry: PoolStatus, failed: Hold, now: datetime) -> PoolStatus:
    before = _taken_down(entry, failed.revision)
    in_a_row = before is not None and parse_time(before.since) > now - FORGOTTEN
    latest = TakenDown(
        revision=failed.revision,
        arm=failed.arm,
        reason=failed.reason,
        times=1 + (before.times or 0 if before and in_a_row else 0),
        since=timestamp(now),
        fell_back=timestamp(now) if failed.reason == "Fallback" else (before.fell_back if before else ""),
    )
    others = (one for one in entry.taken_down if one.revision != failed.revision)
    return replace(entry, taken_down=(latest, *others)[:MOST_TAKEN_DOWN])
