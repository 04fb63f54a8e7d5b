"""A run for what is undecided."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Mark, Reason, run_manifest_spec
from paceline.core.names import child_name
from paceline.plan.deployment.choose import bounds
from paceline.plan.deployment.look import Pool, Run
from paceline.plan.terms import Action, Apply, Said
from paceline.render import benchmark_run

SUPERSEDED = "paceline.dev/superseded"

OUTCOMES = {
    "Inconclusive": (Reason.Inconclusive, Reason.NotDecided),
    "Error": (Reason.BenchmarkError, Reason.NotDecided),
    "Reject": (Reason.AllDecided, Reason.BaselineFaster),
    "Promote": (Reason.AllDecided, Reason.AllPromoted),
}
"""Outcome → what it says of Decided and of Promoted."""


def measure(pool: Pool, now: datetime) -> Said:
    """The question of now is answered, being answered, or asked; runs of old questions end."""
    old = _superseded(pool)
    if run := pool.decided:
        return Said(marks=_verdict_marks(pool, run), actions=old, record=_verdict(run))
    marks = (Mark(Reason.Undecided, pool.name), Mark(Reason.NotDecided, pool.name))
    spec = pool.snapshot.spec
    if spec is not None and spec.suspend:
        return Said(marks=(*marks, Mark(Reason.Suspended, pool.name)), actions=old)
    running = next((run for run in pool.asked if not run.finished), None)
    if running is not None:
        progress = _progress(running)
        return Said(
            marks=(*marks, Mark(Reason.Measuring, pool.name, progress["message"])),
            actions=old,
            record={"progress": progress},
        )
    attempt = 1 + max((run.attempt for run in pool.asked), default=0)
    name = child_name(pool.snapshot.name, pool.name, pool.question, attempt)
    wanted = run_manifest_spec(replace(pool.run_spec, attempt=attempt))
    candidates = ", ".join(arm.name for arm in pool.spec.arms[1:])
    return Said(
        marks=(*marks, Mark(Reason.Measuring, pool.name, name)),
        actions=(
            *old,
            Apply(
                benchmark_run(pool.snapshot.owner, pool.name, name, wanted),
                f"nobody knows yet whether {candidates} beats the baseline",
            ),
        ),
        record={
            "attempts": attempt,
            "progress": {"step": "Measuring", "benchmarkRun": name, "message": "the run is being made"},
        },
    )


def _superseded(pool: Pool) -> tuple[Action, ...]:
    """Their spec goes along: an apply without it would take it away."""
    question = pool.question
    return tuple(
        Apply(
            _annotated(benchmark_run(pool.snapshot.owner, pool.name, run.name, run.found["spec"])),
            "the question has changed",
        )
        for run in pool.runs
        if not run.finished and run.fingerprint != question
    )


def _annotated(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["metadata"]["annotations"] = {SUPERSEDED: "true"}
    return manifest


def _progress(run: Run) -> dict[str, Any]:
    said = run.status.get("progress") or {}
    message = " ".join(part for part in (run.name, said.get("message", "")) if part)
    return {
        "step": "Measuring",
        "benchmarkRun": run.name,
        "message": message,
        **{key: said[key] for key in ("round",) if key in said},
    }


def _verdict_marks(pool: Pool, run: Run) -> tuple[Mark, ...]:
    decided, promoted = OUTCOMES[run.outcome or "Error"]
    verdict = run.status.get("verdict", {})
    if verdict.get("reason") == "NothingAccepted":
        promoted = Reason.NothingAccepted
    elif promoted is Reason.AllPromoted:
        promoted = _how_far(pool, run)
    note = verdict.get("message", "")
    return (
        Mark(decided, pool.name, f"{run.outcome}, {run.name}"),
        Mark(promoted, pool.name, note),
        Mark(Reason.NothingToMeasure, pool.name),
    )


def _how_far(pool: Pool, run: Run) -> Reason:
    """A winner is shown, but is it served?"""
    serving = pool.remembered.get("serving") or {}
    if pool.remembered.get("hold"):
        return Reason.Held
    if serving.get("arm") == run.winner and serving.get("evidence") == run.name:
        return Reason.AllPromoted
    target = pool.remembered.get("target") or {}
    return Reason.Promoting if target.get("arm") == run.winner else Reason.AwaitingPromote


def _verdict(run: Run) -> dict[str, Any]:
    verdict = run.status.get("verdict", {})
    speed = run.ratio(run.winner)
    return {
        "verdict": {
            "outcome": run.outcome,
            "winner": run.winner or "",
            "reason": verdict.get("reason", ""),
            "message": verdict.get("message", ""),
            "benchmarkRun": run.name,
            "fingerprint": run.fingerprint,
            **({"speedup": speed["ratio"], "lower": speed["lower"], "upper": speed["upper"]} if speed else {}),
        },
        "progress": {
            "step": "Decided",
            "benchmarkRun": run.name,
            "message": f"{run.outcome}: {run.winner} {bounds(speed)}" if run.winner else str(run.outcome),
        },
    }
