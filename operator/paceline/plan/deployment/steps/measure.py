"""A run decides what is undecided."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason, run_manifest_spec
from paceline.api.run_status import RunProgress
from paceline.api.status import Hold, PoolProgress, PoolVerdict
from paceline.core import BASELINE, Purpose, Trigger
from paceline.core.names import ATTEMPT, TOKEN, TRIGGER, child_name
from paceline.engines.nodes import unmeasurable
from paceline.plan.deployment import again, loan, window
from paceline.plan.deployment.changed import asked_anew
from paceline.plan.deployment.conflicts import name_conflict
from paceline.plan.deployment.earned import ANYWAY, bounds, evidence_of, manual
from paceline.plan.deployment.hold import baseline_held, held_by_a_person, hold, way_out
from paceline.plan.deployment.imported import not_used
from paceline.plan.deployment.lasting import report_lasting
from paceline.plan.deployment.measured_again import measured_again_at
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.preflight import foretold
from paceline.plan.deployment.prompts import missing
from paceline.plan.deployment.requests.request import annotation
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.runs import Run, annotated
from paceline.plan.deployment.stale import SHOWN
from paceline.plan.images import differ, digest
from paceline.plan.silence import ASK_AGAIN
from paceline.plan.step import Apply, StepResult, earliest, timestamp
from paceline.plan.versions import same_release
from paceline.render import benchmark_run

OUTCOMES = {
    "Inconclusive": (Reason.Inconclusive, Reason.NotDecided),
    "Error": (Reason.BenchmarkError, Reason.NotDecided),
    "Reject": (Reason.AllDecided, Reason.BaselineFaster),
    "Promote": (Reason.AllDecided, Reason.AllPromoted),
}
"""Outcome → reasons of Decided and of Promoted."""
REJECTED_FOR = {"NothingAccepted": Reason.NothingAccepted, "OutputsDiffer": Reason.OutputsDiffer}
"""Reason of a verdict that rejects for something else than speed → reason of Promoted."""


def measure(rollout: Rollout, now: datetime) -> StepResult:
    """Report the verdict on the present question, follow the run that decides it, or make one."""
    step = _measure(rollout, now)
    return replace(step, notes=(*step.notes, *not_used(rollout.pool)))


def _measure(rollout: Rollout, now: datetime) -> StepResult:
    pool = rollout.pool
    if run := pool.decided:
        causes = _verdict_causes(rollout, run)
        decided = StepResult(
            causes=causes, status=_verdict(pool, run), notes=(*_other_version(pool), *_other_image(pool, run))
        )
        return _again(rollout, decided, now)
    if why := unmeasurable(pool.server):
        return _never(pool, f"{why}; set it to 1 to compare the candidates")
    held_by = held_by_a_person(pool)
    undecided = (
        Cause(Reason.DecisionHeld, pool.name, _held(pool, held_by))
        if held_by
        else Cause(Reason.Undecided, pool.name, asked_anew(pool) or _stale(pool))
    )
    causes = (undecided, _not_promoted(rollout))
    running = next((run for run in pool.attempts if not run.finished), None)
    if pool.suspended:
        status = _doing("Suspended", run=running.name if running else "")
        return StepResult(causes=(*causes, Cause(Reason.Suspended, pool.name)), status=status)
    if held_by:
        return StepResult(
            causes=(*causes, Cause(Reason.RunsHeld, pool.name, _held(pool, held_by))),
            status=_doing("Held", held_by.message),
        )
    if baseline_held(pool) and (held := hold(pool)):
        note = f"revision {held.revision}: {way_out(pool)}"
        return StepResult(
            causes=(*causes, Cause(Reason.BaselineHeld, pool.name, note)),
            status=_doing("Held", held.message),
        )
    # serve blocks then, so a run that is reported as beginning or going on would not do so.
    conflict = name_conflict(pool)
    if running is not None and not (conflict and running.suspended):
        return _follow(rollout, running, causes, now)
    if conflict or not rollout.settled:
        note = conflict or "the pool's own servers come first"
        return StepResult(
            causes=(*causes, Cause(Reason.WaitingForCapacity, pool.name, note)),
            status=_doing("Serving", note),
        )
    if absent := "; ".join(missing(pool)):
        waits = (Cause(Reason.WaitingForPrompts, pool.name, absent), Cause(Reason.PromptsMissing, pool.name, absent))
        status = _doing("WaitingForPrompts", absent)
        return StepResult(causes=(*causes, *waits), status=status, requeue_at=now + ASK_AGAIN)
    if opens := window.opens_at(pool.deployment, now):
        note = f"it opens at {timestamp(opens)}"
        return StepResult(
            causes=(*causes, Cause(Reason.WaitingForWindow, pool.name, note)),
            status=_doing("WaitingForWindow", f"benchmark.window: {note}"),
            requeue_at=opens,
        )
    return _make_run(pool, causes)


def _again(rollout: Rollout, decided: StepResult, now: datetime) -> StepResult:
    """A candidate that is held is measured again at its time; the verdict stands until there is another."""
    pool, at = rollout.pool, measured_again_at(rollout)
    running = next((run for run in pool.attempts if run.under_way), None)
    held_back = pool.suspended or held_by_a_person(pool) or baseline_held(pool) or name_conflict(pool)
    if held_back or not (running or at):
        return decided
    if running:
        more = _follow(rollout, running, decided.causes, now)
    elif at and now < at:
        return replace(decided, requeue_at=at)
    elif opens := window.opens_at(pool.deployment, now):
        return replace(decided, requeue_at=opens)
    elif not rollout.settled or missing(pool):
        return decided
    else:
        more = _make_run(pool, decided.causes, held=hold(pool))
    return replace(more, status={**decided.status, **more.status}, notes=decided.notes)


def _make_run(pool: Pool, causes: tuple[Cause, ...], held: Hold | None = None) -> StepResult:
    """Make a run. It takes over the rounds of a run whose question differs only in rule or candidates; because of a
    hold, new ones are measured."""
    before = (run.attempt for run in pool.runs if run.fingerprint == pool.fingerprint and not run.imported)
    attempt = 1 + max(before, default=pool.retried)
    name = child_name(pool.snapshot.name, pool.name, pool.fingerprint, attempt)
    stale = next((run for run in pool.attempts if run.stale), None)
    anew = pool.retried and not any(run.attempt > pool.retried for run in pool.attempts)
    token = pool.remembered.retried.token if anew and pool.remembered.retried else ""
    trigger = Trigger.HOLD if held else Trigger.RETRY if token else Trigger.STALE if stale else Trigger.SPEC
    searches = pool.run_spec.purpose is Purpose.SEARCH
    earlier = None if token or held or searches else again.source(pool)
    moved = stale and pool.servers and trigger is Trigger.STALE and differ(stale.image, pool.servers.image)
    image = digest(pool.servers.image) if pool.servers and moved else ""
    wanted = run_manifest_spec(replace(pool.run_spec, rounds_of=earlier.name if earlier else ""))
    made_by = {ATTEMPT: str(attempt), TRIGGER: trigger.value, **({TOKEN: token or image} if token or image else {})}
    candidates = " or ".join(pool.in_question)
    whys = (
        f"{held.arm} is held ({held.reason}) since {held.start_time}" if held else "",
        f"retry={token}" if token else "",
        stale.stale if stale and not token else "",
        asked_anew(pool) if not (token or stale or held) else "",
        f"the rounds of {earlier.name} are judged again" if earlier else "",
    )
    why = "; ".join(filter(None, whys))
    first = f"it is not known yet whether {candidates} beats the baseline"
    if searches:
        first = f"it is not known yet which of {len(pool.in_question)} candidates is the fastest"
    elif pool.search:
        first = f"{pool.search.name} has found {candidates}, and it is not known yet whether that beats the baseline"
    return StepResult(
        causes=(*causes, Cause(Reason.Measuring, pool.name, name)),
        actions=(Apply(benchmark_run(pool.snapshot.owner, pool.name, name, wanted, made_by), why or first),),
        # As `_follow` says it of a run that has no status yet: that it is there needs no write of its own.
        status={"attempts": attempt, **_doing("Measuring", name, run=name, because=why)},
    )


def _stale(pool: Pool) -> str:
    """Why the last run of the present question does not decide it; "" if there is none."""
    return next((run.stale for run in pool.attempts if run.stale), "")


def _never(pool: Pool, why: str) -> StepResult:
    return StepResult(
        causes=(
            Cause(Reason.NotMeasurable, pool.name, why),
            Cause(Reason.NotDecided, pool.name, why),
            Cause(Reason.NothingToMeasure, pool.name),
        ),
        status=_doing("NotMeasurable", why),
    )


def _follow(rollout: Rollout, run: Run, causes: tuple[Cause, ...], now: datetime) -> StepResult:
    pool = rollout.pool
    waits = Reason.RoundRefused if run.refused else Reason.WaitingForCapacity
    reason = waits if run.waits or run.refused else Reason.Measuring
    reason = Reason.WaitingForWindow if run.outside_window else reason
    stalled = report_lasting(pool.snapshot, run.refused, pool.name, now)
    lends = loan.note(rollout, now)
    progress = run.status.progress or RunProgress()
    message = " ".join(filter(None, (run.name, progress.message)))
    message = f"{message.rstrip('.')}; {lends}" if lends else message
    closed = window.annotations(pool.deployment, now)
    why = "spec.suspend is no longer set" if run.suspended else "benchmark.window is open"
    resume = Apply(annotated(pool.snapshot.owner, run, closed), why)
    return StepResult(
        causes=(*causes, Cause(reason, pool.name, message), *stalled.causes),
        actions=(resume,) if run.suspended or (run.opens_at and not closed) else (),
        status=_doing("Measuring", message, run=run.name, because=_because(pool, run)),
        requeue_at=earliest((stalled.requeue_at, loan.changes_at(rollout, now))),
    )


def _because(pool: Pool, run: Run) -> str:
    """As it was said when the run was made."""
    before = pool.remembered.progress
    return before.because if before and pool.remembered.benchmark_run == run.name else ""


def _doing(step: str, message: str = "", run: str = "", because: str = "") -> dict[str, Any]:
    """Fields of the pool's entry of status."""
    return {"benchmark_run": run, "progress": PoolProgress(step=step, message=message, because=because)}


def _verdict_causes(rollout: Rollout, run: Run) -> tuple[Cause, ...]:
    pool = rollout.pool
    decided, promoted = OUTCOMES[run.outcome or "Error"]
    promoted = REJECTED_FOR.get(run.verdict.reason, promoted)
    why = f": {run.verdict.message}" if run.outcome == "Error" else ""
    return (
        Cause(decided, pool.name, f"{run.outcome}, {run.name}{why}"),
        _promoted(rollout, run)
        if promoted is Reason.AllPromoted
        else _not_promoted(rollout, promoted, _message(pool, run)),
        Cause(Reason.NothingToMeasure, pool.name),
    )


def _other_version(pool: Pool) -> tuple[str, ...]:
    """A note if the image reports another version than the spec, whose rules and options were applied."""
    wanted = pool.server.engine.version
    # Empty if no server of the run has come up to say it.
    reports = (run.status.engine_version for run in pool.attempts if run.status.engine_version)
    reported = next(reports, wanted)
    if same_release(reported, wanted):
        return ()
    return (f"spec.engine.version: {wanted}, but the image reports {reported}: set it to that",)


def _other_image(pool: Pool, run: Run) -> tuple[str, ...]:
    """A note if the servers run another image than the verdict is about, and measuring again has not changed that."""
    if pool.servers is None or not differ(run.image, pool.servers.image):
        return ()
    was, now = digest(run.image)[:SHOWN], digest(pool.servers.image)[:SHOWN]
    return (
        f"spec.engine.image: {pool.server.engine.image} is {was} where {run.name} measured and {now} where it serves: "
        "name the image by its digest (REPOSITORY@sha256:…)",
    )


def _not_promoted(rollout: Rollout, otherwise: Reason = Reason.NotDecided, message: str = "") -> Cause:
    """Promoted, where the present question has promoted no candidate: one that was promoted before may still serve."""
    pool, choice = rollout.pool, rollout.choice
    if choice.reason == ANYWAY:
        return _promoted_anyway(rollout, message)
    held = held_by_a_person(pool)
    message = "; ".join(filter(None, (message, _held(pool, held) if held else "")))
    if not choice.evidence.run:
        return Cause(Reason.Held if held else otherwise, pool.name, message)
    stays = f"{choice.arm}{': ' if baseline_held(pool) else ' keeps serving on '}{choice.message}"
    if not (rollout.settled or rollout.has_served):
        return Cause(Reason.Promoting, pool.name, choice.message)
    if manual(pool) and otherwise is not Reason.NotDecided:
        ask = f"annotate {annotation('promote', pool.name)}={pool.revision(pool.arms[BASELINE])}@TOKEN"
        return Cause(Reason.AwaitingPromote, pool.name, f"{message}; {stays}; for the baseline {ask} (TOKEN: any word)")
    return Cause(Reason.StillPromoted, pool.name, "; ".join(filter(None, (stays, message))))


def _promoted_anyway(rollout: Rollout, message: str = "") -> Cause:
    """Promoted, where a person has promoted a candidate whatever the verdict."""
    pool, choice = rollout.pool, rollout.choice
    if not (rollout.settled or rollout.has_served):
        return Cause(Reason.Promoting, pool.name, choice.message)
    verdict = "" if pool.decided and pool.decided.name in choice.message else message
    undo = f"to undo it, annotate {annotation('rollback', pool.name)}=@TOKEN (TOKEN: any word)"
    return Cause(Reason.PromotedAnyway, pool.name, "; ".join(filter(None, (choice.message, verdict, undo))))


def _held(pool: Pool, held: Hold) -> str:
    """A person's hold, and the way out."""
    return f"{held.reason} since {held.start_time}: {held.message}; {way_out(pool)}"


def _promoted(rollout: Rollout, run: Run) -> Cause:
    """Promoted, where the run has a winner: whether that is served, and if not, why."""
    pool, message = rollout.pool, run.verdict.message
    if rollout.choice.evidence.run == run.name:
        served = rollout.settled or rollout.has_served
        return Cause(Reason.AllPromoted if served else Reason.Promoting, pool.name, message)
    if rollout.choice.reason == ANYWAY:
        return _promoted_anyway(rollout, message)
    revision = pool.revision(pool.arms[run.winner or ""])
    if held_by_a_person(pool):
        ask = f"annotate {annotation('promote', pool.name)}={revision}@TOKEN to serve {run.winner}"
        return _not_promoted(rollout, Reason.Held, f"{message}; {ask}")
    if (held := hold(pool)) and (revision == held.revision or baseline_held(pool)):
        why = f"{held.reason} since {held.start_time}: {held.message or held.revision}"
        at = measured_again_at(rollout)
        again = f"it is measured again from {timestamp(at)} on; " if at else ""
        return Cause(Reason.Held, pool.name, f"{message}; {why}; {again}{way_out(pool)}")
    if pool.suspended:
        return Cause(Reason.Held, pool.name, f"{message}; spec.suspend is set")
    ask = f"annotate {annotation('promote', pool.name)}={revision}@TOKEN (TOKEN: any word that was not used before)"
    return Cause(Reason.AwaitingPromote, pool.name, f"{message}; {ask}")


def _message(pool: Pool, run: Run) -> str:
    """The verdict's message; without a winner, also what preflight had expected of the head."""
    expected = foretold(pool) if run.outcome in ("Reject", "Inconclusive") else ""
    return "; ".join(part for part in (run.verdict.message, expected) if part)


def _verdict(pool: Pool, run: Run) -> dict[str, Any]:
    """Fields of the pool's entry of status."""
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
        **_doing(
            "Decided",
            f"{run.outcome}: {run.winner} {bounds(speed)}" if run.winner else str(run.outcome),
            run=run.name,
        ),
    }
