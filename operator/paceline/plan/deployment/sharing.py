"""Pools that search the same trees share server starts (0075): each server that the first search starts is measured at
the loads of the other pools too, and their searches go on from these points."""

from datetime import datetime

from paceline.api.run import MOST_WORKLOADS
from paceline.core import PoolSpec, Purpose, Workload
from paceline.engines.nodes import unmeasurable
from paceline.evidence import measured_for, same_search
from paceline.plan.deployment.conflicts import name_conflict
from paceline.plan.deployment.hold import baseline_held, held_by_a_person
from paceline.plan.deployment.pool import Pool, in_a_search, pools
from paceline.plan.deployment.prompts import missing
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.stale import moved_image
from paceline.plan.deployment.take_down import take_down
from paceline.plan.step import parse_time


def shared_workloads(pool: Pool) -> tuple[Workload, ...]:
    """For the first search of the pools that search the same trees: the loads of those that have not begun."""
    if first_to_search(pool).name != pool.name:
        return ()
    own = {workload.name for workload in pool.spec.workloads}
    others = (other for other in _alike(pool) if other.name != pool.name and not _searches(pool, other))
    loads = dict[str, Workload]()
    for other in others:
        more = {load.name: load for load in in_a_search(other.workloads) if load.name not in own}
        # Half of a pool's loads are no use to it.
        loads = {**loads, **more} if len({**loads, **more}) <= MOST_WORKLOADS else loads
    return tuple(loads.values())


def first_to_search(pool: Pool) -> PoolSpec:
    """The pool with the largest concurrency: its servers admit the loads of all."""
    return max(_alike(pool), key=lambda spec: max(workload.concurrency for workload in spec.workloads))


def source(pool: Pool, now: datetime) -> Run | None:
    """The latest search that has measured this pool's loads for it; None without one. One that is aged or measured
    another image than serves, and one that a person has asked to repeat, does not count."""
    first = _first(pool, now)
    names = {run.name for run in (_searches(pool, first.spec) if first.name != pool.name else ())}
    ended = [
        run
        for run in first.runs
        if run.name in names
        and run.finished
        and run.outcome != "Error"
        and not (run.aged or first.given_up(run) or moved_image(run, pool.wanted, pool.servers))
        and measured_for(pool.wanted, run.spec)
    ]
    return max(ended, key=lambda run: run.finished_at, default=None)


def waits_for(pool: Pool, now: datetime) -> str:
    """What a search waits for, to go on from another pool's points; "" if it begins at once."""
    spec = first_to_search(pool)
    if spec.name == pool.name or pool.run_spec.purpose is not Purpose.SEARCH:
        return ""
    first = _first(pool, now)
    begun, kept = _searches(pool, spec), _is_kept_from_measuring(first)
    patience = pool.deployment.promotion.progress_deadline
    under_way = [
        run for run in begun if run.under_way and not ((run.suspended and kept) or _stuck(run, now - patience))
    ]
    for_us = next((run.name for run in under_way if measured_for(pool.wanted, run.spec)), "")
    if for_us:
        return f"{for_us}, the search of pool {first.name}, measures its loads too"
    if begun or kept or missing(first) or not _servers_come_up(first, now):
        return ""
    return f"the search of pool {first.name} is about to begin, and will measure its loads too"


def _is_kept_from_measuring(first: Pool) -> bool:
    """Until somebody does something."""
    return bool(held_by_a_person(first) or baseline_held(first) or name_conflict(first) or unmeasurable(first.server))


def _stuck(run: Run, before: datetime) -> bool:
    """Whether its round has had no room, or was refused, since before this time."""
    since = run.status.progress.unplaced_since if run.status.progress else ""
    return bool(since and (run.waits or run.refused)) and parse_time(since) <= before


def _servers_come_up(first: Pool, now: datetime) -> bool:
    """Servers that do not become ready keep another pool waiting no longer than `progressDeadline`."""
    rollout, target = take_down(first, now), first.remembered.target
    if rollout.settled or rollout.is_pulling or not (target and target.since):
        return not rollout.is_pulling
    return now < parse_time(target.since) + first.deployment.promotion.progress_deadline


def _first(pool: Pool, now: datetime) -> Pool:
    name = first_to_search(pool).name
    return next(one for one in pools(pool.snapshot, pool.deployment, now) if one.name == name)


def _alike(pool: Pool) -> tuple[PoolSpec, ...]:
    """The pools that search the same arms, this one among them."""
    mine = next(spec for spec in pool.deployment.pools if spec.name == pool.name)
    return tuple(other for other in pool.deployment.pools if other.search and other.arms == mine.arms) or (mine,)


def _searches(pool: Pool, other: PoolSpec) -> tuple[Run, ...]:
    """Those of these arms on this server that belong to a pool, unless superseded."""
    runs = (Run(manifest=manifest) for manifest in pool.snapshot.owned("BenchmarkRun", other.name))
    return tuple(run for run in runs if run.searches and not run.superseded and same_search(pool.wanted, run.spec))
