"""A run for what is undecided."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason, run_manifest_spec
from paceline.api.run_status import RunProgress
from paceline.api.status import PoolProgress, PoolVerdict
from paceline.core import BASELINE, Trigger
from paceline.core.names import SUPERSEDED, SUSPENDED, child_name
from paceline.engines.nodes import unmeasurable
from paceline.plan.deployment.again import source
from paceline.plan.deployment.changed import asked_anew
from paceline.plan.deployment.check import foretold
from paceline.plan.deployment.choose import as_chosen, choose, has_served
from paceline.plan.deployment.earned import bounds, manual
from paceline.plan.deployment.hold import baseline_held, hold, suspended, way_out
from paceline.plan.deployment.prompts import missing
from paceline.plan.deployment.requests import annotation
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Pool
from paceline.plan.deployment.strangers import foreign
from paceline.plan.deployment.stuck import lasting
from paceline.plan.silence import ASK_AGAIN
from paceline.plan.step import Apply, StepResult
from paceline.render import Owner, benchmark_run

OUTCOMES = {
    "Inconclusive": (Reason.Inconclusive, Reason.NotDecided),
    "Error": (Reason.BenchmarkError, Reason.NotDecided),
    "Reject": (Reason.AllDecided, Reason.BaselineFaster),
    "Promote": (Reason.AllDecided, Reason.AllPromoted),
}
"""Outcome → what it says of Decided and of Promoted."""
REJECTED_FOR = {"NothingAccepted": Reason.NothingAccepted, "OutputsDiffer": Reason.OutputsDiffer}
"""Of a rejection for something else than speed."""


BEING_MADE = "the run is being made"
"""Where there is nothing to say of why: the first one of a pool."""


def stop(pool: Pool, _: datetime) -> StepResult:
    """Runs that must not go on: of a question that is no more, or while suspended, when nothing is given up: the old
    question may come back. Stands before serve, which may hold for long. Their spec goes along: an apply without it
    would take it away."""
    word, why = (SUSPENDED, "spec.suspend is set") if suspended(pool) else (SUPERSEDED, "the question has changed")
    going_on = [run for run in pool.runs if not run.finished and not run.superseded]
    ending = [run for run in going_on if suspended(pool) or run.question != pool.question]
    return StepResult(actions=tuple(Apply(annotated(pool.snapshot.owner, run, word), why) for run in ending))


def measure(pool: Pool, now: datetime) -> StepResult:
    """The question of now is answered, being answered, or asked."""
    if run := pool.decided:
        return StepResult(causes=_verdict_causes(pool, run), status=_verdict(pool, run), notes=_other_version(pool))
    if why := unmeasurable(pool.server):
        return _never(pool, f"{why}; set it to 1 to compare the candidates")
    causes = (Cause(Reason.Undecided, pool.name, asked_anew(pool)), _beside(pool))
    running = next((run for run in pool.asked if not run.finished), None)
    if suspended(pool):
        waits = PoolProgress(step="Suspended", benchmark_run=running.name if running else "")
        return StepResult(causes=(*causes, Cause(Reason.Suspended, pool.name)), status={"progress": waits})
    if baseline_held(pool) and (held := hold(pool)):
        note = f"revision {held.revision}: {way_out(pool)}"
        return StepResult(
            causes=(*causes, Cause(Reason.BaselineHeld, pool.name, note)),
            status={"progress": PoolProgress(step="Held", message=held.message)},
        )
    # serve holds then: what would be said of a run that is to begin or to go on would not be done.
    blocked = foreign(pool)
    if running is not None and not (blocked and running.suspended):
        return _follow(pool, running, causes, now)
    if blocked or not as_chosen(pool, choose(pool)):
        note = blocked or "the pool's own servers come first"
        return StepResult(
            causes=(*causes, Cause(Reason.WaitingForCapacity, pool.name, note)),
            status={"progress": PoolProgress(step="Serving", message=note)},
        )
    if absent := "; ".join(missing(pool)):
        said = (Cause(Reason.WaitingForPrompts, pool.name, absent), Cause(Reason.PromptsMissing, pool.name, absent))
        progress = PoolProgress(step="WaitingForPrompts", message=absent)
        return StepResult(causes=(*causes, *said), status={"progress": progress}, requeue_at=now + ASK_AGAIN)
    return _ask(pool, causes)


def _ask(pool: Pool, causes: tuple[Cause, ...]) -> StepResult:
    """A run. The rounds of a question that was another only by its rule or its candidates are not measured again."""
    attempt = 1 + max((run.attempt for run in pool.runs if run.fingerprint == pool.fingerprint), default=pool.retried)
    name = child_name(pool.snapshot.name, pool.name, pool.fingerprint, attempt)
    stale = next((run for run in pool.asked if run.stale), None)
    anew = pool.retried and not any(run.attempt > pool.retried for run in pool.asked)
    token = pool.remembered.retried.token if anew and pool.remembered.retried else ""
    trigger = Trigger.RETRY if token else Trigger.STALE if stale else Trigger.SPEC
    taken = None if token else source(pool)
    wanted = replace(
        pool.run_spec, attempt=attempt, trigger=trigger, token=token, rounds_of=taken.name if taken else ""
    )
    candidates = " or ".join(arm.name for arm in pool.spec.arms[1:])
    whys = (
        f"retry={token}" if token else "",
        f"{stale.name} is older than maxEvidenceAge" if stale and not token else "",
        asked_anew(pool) if not (token or stale) else "",
        f"the rounds of {taken.name} are judged again" if taken else "",
    )
    why = "; ".join(filter(None, whys))
    first = f"it is not known yet whether {candidates} beats the baseline"
    return StepResult(
        causes=(*causes, Cause(Reason.Measuring, pool.name, name)),
        actions=(Apply(benchmark_run(pool.snapshot.owner, pool.name, name, run_manifest_spec(wanted)), why or first),),
        status={
            "attempts": attempt,
            "progress": PoolProgress(step="Measuring", benchmark_run=name, message=why or BEING_MADE),
        },
    )


def _never(pool: Pool, why: str) -> StepResult:
    return StepResult(
        causes=(
            Cause(Reason.NotMeasurable, pool.name, why),
            Cause(Reason.NotDecided, pool.name, why),
            Cause(Reason.NothingToMeasure, pool.name),
        ),
        status={"progress": PoolProgress(step="NotMeasurable", message=why)},
    )


def _follow(pool: Pool, run: Run, causes: tuple[Cause, ...], now: datetime) -> StepResult:
    progress = _progress(run)
    waits = Reason.RoundRefused if run.refused else Reason.WaitingForCapacity
    reason = waits if run.waits or run.refused else Reason.Measuring
    for_long = lasting(pool.snapshot, run.refused, pool.name, now)
    resume = Apply(annotated(pool.snapshot.owner, run), "spec.suspend is no longer set")
    return StepResult(
        causes=(*causes, Cause(reason, pool.name, progress.message), *for_long.causes),
        actions=(resume,) if run.suspended else (),
        status={"progress": progress},
        requeue_at=for_long.requeue_at,
    )


def annotated(owner: Owner, run: Run, *annotations: str) -> dict[str, Any]:
    """The run as it is, and these annotations of ours and no other."""
    manifest = benchmark_run(owner, run.pool, run.name, run.found["spec"])
    manifest["metadata"]["annotations"] = dict.fromkeys(annotations, "true")
    return manifest


def _progress(run: Run) -> PoolProgress:
    said = run.status.progress or RunProgress()
    message = " ".join(part for part in (run.name, said.message) if part)
    return PoolProgress(step="Measuring", benchmark_run=run.name, message=message, round=said.round)


def _verdict_causes(pool: Pool, run: Run) -> tuple[Cause, ...]:
    decided, promoted = OUTCOMES[run.outcome or "Error"]
    promoted = REJECTED_FOR.get(run.verdict.reason, promoted)
    why = f": {run.verdict.message}" if run.outcome == "Error" else ""
    return (
        Cause(decided, pool.name, f"{run.outcome}, {run.name}{why}"),
        _how_far(pool, run) if promoted is Reason.AllPromoted else _beside(pool, promoted, _message(pool, run)),
        Cause(Reason.NothingToMeasure, pool.name),
    )


def _other_version(pool: Pool) -> tuple[str, ...]:
    """What the image answers where the spec says something else: rules and options were those of the spec's."""
    asked = pool.server.engine.version
    answers = next((run.status.engine_version for run in pool.asked if run.status.engine_version is not None), asked)
    same = answers.removeprefix(asked)[:1] in ("", "+", ".", "-", "r", "a", "b") and answers.startswith(asked)
    return () if same else (f"spec.engine.version: {asked}, but the image reports {answers}: set it to that",)


def _beside(pool: Pool, otherwise: Reason = Reason.NotDecided, said: str = "") -> Cause:
    """Of Promoted, where the question of now has promoted nobody: what was promoted before may serve on."""
    choice = choose(pool)
    if not choice.evidence:
        return Cause(otherwise, pool.name, said)
    served = as_chosen(pool, choice) or has_served(pool, choice.revision)
    stays = f"{choice.arm}{': ' if baseline_held(pool) else ' stays, by '}{choice.why}"
    if not served:
        return Cause(Reason.Promoting, pool.name, choice.why)
    if manual(pool) and otherwise is not Reason.NotDecided:
        ask = f"annotate {annotation('promote', pool.name)}={pool.revision(pool.arms[BASELINE])}@TOKEN"
        return Cause(Reason.AwaitingPromote, pool.name, f"{said}; {stays}; for the baseline {ask} (TOKEN: any word)")
    return Cause(Reason.StillPromoted, pool.name, "; ".join(filter(None, (stays, said))))


def _how_far(pool: Pool, run: Run) -> Cause:
    """A winner is shown, but is it served?"""
    said = run.verdict.message
    choice = choose(pool)
    if choice.evidence == run.name:
        served = as_chosen(pool, choice) or has_served(pool, choice.revision)
        return Cause(Reason.AllPromoted if served else Reason.Promoting, pool.name, said)
    revision = pool.revision(pool.arms[run.winner or ""])
    if (held := hold(pool)) and (revision == held.revision or baseline_held(pool)):
        what = f"{held.reason} since {held.since}: {held.message or held.revision}"
        return Cause(Reason.Held, pool.name, f"{said}; {what}; {way_out(pool)}")
    if suspended(pool):
        return Cause(Reason.Held, pool.name, f"{said}; spec.suspend is set")
    ask = f"annotate {annotation('promote', pool.name)}={revision}@TOKEN (TOKEN: any word that was not used before)"
    return Cause(Reason.AwaitingPromote, pool.name, f"{said}; {ask}")


def _message(pool: Pool, run: Run) -> str:
    """The run's, and of one that found no winner what preflight had said of the head."""
    known = foretold(pool) if run.outcome in ("Reject", "Inconclusive") else ""
    return "; ".join(part for part in (run.verdict.message, known) if part)


def _verdict(pool: Pool, run: Run) -> dict[str, Any]:
    """Fields of the pool's entry."""
    speed = run.ratio(run.winner)
    return {
        "verdict": PoolVerdict(
            outcome=run.outcome or "",
            winner=run.winner or "",
            reason=run.verdict.reason,
            message=_message(pool, run),
            benchmark_run=run.name,
            fingerprint=run.fingerprint,
            crossing=run.verdict.crossing,
            speedup=speed.ratio if speed else None,
            lower=speed.lower if speed else None,
            upper=speed.upper if speed else None,
        ),
        "progress": PoolProgress(
            step="Decided",
            benchmark_run=run.name,
            message=f"{run.outcome}: {run.winner} {bounds(speed)}" if run.winner else str(run.outcome),
        ),
    }
