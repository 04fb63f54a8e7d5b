"""Choose what a pool serves, and why. Promotion, fallback and upgrade are the same roll-out with different messages.

The first rule that gives a choice wins; if none does, the baseline is served:

    keep_what_serves       while suspended, or while its spec or models cannot be used: what was chosen before
    what_a_person_chose    while a person's hold stands: what their request has left the pool to serve
    return_to_last_served  while the spec's baseline is held: the revision that served last
    winner_of_verdict      the winner of the present verdict; in Manual mode once a person has chosen it
    keep_promoted          a candidate that was promoted before, until a verdict rejects it
    the_baseline           no candidate has been shown to be faster
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from paceline.api.status import Change, ChangeReason, Serving, ServingEvidence, Target
from paceline.core import BASELINE
from paceline.plan.deployment.holds import baseline_failure, failure, held, held_by_a_person, holds
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.promoted import (
    asked_anew,
    evidence_of,
    manual,
    may_stay,
    overridden,
    promoted_before,
    refuted,
    result_sentence,
    still_rendered,
)
from paceline.plan.step import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An arm at a revision. `evidence` is what it was promoted on, empty for the baseline; `fingerprint` identifies
    what that run measured."""

    arm: str
    revision: str
    message: str
    fingerprint: str
    reason: ChangeReason
    """Reason of the change, if it was not the target before."""
    evidence: ServingEvidence = field(default_factory=ServingEvidence)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """A pool in one pass, with the choice of what to serve: made once and read by each step."""

    pool: Pool
    choice: Choice

    @cached_property
    def settled(self) -> bool:
        """Whether the servers match the choice: all are ready and none of another revision is left."""
        servers = self.pool.servers
        return servers is not None and servers.revision == self.choice.revision and servers.settled

    @cached_property
    def has_served(self) -> bool:
        """Whether, since the last choice, all servers were of the chosen revision and ready."""
        return has_served(self.pool, self.choice.revision)


def keep_what_serves(pool: Pool) -> Choice | None:
    """The target, although the spec may have changed. If it is held: the last served revision; else the baseline as the
    spec has it, or as it last served, if it was rendered before. A revision that was never rendered is not served, no
    matter what was deleted."""
    target = pool.remembered.target
    if not pool.frozen or target is None:
        return None
    rendered = {*pool.kept, pool.servers.revision if pool.servers else ""}
    if target.revision in rendered and not failure(pool, target.revision):
        return _remembered(target, target.arm)
    if last := _last_served(pool):
        return last
    own = the_baseline(pool)
    if own.revision in rendered and not held(pool, own.revision):
        return own
    before = _baseline_before(pool)
    return replace(own, revision=before) if before else _remembered(target, target.arm)


def what_a_person_chose(pool: Pool) -> Choice | None:
    """A person's choice regardless of the verdict; also a baseline that has replaced a revision that does not run."""
    target = pool.remembered.target
    if target is None or not held_by_a_person(pool) or failure(pool, target.revision):
        return None
    if held(pool, target.revision) and target.reason != "TakenDown":
        return None
    at_hand = target.revision in pool.kept or target.revision == pool.revision(pool.arms[BASELINE])
    return _remembered(target, target.arm) if at_hand else None


def return_to_last_served(pool: Pool) -> Choice | None:
    return _last_served(pool) if baseline_failure(pool) else None


def winner_of_verdict(pool: Pool) -> Choice | None:
    """In Manual mode, and against an earlier promote-anyway, only if a person chose it."""
    choice = winner(pool)
    if choice is None or held(pool, choice.revision):
        return None
    by_hand = manual(pool) or overridden(pool)
    return choice if not by_hand or _chosen_before(pool) == choice.revision else None


def keep_promoted(pool: Pool) -> Choice | None:
    """Even after its run is deleted. A hold counts here until another revision is the target, even if the spec no
    longer renders the held revision."""
    target, arm = promoted_before(pool), may_stay(pool)
    if target is None or arm is None or any(one.revision == target.revision for one in pool.remembered.holds):
        return None
    return _remembered(target, arm.name)


def the_baseline(pool: Pool) -> Choice:
    return baseline(pool, _why_not(pool), _reason_of_baseline(pool))


RULES = (keep_what_serves, what_a_person_chose, return_to_last_served, winner_of_verdict, keep_promoted, the_baseline)


def choose(pool: Pool) -> Choice:
    return next(choice for rule in RULES if (choice := rule(pool)))


def baseline(pool: Pool, message: str, reason: ChangeReason) -> Choice:
    revision = pool.revision(pool.arms[BASELINE])
    return Choice(arm=BASELINE, revision=revision, fingerprint=pool.fingerprint, message=message, reason=reason)


def winner(pool: Pool) -> Choice | None:
    """The winner of the run that answers the present question, whether or not it may be served."""
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
        message=result_sentence(run),
    )


def intent(choice: Choice, time: str, request: str = "") -> Target:
    """The choice as `target` in status, which is written before any action. `request`: the request for it, if any."""
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


def has_served(pool: Pool, revision: str) -> bool:
    """Whether, since this revision was last chosen, all servers were of it and ready. Serving before it was last
    replaced does not count."""
    serving, target = pool.remembered.serving, pool.remembered.target
    if serving is None or target is None or not serving.revision == target.revision == revision:
        return False
    return parse_time(serving.start_time) >= parse_time(target.start_time)


def past(pool: Pool) -> Iterator[Change]:
    """Served revisions, latest first, including the present one."""
    return (change for change in pool.remembered.history if change.revision)


def _baseline_before(pool: Pool) -> str:
    """The revision of the last baseline that served and can be rendered; "" if there is none."""
    fit = (one.revision for one in past(pool) if one.arm == BASELINE and one.revision in pool.kept)
    return next((revision for revision in fit if not held(pool, revision)), "")


def _last_served(pool: Pool) -> Choice | None:
    """The revision that all servers last had, if it is not held and its rendering is kept."""
    last: Serving | None = pool.remembered.serving
    if last is None or last.revision not in pool.kept or held(pool, last.revision):
        return None
    why = next((one.reason for one in holds(pool)), "")
    by = f", by {last.evidence.run}" if last.evidence.run else ""
    return Choice(
        arm=last.arm,
        revision=last.revision,
        fingerprint="",
        reason="TakenDown",
        evidence=last.evidence,
        message=f"back to the last revision that served{by}; held: {why}",
    )


def _chosen_before(pool: Pool) -> str | None:
    """The target's revision; if status was lost, the servers' revision."""
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
    target, arm = pool.remembered.target, still_rendered(pool)
    if target is None:
        return "Started"
    if one := held(pool, target.revision):
        return "Fallback" if one.reason == "Fallback" else "TakenDown"
    return "Demoted" if arm and refuted(pool.decided, arm.name) else "Updated"


def _why_not(pool: Pool) -> str:
    """Why the baseline is served: a hold, Manual mode, a verdict, a changed question, or no verdict at all."""
    candidates = [one for one in holds(pool) if one.arm != BASELINE or one.reason not in ("NotReady", "Crashed")]
    if candidates:
        last = candidates[0]
        return f"the candidate is held ({last.reason}): {last.message or last.revision}"
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
"""Outcome of the present question → why no candidate is served although an earlier run promoted one."""

UNDONE = ("RolledBack", "Aborted", "TakenDown")
"""Reasons of a target that serves because another one was undone."""
