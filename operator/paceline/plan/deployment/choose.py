"""Choose what a pool serves, and why. Promotion, fallback and upgrade are one roll-out with another `message`."""

from dataclasses import dataclass, field

from paceline.api.status import ChangeReason, Evidence, Serving, Target
from paceline.core import BASELINE
from paceline.plan.deployment.changed import asked_anew
from paceline.plan.deployment.earned import (
    evidence_of,
    manual,
    may_stay,
    overridden,
    promoted_before,
    refuted,
    shown,
    still_rendered,
)
from paceline.plan.deployment.hold import baseline_held, fallen_revision, held_by_a_person, held_revision, hold
from paceline.plan.deployment.past_failures import beside_a_hold, in_short
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An arm at a revision. `evidence` is by what it was promoted, empty for the baseline; `fingerprint` is the hash of
    what that run has measured."""

    arm: str
    revision: str
    message: str
    fingerprint: str
    reason: ChangeReason
    """How it is chosen, if it was not the target before."""
    evidence: Evidence = field(default_factory=Evidence)


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
    by = f", by {last.evidence.run}" if last.evidence.run else ""
    return Choice(
        arm=last.arm,
        revision=last.revision,
        fingerprint="",
        reason="TakenDown",
        evidence=last.evidence,
        message=f"back to the last revision that served{by}; held: {held.reason}",
    )


def left(pool: Pool) -> Choice | None:
    """While a person's hold stands, what their request has left the pool to serve, whatever the verdict: the
    baseline that they went back from, too, once it has taken the place of what does not run."""
    target = pool.remembered.target
    if target is None or not held_by_a_person(pool):
        return None
    if target.revision == held_revision(pool) and target.reason != "TakenDown":
        return None
    at_hand = target.revision in pool.kept or target.revision == pool.revision(pool.arms[BASELINE])
    return _remembered(target, target.arm) if at_hand else None


def proven(pool: Pool) -> Choice | None:
    """The winner of the run that decides the present question; in Manual mode, and against a promotion whatever the
    verdict, once a person has chosen it."""
    choice = winner(pool)
    if choice is None or choice.revision in (held_revision(pool), fallen_revision(pool)):
        return None
    by_hand = manual(pool) or overridden(pool)
    return choice if not by_hand or _chosen_before(pool) == choice.revision else None


def as_before(pool: Pool) -> Choice | None:
    """A candidate that was promoted stays, even after its run is deleted."""
    target, arm = promoted_before(pool), may_stay(pool)
    # The hold is forgotten as soon as the spec no longer renders its revision and another one is the target.
    held = pool.remembered.hold.revision if pool.remembered.hold else None
    return _remembered(target, arm.name) if target and arm and target.revision != held else None


def unproven(pool: Pool) -> Choice:
    """The baseline: no candidate has been shown to be faster."""
    return baseline(pool, _why_not(pool), _reason_of_baseline(pool))


def baseline(pool: Pool, message: str, reason: ChangeReason) -> Choice:
    revision = pool.revision(pool.arms[BASELINE])
    return Choice(arm=BASELINE, revision=revision, fingerprint=pool.fingerprint, message=message, reason=reason)


def winner(pool: Pool) -> Choice | None:
    """The winner of the run that decides the present question, whether or not it may be served."""
    run = pool.decided
    arm = pool.arms.get((run.winner if run else None) or "")
    if run is None or arm is None or run.outcome != "Promote":
        return None
    return Choice(
        arm=arm.name,
        revision=pool.revision(arm),
        fingerprint=run.fingerprint,
        reason="Promoted",
        evidence=evidence_of(run, arm.name),
        message=shown(run),
    )


def intent(choice: Choice, time: str, request: str = "") -> Target:
    """The choice as `target` of status, which is written before any action. `request` is the one that asked for it."""
    return Target(
        reason=choice.reason,
        request=request,
        revision=choice.revision,
        arm=choice.arm,
        message=choice.message,
        start_time=time,
        fingerprint=choice.fingerprint,
        evidence=choice.evidence,
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
        reason=target.reason or ("Promoted" if target.evidence.run else "Updated"),
        evidence=target.evidence,
        message=target.message,
    )


def _reason_of_baseline(pool: Pool) -> ChangeReason:
    target, held, arm = pool.remembered.target, hold(pool), still_rendered(pool)
    if target is None:
        return "Started"
    if held and held.revision == target.revision:
        return "Fallback" if held.reason == "Fallback" else "TakenDown"
    return "Demoted" if arm and refuted(pool.decided, arm.name) else "Updated"


def _why_not(pool: Pool) -> str:
    """Why the baseline is served: a hold, Manual mode, a verdict, a changed question, or no verdict at all."""
    held = hold(pool)
    if other := beside_a_hold(pool.remembered, held):
        return in_short(other)
    if held:
        return f"the candidate is held ({held.reason}): {held.message or held.revision}"
    if shown := winner(pool):
        return f"{shown.evidence.run} has shown {shown.arm}, and promotion.mode is Manual"
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

UNDONE = ("RolledBack", "Aborted", "TakenDown")
"""Reasons of a target that serves since another was undone."""

CHOICES = (frozen, back, left, proven, as_before)
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
    return parse_time(serving.start_time) >= parse_time(target.start_time)
