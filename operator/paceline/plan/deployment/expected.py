"""What the evidence has measured of the candidate that is served: kept in status, so that it outlives the run."""

from collections.abc import Container, Iterator
from dataclasses import replace

from paceline import api
from paceline.api.status import Expected, ExpectedLoad
from paceline.core import BASELINE, Arm, RunSpec
from paceline.engines import ENGINES
from paceline.plan.deployment.choose import Choice
from paceline.plan.deployment.crossover import crossover
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run


def expected(pool: Pool, choice: Choice) -> Expected | None:
    """As remembered, else from the run that promoted it while that is there. None for the baseline, and for a candidate
    of whose evidence nothing is left."""
    if choice.arm == BASELINE or not choice.evidence.run:
        return None
    before = pool.remembered.expected
    same = before is not None and (before.revision, before.run) == (choice.revision, choice.evidence.run)
    if same and before and before.crossover:
        return before
    run = next((run for run in pool.runs if run.name == choice.evidence.run), None)
    if run is None:
        return before if same else None
    found = before if same else _of_run(pool, run, choice)
    return found and replace(found, crossover=_crossover(pool, run, choice))


def _of_run(pool: Pool, run: Run, choice: Choice) -> Expected | None:
    """None if this release cannot read the run's spec."""
    try:
        spec = api.run(run.manifest)
    except api.InvalidManifestError:
        return None
    arm = _arm(spec, choice.arm) or _arm(spec, run.winner)
    if arm is None:
        return None
    return Expected(
        revision=choice.revision,
        run=run.name,
        verify_tokens=ENGINES[pool.server.engine.type].verify_tokens(arm),
        loads=tuple(_loads(run, arm.name, {one.name for one in spec.workloads})),
    )


def _arm(spec: RunSpec, name: str | None) -> Arm | None:
    return next((arm for arm in spec.arms if arm.name == name), None)


def _loads(run: Run, arm: str, workloads: Container[str]) -> Iterator[ExpectedLoad]:
    for result in run.status.results or ():
        if result.arm == arm and result.workload in workloads:
            yield ExpectedLoad(
                workload=result.workload,
                concurrency=result.concurrency,
                accept_length=result.accept_length,
                mean_ttft=result.mean_ttft,
                mean_tpot=result.mean_tpot,
            )


def _crossover(pool: Pool, run: Run, choice: Choice) -> float | None:
    arms = {arm["name"] for arm in run.spec["arms"]}
    name = choice.arm if choice.arm in arms else run.winner or ""
    return crossover(run.spec, name, pool.snapshot.of("BenchmarkRun"))
