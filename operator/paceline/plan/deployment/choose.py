"""Choose what a pool serves, and why. Promotion, fallback and upgrade are the same roll-out with different messages.

The first rule that gives a choice wins; if none does, the baseline is served:

    keep_what_serves       while suspended, or while its spec or models cannot be used: what was chosen before
    what_a_person_chose    while a person's hold stands: what their request has left the pool to serve
    return_to_last_served  while the spec's baseline is held: the revision that served last
    winner_of_verdict      the winner of the present verdict; in Manual mode once a person has chosen it
    keep_promoted          a candidate that was promoted before, until a verdict rejects it
    keep_incumbent         what serves, until a changed spec was shown not to be slower
    the_baseline           no candidate has been shown to be faster
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from paceline.api.run_status import Result
from paceline.api.status import Caveat, Change, ChangeReason, Serving, ServingEvidence, Target
from paceline.core import BASELINE, Arm, PromotionMode, Purpose
from paceline.evidence import same_server
from paceline.evidence.changes import summary
from paceline.plan.deployment.doubt import doubt
from paceline.plan.deployment.holds import baseline_failure, failure, held, held_by_a_person, holds
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run
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
    """Reason of the change, if this choice was not the target before."""
    evidence: ServingEvidence = field(default_factory=ServingEvidence)
    at_once: str = ""
    """Why it was not compared with what served."""


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """A pool during one pass, with what to serve; the choice is made once, and every step reads it."""

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
    """The target stays, although the spec may have changed. If the target is held, the last served revision is served;
    without one, the baseline as the spec has it, or as it last served, if it was rendered before. A revision that was
    never rendered is not served, no matter what was deleted, unless a person promotes it while suspended."""
    target = pool.remembered.target
    if not pool.frozen or target is None:
        return None
    rendered = {*pool.kept, pool.servers.revision if pool.servers else ""}
    if target.reason == ANYWAY and not pool.blocked:
        rendered |= pool.rendered
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
    """The verdict's winner; in Manual mode, or if a promote-anyway request overrides the verdict, only if a person
    chose it."""
    choice = winner(pool)
    if choice is None or held(pool, choice.revision):
        return None
    by_hand = manual(pool) or overridden(pool) or bool(pool.decided and pool.decided.beside_incumbent and doubt(pool))
    return choice if not by_hand or _chosen_before(pool) == choice.revision else None


def keep_promoted(pool: Pool) -> Choice | None:
    """A promoted candidate stays, even after its run is deleted. A hold counts here until another revision is the
    target, even if the spec no longer renders the held revision."""
    target, arm = promoted_before(pool), may_stay(pool)
    if target is None or arm is None or any(one.revision == target.revision for one in pool.remembered.holds):
        return None
    return _remembered(target, arm.name)


def keep_incumbent(pool: Pool) -> Choice | None:
    """What serves goes on. If its speculation stopped paying, its own baseline replaces it."""
    incumbent, target = pool.incumbent, pool.remembered.target
    if incumbent is None or target is None:
        return None
    if failure(pool, incumbent.revision) and incumbent.was.revision in pool.kept:
        return replace(_remembered(incumbent.was, incumbent.was.arm), reason="TakenDown")
    if incumbent.arm.name != incumbent.was.arm:
        last = next((one.reason for one in holds(pool) if one.revision == incumbent.was.revision), None)
        reason: ChangeReason = "Fallback" if last == "Fallback" else "TakenDown"
        return replace(baseline(pool, _why_not(pool), reason), revision=incumbent.revision)
    choice = replace(_remembered(incumbent.was, incumbent.was.arm), revision=incumbent.revision)
    if incumbent.was.revision == target.revision:
        return choice
    return replace(choice, reason="TakenDown", message=f"back to what served; {_why_not(pool)}")


def the_baseline(pool: Pool) -> Choice:
    choice, before = baseline(pool, _why_not(pool), _reason_of_baseline(pool)), pool.remembered.target
    if before is None or before.revision != choice.revision:
        before = Target()
    choice, at_once = replace(choice, evidence=before.evidence), before.at_once or pool.gated.at_once
    return (
        replace(choice, at_once=at_once, message=f"{choice.message}; not measured first: {at_once}")
        if at_once
        else choice
    )


RULES = (
    keep_what_serves,
    what_a_person_chose,
    return_to_last_served,
    winner_of_verdict,
    keep_promoted,
    keep_incumbent,
    the_baseline,
)


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
    if arm.name == BASELINE:
        accepted = baseline(pool, f"{run.name}: it is not slower than what served", "Updated")
        return replace(accepted, evidence=evidence_of(run, BASELINE))
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
        at_once=choice.at_once,
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
    target = pool.remembered.target
    if target and target.reason == ANYWAY and target.revision == pool.revision(pool.arms[BASELINE]):
        return target.message
    candidates = [one for one in holds(pool) if one.arm != BASELINE or one.reason not in ("NotReady", "Crashed")]
    if candidates:
        last = candidates[0]
        return f"the candidate is held ({last.reason}): {last.message or last.revision}"
    if shown := winner(pool):
        return f"{shown.evidence.run} favours {shown.arm}, but promotion.mode is Manual"
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

ANYWAY: ChangeReason = "PromotedAnyway"
"""Reason of a target promoted by promote-anyway: it stays although it has no evidence."""


def promoted_before(pool: Pool) -> Target | None:
    """The pool's target if it is a promoted candidate; if status was lost, the one that the servers run."""
    target = pool.remembered.target or _promoted_servers(pool)
    earned = target is not None and (target.evidence.run or target.reason == ANYWAY)
    return target if target and earned and target.arm != BASELINE else None


def _promoted_servers(pool: Pool) -> Target | None:
    """The target, found from the candidate that the servers run and the run that promoted it on the same server."""
    arm = _candidate_at(pool, pool.servers.revision) if pool.servers else None
    run = next((run for run in reversed(pool.runs) if arm and _had_promoted(run, arm, pool.wanted)), None)
    if pool.servers is None or arm is None or run is None:
        return None
    return Target(
        revision=pool.servers.revision,
        arm=arm.name,
        fingerprint=run.fingerprint,
        evidence=evidence_of(run, arm.name),
        message=result_sentence(run),
    )


def evidence_of(run: Run, winner: str) -> ServingEvidence:
    """The run as evidence for `winner`, with caveats; without a speed-up if the run has no result for it."""
    speed = run.ratio(winner)
    marks: dict[Caveat, bool] = {"Emulated": run.status.emulated is True, "Imported": run.status.imported}
    caveats = tuple(caveat for caveat, holds in marks.items() if holds)
    return ServingEvidence(run=run.name, speedup=speed.ratio if speed else None, caveats=caveats)


def _candidate_at(pool: Pool, revision: str) -> Arm | None:
    """The spec's candidate with this revision."""
    return next((arm for arm in pool.spec.arms[1:] if pool.revision(arm) == revision), None)


def _had_promoted(run: Run, arm: Arm, wanted: Mapping[str, Any]) -> bool:
    """Whether the run's winner is this arm, under any name, on the server that is wanted now."""
    then = next((entry for entry in run.spec["arms"] if entry["name"] == run.winner), None)
    now = next((entry for entry in wanted["arms"] if entry["name"] == arm.name), None)
    same = then is not None and (now is None or {**then, "name": ""} == {**now, "name": ""})
    return same and run.outcome == "Promote" and same_server(run.spec, wanted)


def result_sentence(run: Run) -> str:
    """The result of a run that promotes, in a sentence."""
    where = ", measured without a cluster" if run.status.imported else ""
    return f"{run.name}: {run.winner} is {speedup_text(run.ratio(run.winner))} as fast as the baseline{where}"


def speedup_text(speed: Result | None) -> str:
    """`1.36x (1.34–1.39)`."""
    if speed is None or speed.ratio is None or speed.lower is None or speed.upper is None:
        return "faster"
    return f"{speed.ratio:.2f}x ({speed.lower:.2f}–{speed.upper:.2f})"


def still_rendered(pool: Pool) -> Arm | None:
    """The spec's candidate that equals the promoted one, under any name."""
    target = promoted_before(pool)
    return _candidate_at(pool, target.revision) if target else None


def may_stay(pool: Pool) -> Arm | None:
    """The spec's candidate for which the promoted one keeps serving; None if it does not."""
    arm = still_rendered(pool)
    if arm is None:
        return None
    return arm if manual(pool) or overridden(pool) or not refuted(pool.decided, arm.name) else None


def overridden(pool: Pool) -> bool:
    """Whether a promote-anyway request overrides the verdict that counts now. It overrides every verdict on the same
    measurement: under another gate, for fewer candidates, or in another attempt. That of a baseline overrides only a
    verdict that was there: candidates of a coming one are compared with it."""
    target, run = pool.remembered.target, pool.decided
    if target is None or target.reason != ANYWAY:
        return False
    if target.arm == BASELINE and (run is None or run.completion_time > target.start_time):
        return False
    return target.fingerprint == (run.fingerprint if run else pool.fingerprint)


def refuted(run: Run | None, arm: str) -> bool:
    """Whether the verdict rejects this candidate, or all of them. Error and Inconclusive reject none, and a gate about
    a search's result does not reject other candidates."""
    if run is None or run.outcome == "Error":
        return False
    verdicts = {verdict.arm: verdict.outcome for verdict in run.status.arm_verdicts or ()}
    compared = {entry["name"] for entry in run.spec["arms"]}
    return verdicts.get(arm) == "rejected" or (run.outcome == "Reject" and arm in compared and not run.searches)


def manual(pool: Pool) -> bool:
    return pool.deployment.promotion.mode is PromotionMode.MANUAL


def asked_anew(pool: Pool) -> str:
    """What changed from the last decided question to the present one; "" if none was decided."""
    last = _decided_last(pool)
    return summary(last.spec, pool.wanted) if last else ""


def _decided_last(pool: Pool) -> Run | None:
    """Of the decided runs of other questions, the one whose winner is served; if there is none, the latest."""
    searches = pool.run_spec.purpose is Purpose.SEARCH
    alike = [run for run in pool.runs if run.searches == searches and (run.outcome or run.found)]
    others = [run for run in alike if run is not pool.decided and run.question != pool.question]
    evidence = pool.remembered.target.evidence.run if pool.remembered.target else None
    latest = sorted(others, key=lambda run: (run.name == evidence, run.completion_time))
    return latest[-1] if latest else None
