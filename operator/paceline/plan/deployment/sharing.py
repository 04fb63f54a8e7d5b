"""Pools that search the same trees share server starts (0075): each server that the first search starts is measured at
the loads of the other pools too, and their searches go on from these points."""

from datetime import datetime

from paceline.core import PoolSpec, Purpose, Workload
from paceline.evidence import measured_for
from paceline.plan.deployment.pool import Pool, in_a_search
from paceline.plan.deployment.runs import Run
from paceline.plan.step import parse_time

ABOUT_TO_BEGIN = ("", "Measuring", "Serving", "WaitingForSearch")
"""Steps of a pool whose search begins by itself."""


def shared_workloads(pool: Pool) -> tuple[Workload, ...]:
    """For the first search of the pools that search the same trees: the loads of those that have not begun."""
    if first_to_search(pool).name != pool.name:
        return ()
    own = {workload.name for workload in pool.spec.workloads}
    others = (other for other in _alike(pool) if other.name != pool.name and not _searches(pool, other))
    loads = {load.name: load for other in others for load in in_a_search(other.workloads)}
    return tuple(load for name, load in loads.items() if name not in own)


def first_to_search(pool: Pool) -> PoolSpec:
    """The pool with the largest concurrency: its servers admit the loads of all."""
    return max(_alike(pool), key=lambda spec: max(workload.concurrency for workload in spec.workloads))


def source(pool: Pool) -> Run | None:
    """The latest search that has measured this pool's loads for it; None without one."""
    first = first_to_search(pool)
    runs = _searches(pool, first) if first.name != pool.name else ()
    ended = [run for run in runs if run.finished and run.outcome != "Error" and measured_for(pool.wanted, run.spec)]
    return max(ended, key=lambda run: run.finished_at, default=None)


def waits_for(pool: Pool, now: datetime) -> str:
    """What a search waits for, to go on from another pool's points; "" if it begins at once."""
    first = first_to_search(pool)
    if first.name == pool.name or pool.run_spec.purpose is not Purpose.SEARCH:
        return ""
    begun = _searches(pool, first)
    under_way = [run for run in begun if run.under_way and not run.suspended]
    for_us = next((run.name for run in under_way if measured_for(pool.wanted, run.spec)), "")
    if for_us:
        return f"{for_us}, the search of pool {first.name}, measures its loads too"
    if begun or not _is_about_to_begin(pool, first, now):
        return ""
    return f"the search of pool {first.name} is about to begin, and will measure its loads too"


def _is_about_to_begin(pool: Pool, first: PoolSpec, now: datetime) -> bool:
    """Servers that do not become ready keep another pool waiting no longer than `progressDeadline`."""
    remembered = pool.snapshot.remembered(first.name)
    step = remembered.progress.step if remembered.progress else ""
    if step == "Serving" and remembered.target and remembered.target.since:
        return now < parse_time(remembered.target.since) + pool.deployment.promotion.progress_deadline
    return step in ABOUT_TO_BEGIN


def _alike(pool: Pool) -> tuple[PoolSpec, ...]:
    """The pools that search the same arms, this one among them."""
    mine = next(spec for spec in pool.deployment.pools if spec.name == pool.name)
    return tuple(other for other in pool.deployment.pools if other.search and other.arms == mine.arms) or (mine,)


def _searches(pool: Pool, other: PoolSpec) -> tuple[Run, ...]:
    """Those of these arms that belong to a pool, unless superseded."""
    names = {arm.name for arm in other.arms}
    runs = (Run(manifest=manifest) for manifest in pool.snapshot.owned("BenchmarkRun", other.name))
    return tuple(
        run
        for run in runs
        if run.searches and not run.superseded and {arm["name"] for arm in run.spec["arms"]} == names
    )
