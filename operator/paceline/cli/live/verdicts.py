"""The gate's verdicts on a deployment's pools for the current spec, and their exit code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.api.reasons import Reason
from paceline.cli.live.advice import advice
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.cli.live.progress import rounds
from paceline.cli.live.wording import EMULATED
from paceline.cli.options import EXIT
from paceline.core.record import decimal, finite

UNDECIDED, STALLED = "Undecided", "Stalled"
EXIT_CODES = {**EXIT, UNDECIDED: 13, STALLED: 14}
"""The codes of `paceline gate FILE`, and two more in a cluster: no verdict in time; no verdict before a person acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResult:
    pool: str
    outcome: str
    """A key of EXIT_CODES."""
    message: str
    winner: str = ""
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    run: str = ""
    emulated: bool = False

    @property
    def final(self) -> bool:
        return self.outcome != UNDECIDED

    def __str__(self) -> str:
        by = f"; by {self.run}" if self.run and self.final else ""
        return f"{self.pool}: {self.outcome}: {self.message}{by}{f' ({EMULATED})' if self.emulated else ''}"


def verdict_results(deployment: ObservedDeployment, pool: str | None = None) -> tuple[PoolResult, ...]:
    """One result per pool, or only the given pool's."""
    return tuple(_result(deployment, each) for each in deployment.chosen(pool))


def _result(deployment: ObservedDeployment, pool: ObservedPool) -> PoolResult:
    verdict, step, stalled = pool.status.verdict, pool.status.progress, deployment.condition("Stalled")
    if not deployment.seen:
        message = f"the operator has not read generation {deployment.generation} yet"
        return PoolResult(pool=pool.name, outcome=UNDECIDED, message=message)
    if verdict and verdict.outcome in EXIT_CODES and deployment.judged:
        return PoolResult(
            pool=pool.name,
            outcome=verdict.outcome,
            message=verdict.message,
            winner=verdict.winner or "",
            speedup=finite(verdict.evidence.speedup),
            lower=finite(verdict.lower),
            upper=finite(verdict.upper),
            run=verdict.evidence.run,
            emulated=verdict.evidence.run in pool.emulated,
        )
    if step and step.step == "Held" and deployment.judged:
        return PoolResult(pool=pool.name, outcome=STALLED, message=f"{step.message}; {advice(deployment, pool)}")
    if step and step.step == "NotMeasurable" and deployment.judged:
        return PoolResult(pool=pool.name, outcome=STALLED, message=step.message)
    refused = stalled is not None and stalled.reason == Reason.InvalidSpec.name  # the rounds belong to the former spec
    if pool.progress and pool.progress.going_on and not refused:
        gate = "; a gate on what it finds follows" if pool.progress.search is not None else ""
        message = f"{pool.progress.run} is measuring: {rounds(pool.progress)}{gate}"
        return PoolResult(pool=pool.name, outcome=UNDECIDED, message=message, emulated=pool.progress.emulated)
    if stalled:
        return PoolResult(pool=pool.name, outcome=STALLED, message=f"{stalled.reason}: {stalled.message}")
    return PoolResult(pool=pool.name, outcome=UNDECIDED, message=_waits_for(deployment, pool))


def _waits_for(deployment: ObservedDeployment, pool: ObservedPool) -> str:
    if (step := pool.status.progress) and step.message and (deployment.judged or step.step != "Decided"):
        return step.message
    said = (deployment.condition(kind) for kind in ("Reconciling", "Measuring", "Ready"))
    return next((condition.message for condition in said if condition), "nothing is measured yet")


def exit_code(found: Sequence[PoolResult]) -> int:
    """The highest code among the pools: 0 means that each has a winner."""
    return max(EXIT_CODES[result.outcome] for result in found)


def verdicts_payload(deployment: ObservedDeployment, found: Sequence[PoolResult]) -> dict[str, Any]:
    worst = max(found, key=lambda result: EXIT_CODES[result.outcome])
    return {
        "namespace": deployment.namespace,
        "name": deployment.name,
        "generation": deployment.generation,
        "outcome": worst.outcome,
        "pools": [
            {
                "name": result.pool,
                "outcome": result.outcome,
                "winner": result.winner,
                **{key: None if value is None else decimal(value) for key, value in _numbers(result)},
                "message": result.message,
                "benchmarkRun": result.run,
                "emulated": result.emulated,
            }
            for result in found
        ],
    }


def _numbers(result: PoolResult) -> tuple[tuple[str, float | None], ...]:
    return ("speedup", result.speedup), ("lower", result.lower), ("upper", result.upper)
