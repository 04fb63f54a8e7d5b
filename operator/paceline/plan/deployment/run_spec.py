"""The spec of the run that decides a pool's question: the gate, or the search before it."""

import math
from collections.abc import Iterable
from dataclasses import replace

from paceline.api import run_manifest_spec
from paceline.api.status import PoolStatus
from paceline.core import (
    BASELINE,
    Arm,
    DeploymentSpec,
    Gate,
    PoolSettings,
    Purpose,
    RunSpec,
    Server,
    Workload,
    default_looks,
    fewest_requests,
)
from paceline.core.kept import by_value
from paceline.engines.grid import ADAPTIVE
from paceline.plan.deployment.incumbent import Incumbent
from paceline.plan.deployment.runs import Run

SHARE, FEWEST = 4, 16
"""A search sends a quarter of the requests: all of its points use the same prompts, so common effects cancel, and its
result is measured again."""
written = by_value(256)(run_manifest_spec)
"""Cached by value, because the arguments are equal in each pass unless the spec or a commit changed."""


def make_run_spec(
    spec: DeploymentSpec, pool: PoolSettings, server: Server, search: Run | None, incumbent: Incumbent | None
) -> RunSpec:
    """The spec of the gate about all candidates or about a search's result; before that result, of the search."""
    if search:
        pool = _with_arms(pool, _compared(pool, search), default=2)
    if incumbent and not (pool.search and search is None):
        pool = _with_arms(pool, (*pool.arms, incumbent.measured), default=len(pool.arms))
    run = RunSpec(
        pool=pool.name,
        server=server,
        arms=pool.arms,
        workloads=pool.workloads,
        gate=pool.gate,
        pod_labels=spec.run_pod_labels,
        queue_name=spec.run_queue_name,
        gpu_hours=spec.run_gpu_hours,
        parity=spec.run_parity,
        timeouts=spec.run_timeouts,
    )
    if pool.search is None or search:
        return run
    counted = tuple(limit for limit in pool.gate.limits if limit.max is not None)
    return replace(
        run,
        purpose=Purpose.SEARCH,
        workloads=tuple(map(_lighter, pool.workloads)),
        gate=Gate(limits=counted),
        parity=None,
    )


def _compared(pool: PoolSettings, search: Run) -> tuple[Arm, ...]:
    """The arms of the gate after a search: its result; if that is the engine's adaptive mode, also the best tree."""
    names = {BASELINE, search.found, _best_tree(pool, search) if search.found == ADAPTIVE else ""}
    return tuple(arm for arm in pool.arms if arm.name in names)


def _best_tree(pool: PoolSettings, search: Run) -> str:
    """The tree that came closest to winning; "" if none was measured."""
    trees = {arm.name for arm in pool.arms if arm.tree}
    standing = search.status.search.arms if search.status.search else ()
    return next((one.arm for one in standing if one.arm in trees and one.state != "failed"), "")


def _with_arms(pool: PoolSettings, arms: tuple[Arm, ...], default: int) -> PoolSettings:
    """The pool with these arms; the default looks for `default` arms become those for their number."""
    if pool.gate.decide_after_rounds != default_looks(default):
        return replace(pool, arms=arms)
    return replace(pool, arms=arms, gate=replace(pool.gate, decide_after_rounds=default_looks(len(arms))))


def _lighter(workload: Workload) -> Workload:
    requests, turns = workload.dataset.requests, workload.dataset.turns
    fewer = max(math.ceil(requests / SHARE), min(requests, FEWEST), fewest_requests(workload.concurrency, turns))
    return replace(workload, dataset=replace(workload.dataset, requests=fewer))


def with_image(run: RunSpec, name: str, image: str) -> RunSpec:
    """The run with another image of one arm."""

    def own(arm: Arm) -> Arm:
        return replace(arm, engine=replace(arm.engine or run.server.engine, image=image))

    return replace(run, arms=tuple(own(arm) if arm.name == name else arm for arm in run.arms))


def ended_search(
    pool: PoolSettings, runs: Iterable[Run], asked: str, remembered: PoolStatus, incumbent: Incumbent | None
) -> Run | None:
    """The latest search of the question `asked` that found a candidate, except those that a person asked to repeat.
    Beside an incumbent also one that found none: the new baseline may still replace that."""
    if pool.search is None:
        return None
    given_up = last_retried(remembered, asked)
    ended = [run for run in runs if run.question == asked and run.attempt > given_up]
    found = [run for run in ended if run.found or (incumbent and run.found_none)]
    return max(found, key=lambda run: run.attempt, default=None)


def last_retried(remembered: PoolStatus, question: str) -> int:
    """The last attempt at this question that a person asked to repeat; 0 if none."""
    retried = remembered.retried
    return retried.attempt or 0 if retried and retried.question == question else 0
