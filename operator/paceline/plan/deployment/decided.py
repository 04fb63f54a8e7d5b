"""The verdict that counts, and its consequences: the conditions Decided and Promoted, and `verdict` in status."""

from collections.abc import Iterator
from typing import Any

from paceline.api import Cause, Reason
from paceline.api.status import Hold, PoolProgress, PoolVerdict
from paceline.core import BASELINE, server_of
from paceline.engines.model_rules import FOREIGN_LAYERS
from paceline.evidence import same_arms, surroundings
from paceline.evidence.changes import summary
from paceline.plan.deployment.choose import ANYWAY, Rollout, evidence_of, manual, speedup_text
from paceline.plan.deployment.holds import baseline_failure, failure, held_by_a_person, measured_again_at, way_out
from paceline.plan.deployment.pool import SHOWN, Pool
from paceline.plan.deployment.requests import annotation
from paceline.plan.deployment.runs import Run
from paceline.plan.objects import differ, finished, image_digest, same_release
from paceline.plan.step import StepResult, timestamp
from paceline.preflight import findings

OUTCOMES = {
    "Inconclusive": (Reason.Inconclusive, Reason.NotDecided),
    "Error": (Reason.BenchmarkError, Reason.NotDecided),
    "Reject": (Reason.AllDecided, Reason.BaselineFaster),
    "Promote": (Reason.AllDecided, Reason.AllPromoted),
}
"""Outcome → reasons of Decided and of Promoted."""
REJECTED_FOR = {"NothingAccepted": Reason.NothingAccepted, "OutputsDiffer": Reason.OutputsDiffer}
"""Reason of a verdict that rejects for another reason than speed → reason of Promoted."""


def decision(rollout: Rollout, run: Run) -> StepResult:
    """Report the run's verdict."""
    return StepResult(
        causes=_verdict_causes(rollout, run),
        status=_verdict(rollout.pool, run),
        notes=(*_other_version(rollout.pool), *_other_image(rollout.pool, run)),
    )


def _verdict_causes(rollout: Rollout, run: Run) -> tuple[Cause, ...]:
    pool = rollout.pool
    decided, promoted = OUTCOMES[run.outcome or "Error"]
    promoted = REJECTED_FOR.get(run.verdict.reason, promoted)
    why = f": {run.verdict.message}" if run.outcome == "Error" else ""
    return (
        Cause(decided, pool.name, f"{run.outcome}, {run.name}{why}"),
        _promoted(rollout, run)
        if promoted is Reason.AllPromoted and not pool.incumbent
        else not_promoted(rollout, _unless_promoted(promoted), "" if pool.incumbent else _message(pool, run)),
        Cause(Reason.NothingToMeasure, pool.name),
    )


def _unless_promoted(reason: Reason) -> Reason:
    """The reason of Promoted while what served before serves on."""
    return Reason.NotDecided if reason is Reason.AllPromoted else reason


def not_promoted(rollout: Rollout, otherwise: Reason = Reason.NotDecided, message: str = "") -> Cause:
    """The condition Promoted if the present question promoted no candidate; one that was promoted before may still
    serve."""
    pool, choice = rollout.pool, rollout.choice
    if choice.reason == ANYWAY:
        return _promoted_anyway(rollout, message)
    held = held_by_a_person(pool)
    message = "; ".join(filter(None, (message, person_hold(pool, held) if held else "")))
    if choice.arm == BASELINE or not choice.evidence.run:
        return Cause(Reason.Held if held else otherwise, pool.name, message)
    stays = f"{choice.arm}{': ' if baseline_failure(pool) else ' keeps serving on '}{choice.message}"
    if not (rollout.settled or rollout.has_served):
        return Cause(Reason.Promoting, pool.name, choice.message)
    if manual(pool) and otherwise is not Reason.NotDecided and not pool.incumbent:
        ask = f"annotate {annotation('promote', pool.name)}={pool.revision(pool.arms[BASELINE])}@TOKEN"
        return Cause(Reason.AwaitingPromote, pool.name, f"{message}; {stays}; for the baseline {ask} (TOKEN: any word)")
    return Cause(Reason.StillPromoted, pool.name, "; ".join(filter(None, (stays, message))))


def _promoted_anyway(rollout: Rollout, message: str = "") -> Cause:
    """The condition Promoted after a promote-anyway request."""
    pool, choice = rollout.pool, rollout.choice
    if not (rollout.settled or rollout.has_served):
        return Cause(Reason.Promoting, pool.name, choice.message)
    verdict = "" if pool.decided and pool.decided.name in choice.message else message
    undo = f"to undo it, annotate {annotation('rollback', pool.name)}=@TOKEN (TOKEN: any word)"
    return Cause(Reason.PromotedAnyway, pool.name, "; ".join(filter(None, (choice.message, verdict, undo))))


def person_hold(pool: Pool, held: Hold) -> str:
    """A person's hold, and how to release it."""
    return f"{held.reason} since {held.start_time}: {held.message}; {way_out(pool)}"


def _promoted(rollout: Rollout, run: Run) -> Cause:
    """The condition Promoted if the run has a winner: whether the winner is served and, if not, why."""
    pool, message = rollout.pool, run.verdict.message
    if run.winner == BASELINE and rollout.choice.arm == BASELINE:
        return not_promoted(rollout, Reason.BaselineFaster, message)
    if rollout.choice.evidence.run == run.name:
        served = rollout.settled or rollout.has_served
        return Cause(Reason.AllPromoted if served else Reason.Promoting, pool.name, message)
    if rollout.choice.reason == ANYWAY:
        return _promoted_anyway(rollout, message)
    revision = pool.revision(pool.arms[run.winner or ""])
    if held_by_a_person(pool):
        ask = f"annotate {annotation('promote', pool.name)}={revision}@TOKEN to serve {run.winner}"
        return not_promoted(rollout, Reason.Held, f"{message}; {ask}")
    if held := failure(pool, revision) or baseline_failure(pool):
        why = f"{held.reason} since {held.start_time}: {held.message or held.revision}"
        at = measured_again_at(pool, rollout.choice.arm)
        again = f"it is measured again from {timestamp(at[0])} on; " if at else ""
        return Cause(Reason.Held, pool.name, f"{message}; {why}; {again}{way_out(pool)}")
    if pool.suspended:
        return Cause(Reason.Held, pool.name, f"{message}; spec.suspend is set")
    ask = f"annotate {annotation('promote', pool.name)}={revision}@TOKEN (TOKEN: any word that was not used before)"
    return Cause(Reason.AwaitingPromote, pool.name, f"{message}; {ask}")


def _message(pool: Pool, run: Run) -> str:
    """The verdict's message; without a winner, also preflight's warning about the head."""
    expected = _foretold(pool) if run.outcome in ("Reject", "Inconclusive") else ""
    return "; ".join(part for part in (run.verdict.message, expected) if part)


def _verdict(pool: Pool, run: Run) -> dict[str, Any]:
    """Fields of the pool's entry in status."""
    speed = run.ratio(run.winner)
    return {
        "verdict": PoolVerdict(
            outcome=run.outcome or "",
            winner=run.winner or "",
            evidence=evidence_of(run, run.winner or ""),
            message=_message(pool, run),
            crossing=run.verdict.crossing,
            lower=speed.lower if speed else None,
            upper=speed.upper if speed else None,
        ),
        "benchmark_run": run.name,
        "progress": PoolProgress(
            step="Decided",
            message=f"{run.outcome}: {run.winner} {speedup_text(speed)}" if run.winner else str(run.outcome),
        ),
    }


def _other_version(pool: Pool) -> tuple[str, ...]:
    """A note if the image reports another version than the spec, whose rules and options were applied."""
    wanted = pool.server.engine.version
    # Empty if no server of the run has started and reported it.
    reports = (run.status.engine_version for run in pool.attempts if run.status.engine_version)
    reported = next(reports, wanted)
    if same_release(reported, wanted):
        return ()
    return (f"spec.engine.version: {wanted}, but the image reports {reported}: set it to that",)


def _other_image(pool: Pool, run: Run) -> tuple[str, ...]:
    """A note if the servers run another image than the verdict is about, and measuring again did not change that."""
    servers = pool.servers
    if servers is None or pool.incumbent or not differ(run.image_of(servers.arm), servers.image):
        return ()
    was, now = image_digest(run.image_of(servers.arm))[:SHOWN], image_digest(servers.image)[:SHOWN]
    arm = pool.arms.get(servers.arm, pool.arms[BASELINE])
    whose = f"the engine.image of {arm.name}" if arm.engine else "spec.engine.image"
    return (
        f"{whose}: {server_of(pool.server, arm).engine.image} is {was} in {run.name} but {now} on its servers: name "
        "the image by its digest (REPOSITORY@sha256:…)",
    )


def _foretold(pool: Pool) -> str:
    """Why preflight expected the pool's candidates to be rejected; "" if it did not. Preflight only warns."""
    facts = pool.snapshot.prefetch.facts if pool.snapshot.prefetch else {}
    foreign = [finding for finding in findings(pool.server, pool.spec.arms, facts) if finding.rule == FOREIGN_LAYERS]
    return "; ".join(f"expected: {finding.problem}; {finding.why}" for finding in foreign)


def not_used(pool: Pool) -> Iterator[str]:
    """Why each of the pool's imported runs does not count. None while another run decides."""
    if pool.decided:
        return
    for manifest in pool.snapshot.imported_of(pool.name):
        run = Run(manifest=manifest)
        if finished(manifest) and (why := _why_not(pool, run)):
            yield f"BenchmarkRun {run.name}, measured without a cluster, is not used: {why}"


def _why_not(pool: Pool, run: Run) -> str:
    """Why the run does not count; "" if its rounds are judged again."""
    if run.outcome and not run.is_trusted(pool.snapshot.settings.signers):
        return "no key that evidence.signers lists now has signed it"
    if run.question != pool.question:
        again = run.decides and surroundings(run.spec) == surroundings(pool.wanted)
        return "" if again and same_arms(pool.wanted, run.spec) else summary(run.spec, pool.wanted)
    stale = next((one.stale for one in pool.runs if one.name == run.name), "")
    if stale or (run.outcome and pool.incumbent and not pool.is_beside(run)):
        return stale or "what serves was not measured beside its arms"
    if run.outcome:
        return f"its verdict is {run.outcome}"
    ends = (condition for condition in run.status.conditions if condition.type == Reason.ImportRefused.value.condition)
    return next((condition.reason for condition in ends), "it has no verdict")
