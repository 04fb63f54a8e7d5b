"""Plans a SpeculativeDeployment. Read this first.

Steps of the whole deployment (`checks`, `fetch`):

    check_spec                 the spec is valid
    end_dropped_pools          pools removed from the spec are deleted
    report_refusals            writes that the API server refused are reported
    ensure_claim               the models have a volume
    fetch_models               the models are on it, pinned to commits
    check_draft                the draft fits its target
    check_kinds                the cluster has the required kinds
    report_missing_companions  companions of the servers that cannot be created are reported

Then for each pool, after `carry_out` (people's requests), `take_down` (failures, including speculation that stopped
paying; also chooses what to serve) and `lend` (a server lent to its run):

    stop_runs              runs of former questions end; all runs pause while suspended
    report_degraded        sets SpeculationDegraded if speculation does not pay as measured
    report_stuck_servers   sets Stalled if the cluster keeps the servers from running for too long
    pull_images            the next servers' image is on the nodes of the present ones
    serve                  the chosen servers run: first the baseline, later a candidate shown to be faster
    measure                a BenchmarkRun answers the open question
    prune_runs             old unreferenced runs are deleted

And always:

    apply_companions       the Service and the other companions of the servers exist

Every step reports; after a step that blocks, the others do not act. A step of the deployment blocks all pools, or
those that need what is missing. A blocked pool runs the same steps but is frozen like a suspended one: `choose` returns
what serves. No step promotes: a run's verdict changes what `choose` returns, and `serve` rolls that out.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.reasons import conditions_to_status as conditions_of
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import BASELINE
from paceline.core.record import to_status
from paceline.plan.deployment.checks import (
    OF_NO_POOL,
    check_draft,
    check_kinds,
    check_spec,
    end_dropped_pools,
    of_pools,
    orphans,
    report_missing_companions,
    report_refusals,
)
from paceline.plan.deployment.choose import Rollout
from paceline.plan.deployment.companions import apply_companions
from paceline.plan.deployment.degraded import report_degraded, watched_pools
from paceline.plan.deployment.events import state, transition_events, without_reconciling
from paceline.plan.deployment.fetch import ensure_claim, fetch_models, known_commits
from paceline.plan.deployment.holds import holds
from paceline.plan.deployment.loan import lend
from paceline.plan.deployment.measure import measure, prune_runs, stop_runs
from paceline.plan.deployment.models import pin
from paceline.plan.deployment.pool import Pool, pools
from paceline.plan.deployment.pull import pull_images
from paceline.plan.deployment.requests import carry_out, unknown_requests, waiting_requests
from paceline.plan.deployment.serve import as_it_stands, serve
from paceline.plan.deployment.servers import servers_of
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.deployment.stalled import report_stuck_servers
from paceline.plan.deployment.take_down import take_down
from paceline.plan.step import Plan, Step, StepResult, earliest, walk
from paceline.plan.trouble import recheck_at, waiting

STEPS: tuple[Step[Snapshot], ...] = (
    check_spec,
    end_dropped_pools,
    report_refusals,
    ensure_claim,
    fetch_models,
    check_draft,
    check_kinds,
    report_missing_companions,
)
POOL_STEPS: tuple[Step[Rollout], ...] = (
    stop_runs,
    report_degraded,
    report_stuck_servers,
    pull_images,
    serve,
    measure,
    prune_runs,
)
ALWAYS_LAST: tuple[Step[Rollout], ...] = (apply_companions,)
"""Steps of a pool that are never blocked. They come last, so that a refused Service does not delay the servers."""

MOST_NOTES = 64
MOST_REFUSED = 64
"""Maximum number of requests in status."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Pure: the same snapshot at the same time yields the same status and actions."""
    if adopted := orphans(snapshot):
        # adopt first, because the garbage collector is about to delete these children
        return Plan(status=None, actions=adopted)
    results = walk(STEPS, snapshot, now)
    pool_results: list[StepResult] = []
    entries: list[PoolStatus] = []
    refused = list(unknown_requests(snapshot))
    for pool in _pools(snapshot, results, now):
        not_done = waiting_requests(snapshot, pool.name, results) if pool.blocked else ()
        if not pool.blocked:
            pool, not_done = carry_out(pool, now)
        refused += not_done
        steps, entry = _of_pool(pool, now)
        pool_results += steps
        entries.append(entry)
    for remembered in _without_pool(snapshot, results):
        refused += waiting_requests(snapshot, remembered.name, results)
        step = as_it_stands(remembered, servers_of(snapshot, remembered.name, now))
        pool_results.append(step)
        entries.append(replace(remembered, **step.status))
    every = [*results, *pool_results]
    status = _status(snapshot, every, entries, now)
    status = replace(
        status,
        refused=tuple(refused[:MOST_REFUSED]),
        volume=snapshot.status.volume,
        artifacts=snapshot.status.artifacts,
    )
    for result in results:
        status = replace(status, **result.status)
    return Plan(
        status=to_status(status),
        actions=tuple(action for result in every for action in result.actions),
        events=transition_events(snapshot.status, status) if status != snapshot.status else (),
        watched=watched_pools(snapshot, status.pools),
        requeue_at=earliest((*(result.requeue_at for result in every), recheck_at(waiting(snapshot.children), now))),
    )


def _pools(snapshot: Snapshot, results: Sequence[StepResult], now: datetime) -> tuple[Pool, ...]:
    """The spec's pools, with every known commit filled in; none if the spec is invalid."""
    spec = snapshot.spec
    if spec is None:
        return ()
    blocked = frozenset[str]().union(*(result.blocked_pools for result in results))
    if any(result.blocks for result in results):
        blocked = frozenset(pool.name for pool in spec.pools)
    return pools(snapshot, pin(spec, known_commits(snapshot, now)), now, blocked, refused=results[0].blocks)


def _without_pool(snapshot: Snapshot, results: Sequence[StepResult]) -> list[PoolStatus]:
    """Pools that only the status has; kept while the spec is refused, because a refused spec drops no pool."""
    known = {pool.name for pool in snapshot.spec.pools} if snapshot.spec else ()
    return [entry for entry in snapshot.status.pools if results[0].blocks and entry.name not in known]


def _of_pool(pool: Pool, now: datetime) -> tuple[list[StepResult], PoolStatus]:
    if pool.is_unknown:
        step = as_it_stands(pool.remembered, pool.servers)
        return [step], replace(pool.remembered, **step.status)
    rollout = lend(take_down(pool, now), now)
    steps = [*walk(POOL_STEPS, rollout, now), *walk(ALWAYS_LAST, rollout, now)]
    return steps, _entry(rollout.pool, steps)


def _status(
    snapshot: Snapshot, results: Sequence[StepResult], entries: Sequence[PoolStatus], now: datetime
) -> SpeculativeDeploymentStatus:
    causes = without_reconciling(cause for result in results for cause in result.causes)
    if not any(cause.reason.value.condition == "Ready" for cause in causes):
        causes.append(Cause(Reason.NotStarted))
    conditions = conditions_of(causes, snapshot.status.conditions, snapshot.generation, now)
    effective = {} if results[0].blocks or snapshot.spec is None else of_pools(snapshot.spec)
    entries = [
        replace(
            entry,
            conditions=conditions_of(causes, entry.conditions, snapshot.generation, now, entry.name),
            **effective.get(entry.name, OF_NO_POOL),
        )
        for entry in entries
    ]
    notes = [note for result in results for note in result.notes]
    return SpeculativeDeploymentStatus(
        observed_generation=snapshot.generation,
        # a pool has no progress before its models are downloaded
        summary=" ".join(_in_a_word(entry) for entry in entries if entry.progress),
        notes=tuple(notes[:MOST_NOTES]),
        state=state(conditions),
        conditions=conditions,
        pools=tuple(entries),
    )


def _entry(pool: Pool, results: Sequence[StepResult]) -> PoolStatus:
    """The pool's entry: fields that no step returns stay, except `readyReplicas`, which each pass counts again."""
    entry = replace(pool.remembered, holds=holds(pool), ready_replicas=None)
    for result in results:
        entry = replace(entry, **result.status)
    return entry if pool.has_verdict else replace(entry, verdict=None)  # that verdict answered another question


def _in_a_word(entry: PoolStatus) -> str:
    """`latency=wide 1.36x (change: Rejected)`."""
    arm = entry.serving.arm if entry.serving else "-"
    speedup = entry.serving.evidence.speedup if entry.serving else None
    shown = f" {speedup:.2f}x" if speedup and arm not in (BASELINE, "-") else ""
    change = next((f" (change: {one.reason})" for one in entry.conditions if one.type == "ChangePending"), "")
    return f"{entry.name}={arm}{shown}{change}"


__all__ = ["ALWAYS", "POOL_STEPS", "STEPS", "Pool", "Rollout", "Snapshot", "plan"]
