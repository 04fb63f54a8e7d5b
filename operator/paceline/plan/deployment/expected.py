"""What the evidence has measured of the candidate that is served: kept in status, so that it outlives the run."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum

from paceline import api
from paceline.api.record import finite
from paceline.api.run_status import Point
from paceline.api.status import Expected, ExpectedLoad
from paceline.core import BASELINE, Arm, RunSpec, Workload
from paceline.engines import ENGINES
from paceline.evidence.round_status import last_tries
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
        loads=tuple(_loads(run, arm.name, spec.workloads)),
    )


def _arm(spec: RunSpec, name: str | None) -> Arm | None:
    return next((arm for arm in spec.arms if arm.name == name), None)


def _loads(run: Run, arm: str, workloads: Iterable[Workload]) -> Iterator[ExpectedLoad]:
    points = [point for record in last_tries(run.results) for point in record.points if point.arm == arm]
    for workload in workloads:
        valid = [point for point in points if point.valid and point.workload == workload.name]
        if not valid:
            continue
        yield ExpectedLoad(
            workload=workload.name,
            concurrency=_mean(_under_way(point, workload) for point in valid),
            accept_length=_mean(point.accept_length for point in valid),
            mean_ttft=_mean(point.mean_ttft for point in valid),
            mean_tpot=_mean(point.mean_tpot for point in valid),
        )


def _under_way(point: Point, workload: Workload) -> float | None:
    """Mean number of requests under way; at a rate by Little's law. None for a ramp, which is at all of its loads."""
    if workload.levels:
        return None
    if workload.rate is None:
        return point.mean_concurrency or float(workload.concurrency)
    return (point.kept_rate or workload.rate) * point.mean_e2e if point.mean_e2e else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if finite(value) is not None and value is not None]
    return fsum(known) / len(known) if known else None


def _crossover(pool: Pool, run: Run, choice: Choice) -> float | None:
    arms = {arm["name"] for arm in run.spec["arms"]}
    name = choice.arm if choice.arm in arms else run.winner or ""
    return crossover(run.spec, name, pool.snapshot.of("BenchmarkRun"))
