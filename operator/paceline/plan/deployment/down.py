"""The one way down: what was chosen and does not run is taken off and held.

It does not run if it comes no further for `promotion.progressDeadline` (one server more that is ready is further), if
every server of it fails for good, or if it has served and no server was ready for as long. A candidate gives way to the
baseline, a baseline to what served last. That there is no room, or that a node is silent, is nobody's fault: the clock
stands still meanwhile, and nothing is held.

Like a request it becomes memory before any step looks: hold and new target are written together, then acted upon.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from paceline.api import Reason
from paceline.api.status import Hold, Target
from paceline.core import BASELINE
from paceline.plan.deployment.cache import brought
from paceline.plan.deployment.choose import Choice, as_chosen, choose, has_served, last_served
from paceline.plan.deployment.hold import baseline_held
from paceline.plan.deployment.snapshot import Pool, Servers
from paceline.plan.deployment.strangers import foreign
from paceline.plan.pods import Trouble
from paceline.plan.step import parse_time, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a revision does not run. `deadline`: the one that it missed; None: more time would not help."""

    reason: Literal["NotReady", "Crashed"]
    message: str
    deadline: timedelta | None = None


def undone(pool: Pool, now: datetime) -> Pool:
    """The pool, and in its memory a hold on what was chosen, if that does not run and something else is there."""
    choice = choose(pool)
    failure = failed(pool, choice, now)
    if failure is None or not _instead(pool, choice):
        return pool
    held = Hold(
        reason=failure.reason,
        message=failure.message,
        since=timestamp(now),
        revision=choice.revision,
        arm=choice.arm,
        fingerprint=pool.fingerprint,
        evidence=choice.evidence,
        deadline_seconds=int(failure.deadline.total_seconds()) if failure.deadline else None,
    )
    return replace(pool, remembered=replace(pool.remembered, hold=held))


def failed(pool: Pool, choice: Choice, now: datetime) -> Failure | None:
    """Of what was chosen before and is not chosen now for the first time."""
    there, target = of(pool, choice), pool.remembered.target
    if target is None or target.revision != choice.revision or as_chosen(pool, choice) or foreign(pool):
        return None
    reason: Literal["NotReady", "Crashed"] = "Crashed" if has_served(pool, choice.revision) else "NotReady"
    own_fault = there is not None and not there.amiss <= not_its_fault(choice)
    if there and own_fault and there.hopeless and there.trouble and not _before_its_models(pool, there.trouble):
        return Failure(reason=reason, message=there.trouble.what.rstrip("."))
    assert pool.snapshot.spec is not None
    missed = pool.snapshot.spec.promotion.progress_deadline
    if there and choice.arm == BASELINE and there.trouble and there.trouble.says in OF_THE_PLACE:
        found = there.trouble
        lasted = found.since is not None and now >= found.since + missed
        return Failure(reason=reason, message=found.what) if lasted else None
    at = deadline(pool, standing(pool, choice, now).stands_since)
    if at is None or now < at:
        return None
    minutes = f"{missed.total_seconds() / 60:g} min (promotion.progressDeadline)"
    what = "no server was ready for" if reason == "Crashed" else "no further server was ready within"
    why = f": {there.trouble.what.rstrip('.')}" if there and there.trouble else ""
    return Failure(reason=reason, message=f"{what} {minutes}{why}", deadline=missed)


def _before_its_models(pool: Pool, found: Trouble) -> bool:
    """It ended while the volume was empty, which may have been filled at this very moment: its next start counts."""
    since = brought(pool.snapshot)
    return found.says is Reason.Crashing and found.since is not None and (since is None or found.since <= since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the target remembers of its coming along: since when it has come no further, "" while nothing is amiss or
    there is no room, and the most of its servers that were ready at once while it is rolled out."""

    stands_since: str = ""
    ready: int | None = None


def standing(pool: Pool, choice: Choice, now: datetime) -> Standing:
    before, there = pool.remembered.target or Target(), of(pool, choice)
    same = before.revision == choice.revision
    if as_chosen(pool, choice):
        return Standing()
    waits = there is not None and bool(there.amiss & not_its_fault(choice))
    if same and has_served(pool, choice.revision):
        lost = not (waits or (there and there.ready))
        return Standing(stands_since=before.stands_since or timestamp(now) if lost else "")
    most = before.ready or 0 if same else 0
    ready = max(most, there.own_ready if there else 0)
    if waits:
        return Standing(ready=ready or None)
    stood = before.stands_since if same and ready == most else ""
    return Standing(stands_since=stood or timestamp(now), ready=ready or None)


NOBODYS_FAULT = frozenset({Reason.NoCapacity, Reason.NodeNotReady, Reason.Paused})
OF_THE_PLACE = frozenset({Reason.Unplaceable, Reason.PodRefused})
"""Of where a server is to run, which a candidate shares with its baseline: a changed spec alone may be to blame."""
SHARED = OF_THE_PLACE | {Reason.CannotStart}
"""And what it is started from: image, Secrets and volumes are its baseline's. A registry that is down while a node is
drained would take every promoted candidate off, and give no pool a server."""


def not_its_fault(choice: Choice) -> frozenset[Reason]:
    """What is amiss, whatever arm of this spec was to run there."""
    return NOBODYS_FAULT | (OF_THE_PLACE if choice.arm == BASELINE else SHARED)


def deadline(pool: Pool, since: str) -> datetime | None:
    """When a target that has come no further `since` then is given up; None while its clock stands still."""
    spec = pool.snapshot.spec
    return parse_time(since) + spec.promotion.progress_deadline if spec and since else None


def of(pool: Pool, choice: Choice) -> Servers | None:
    """The servers that are there, if they are what was chosen."""
    return pool.servers if pool.servers and pool.servers.revision == choice.revision else None


def _instead(pool: Pool, choice: Choice) -> bool:
    """A candidate gives way to the baseline. A baseline that has not served yet to what has, if that was not taken off
    itself; one that has served, or has been taken off, to nothing: nothing better is known."""
    if choice.arm != BASELINE and not baseline_held(pool):
        return True
    new = not baseline_held(pool) and not has_served(pool, choice.revision)
    last = last_served(pool)
    return new and last is not None and last.revision != choice.revision
