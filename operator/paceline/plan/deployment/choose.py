"""Choose what a pool serves, and why. Promotion, fallback and upgrade are one roll-out with another `why`."""

from dataclasses import dataclass

from paceline.api.status import Serving, Target
from paceline.core import BASELINE
from paceline.plan.deployment.changed import asked_anew
from paceline.plan.deployment.earned import manual, may_stay, promoted_before, shown
from paceline.plan.deployment.hold import baseline_held, held_revision, hold
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An arm at a revision. `evidence` is the run that promoted it, "" for the baseline; `fingerprint` is the hash of
    what that run has measured, `speedup` its result."""

    arm: str
    revision: str
    why: str
    fingerprint: str
    evidence: str = ""
    speedup: float | None = None


def frozen(pool: Pool) -> Choice | None:
    """While suspended, the former target stays, although the spec may have changed; unless it is held."""
    target = pool.remembered.target
    if not pool.suspended or not target or target.revision not in pool.kept:
        return None
    return None if target.revision == held_revision(pool) else _remembered(target, target.arm)


def back(pool: Pool) -> Choice | None:
    """While the spec's baseline is held, the revision that served last."""
    last, held = last_served(pool), hold(pool)
    if not baseline_held(pool) or held is None or last is None:
        return None
    by = f", by {last.evidence}" if last.evidence else ""
    return Choice(
        arm=last.arm,
        revision=last.revision,
        fingerprint="",
        evidence=last.evidence,
        speedup=last.speedup,
        why=f"back to the last revision that served{by}; held: {held.reason}",
    )


def proven(pool: Pool) -> Choice | None:
    """The winner of the run that decides the present question; in Manual mode, once a person has chosen it."""
    choice = winner(pool)
    if choice is None or choice.revision == held_revision(pool):
        return None
    return choice if not manual(pool) or _chosen_before(pool) == choice.revision else None


def as_before(pool: Pool) -> Choice | None:
    """A candidate that was promoted stays, even after its run is deleted."""
    target, arm = promoted_before(pool), may_stay(pool)
    # The hold is forgotten as soon as the spec no longer renders its revision and another one is the target.
    held = pool.remembered.hold.revision if pool.remembered.hold else None
    return _remembered(target, arm.name) if target and arm and target.revision != held else None


def unproven(pool: Pool) -> Choice:
    """The baseline: no candidate has been shown to be faster."""
    return baseline(pool, _why_not(pool))


def baseline(pool: Pool, why: str) -> Choice:
    revision = pool.revision(pool.arms[BASELINE])
    return Choice(arm=BASELINE, revision=revision, fingerprint=pool.fingerprint, why=why)


def winner(pool: Pool) -> Choice | None:
    """The winner of the run that decides the present question, whether or not it may be served."""
    run = pool.decided
    arm = pool.arms.get((run.winner if run else None) or "")
    if run is None or arm is None or run.outcome != "Promote":
        return None
    speed = run.ratio(arm.name)
    return Choice(
        arm=arm.name,
        revision=pool.revision(arm),
        fingerprint=run.fingerprint,
        evidence=run.name,
        speedup=speed.ratio if speed else None,
        why=shown(run),
    )


def intent(choice: Choice, since: str) -> Target:
    """The choice as `target` of status, which is written before any action."""
    return Target(
        revision=choice.revision,
        arm=choice.arm,
        why=choice.why,
        since=since,
        fingerprint=choice.fingerprint,
        evidence=choice.evidence,
        speedup=choice.speedup,
    )


def _chosen_before(pool: Pool) -> str | None:
    """The revision of the target; if status was lost, that of the servers."""
    target = pool.remembered.target
    return target.revision if target else (pool.servers.revision if pool.servers else None)


def _remembered(target: Target, arm: str) -> Choice:
    return Choice(
        arm=arm,
        revision=target.revision,
        fingerprint=target.fingerprint,
        evidence=target.evidence,
        speedup=target.speedup,
        why=target.why,
    )


def _why_not(pool: Pool) -> str:
    """Why the baseline is served: a hold, Manual mode, a verdict, a changed question, or no verdict at all."""
    if held := hold(pool):
        return f"the candidate is held ({held.reason}): {held.message or held.revision}"
    if shown := winner(pool):
        return f"{shown.evidence} has shown {shown.arm}, and promotion.mode is Manual"
    promoted_once = any(run.outcome == "Promote" for run in pool.runs)
    if promoted_once and pool.decided:
        return f"{pool.decided.name}: {NO_WINNER.get(str(pool.decided.outcome), '')}"
    return (asked_anew(pool) if promoted_once else "") or "no candidate has been shown to be faster"


NO_WINNER = {
    "Reject": "every candidate was rejected",
    "Inconclusive": "no candidate could be decided",
    "Error": "nothing could be measured",
}
"""Outcome of the present question → why no candidate is served, where an earlier run had promoted one."""

CHOICES = (frozen, back, proven, as_before)
"""The first rule that gives a choice wins; if none does, the baseline is served."""


def choose(pool: Pool) -> Choice:
    return next((choice for rule in CHOICES if (choice := rule(pool))), unproven(pool))


def as_chosen(pool: Pool, choice: Choice) -> bool:
    """Whether the servers are what was chosen: all ready, and none of another revision left."""
    return pool.servers is not None and pool.servers.revision == choice.revision and pool.servers.settled


def last_served(pool: Pool) -> Serving | None:
    """The revision that all servers were last, if it is not held and its rendering is kept."""
    last = pool.remembered.serving
    usable = last is not None and last.revision in pool.kept and last.revision != held_revision(pool)
    return last if usable else None


def has_served(pool: Pool, revision: str) -> bool:
    """Whether all servers were of this revision and ready since it was chosen last. What served before the revision was
    last given up does not count."""
    serving, target = pool.remembered.serving, pool.remembered.target
    if serving is None or target is None or not serving.revision == target.revision == revision:
        return False
    return parse_time(serving.since) >= parse_time(target.since)
