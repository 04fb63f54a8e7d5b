"""Takes down and holds a choice that does not run, or whose speculation does not pay. Nothing else takes one down.

A choice does not run if no further server becomes ready for `promotion.progressDeadline`, if every server of it fails
for good, or if it has served and no server was ready for this long. Lack of capacity and an unreachable node are not
the revision's fault: the deadline is paused, and nothing is held. Speculation does not pay if the judgement on a
promoted candidate says so and `guard.action` is Fallback.

Like a request, this changes the pool's entry before any step: hold and new target are written together before any
action.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from paceline.api import Reason
from paceline.api.status import Hold, Target
from paceline.core import BASELINE
from paceline.plan.deployment.choose import Choice, Rollout, choose
from paceline.plan.deployment.degraded import falls_back
from paceline.plan.deployment.holds import BY_A_PERSON, held, with_hold
from paceline.plan.deployment.pool import Pool, name_conflict
from paceline.plan.deployment.pull import is_pulling
from paceline.plan.deployment.servers import Servers
from paceline.plan.step import parse_time, timestamp
from paceline.plan.trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionFailure:
    """Why a revision may not be served. `deadline`: the missed one; None if more time would not help."""

    reason: Literal["NotReady", "Crashed", "Fallback"]
    message: str
    deadline: timedelta | None = None


def take_down(pool: Pool, now: datetime) -> Rollout:
    """Choose what the pool serves. If that does not run, or does not pay, put a hold on it and choose again; unless
    nothing else could be served."""
    rollout = Rollout(pool=pool, choice=choose(pool))
    choice = rollout.choice
    failure = failed(rollout, now) or unprofitable(rollout)
    if failure is None:
        return rollout
    new = Hold(
        reason=failure.reason,
        message=failure.message,
        start_time=timestamp(now),
        revision=choice.revision,
        arm=choice.arm,
        fingerprint=pool.last_asked(choice.fingerprint),
        run=choice.evidence.run,
        deadline_seconds=int(failure.deadline.total_seconds()) if failure.deadline else None,
    )
    without = with_hold(pool, new, now)
    instead = Rollout(pool=without, choice=choose(without))
    return instead if _is_better(instead, choice, failure) else rollout


def _is_better(instead: Rollout, than: Choice, failure: RevisionFailure) -> bool:
    """Whether the new choice is another revision without a known failure. A revision that a person rolled back may
    replace one that does not run, but not one that only does not pay."""
    known = held(instead.pool, instead.choice.revision)
    taken_back = known is not None and known.reason in BY_A_PERSON and failure.reason != "Fallback"
    return instead.choice.revision != than.revision and (known is None or taken_back)


def unprofitable(rollout: Rollout) -> RevisionFailure | None:
    """Why the baseline must replace a candidate that runs; None if it need not."""
    judgement = falls_back(rollout)
    return RevisionFailure(reason="Fallback", message=judgement.message.rstrip(".")) if judgement else None


def failed(rollout: Rollout, now: datetime) -> RevisionFailure | None:
    """Why the choice does not run; None if it runs or may still start. A choice that is new in this pass cannot have
    failed."""
    pool, choice = rollout.pool, rollout.choice
    servers, target = _servers_of_choice(pool, choice), pool.remembered.target
    if target is None or target.revision != choice.revision or rollout.settled or name_conflict(pool):
        return None
    reason: Literal["NotReady", "Crashed"] = "Crashed" if rollout.has_served else "NotReady"
    own_fault = servers is not None and not servers.reasons <= not_its_fault(pool, choice)
    problem = servers.trouble if servers else None
    if servers and problem and own_fault and servers.hopeless and not _before_its_models(pool, problem):
        return RevisionFailure(reason=reason, message=problem.message.rstrip("."))
    patience = pool.deployment.promotion.progress_deadline
    if choice.arm == BASELINE and problem and problem.reason in PLACE_AT_FAULT:
        lasted = problem.since is not None and now >= problem.since + patience
        return RevisionFailure(reason=reason, message=problem.message) if lasted else None
    due = deadline(pool, target_progress(rollout, now).stands_since)
    if due is None or now < due:
        return None
    minutes = f"{patience.total_seconds() / 60:g} min (promotion.progressDeadline)"
    what = "no server was ready for" if reason == "Crashed" else "no further server was ready within"
    why = f": {problem.message.rstrip('.')}" if problem else ""
    return RevisionFailure(reason=reason, message=f"{what} {minutes}{why}", deadline=patience)


def _before_its_models(pool: Pool, problem: Trouble) -> bool:
    """Whether the servers crashed while the volume may still have lacked the models; only the next start counts
    then."""
    since = pool.snapshot.cached_since
    return problem.reason is Reason.Crashing and problem.since is not None and (since is None or problem.since <= since)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProgress:
    """Progress of the target. `stands_since`: time of the last progress, "" if nothing is wrong or capacity is missing.
    `ready`: the largest number of servers ready at once during the roll-out."""

    stands_since: str = ""
    ready: int | None = None


def target_progress(rollout: Rollout, now: datetime) -> TargetProgress:
    pool, choice = rollout.pool, rollout.choice
    before, servers = pool.remembered.target or Target(), _servers_of_choice(pool, choice)
    same = before.revision == choice.revision
    if rollout.settled:
        return TargetProgress()
    waits = (servers is not None and bool(servers.reasons & not_its_fault(pool, choice))) or is_pulling(rollout, now)
    if same and rollout.has_served:
        lost = not (waits or (servers and servers.ready))
        return TargetProgress(stands_since=before.stands_since or timestamp(now) if lost else "")
    most = before.ready or 0 if same else 0
    ready = max(most, servers.own_ready if servers else 0)
    if waits:
        return TargetProgress(ready=ready or None)
    stood = before.stands_since if same and ready == most else ""
    return TargetProgress(stands_since=stood or timestamp(now), ready=ready or None)


CLUSTER_AT_FAULT = frozenset({Reason.NoCapacity, Reason.NodeNotReady, Reason.Paused})
PLACE_AT_FAULT = frozenset({Reason.Unplaceable, Reason.PodRefused})
"""Reasons about where a server runs, which a candidate shares with its baseline: only a changed spec can cause them."""
_SHARED = PLACE_AT_FAULT | {Reason.CannotStart}
"""Reasons that a candidate shares with its baseline, which has the same image, Secrets and volumes. Otherwise, a
registry outage while a node is drained would take down every promoted candidate without giving any pool a server."""


def not_its_fault(pool: Pool, choice: Choice) -> frozenset[Reason]:
    """Reasons that any arm of this spec would have in its place. The spec's baseline may have another image than the
    incumbent."""
    shared = choice.arm != BASELINE and not pool.incumbent
    return CLUSTER_AT_FAULT | (_SHARED if shared else PLACE_AT_FAULT)


def deadline(pool: Pool, since: str) -> datetime | None:
    """When a target without progress since then is taken down; None while its deadline is paused (`since` is "")."""
    return parse_time(since) + pool.deployment.promotion.progress_deadline if since else None


def _servers_of_choice(pool: Pool, choice: Choice) -> Servers | None:
    """The servers, if they are of the chosen revision."""
    return pool.servers if pool.servers and pool.servers.revision == choice.revision else None
