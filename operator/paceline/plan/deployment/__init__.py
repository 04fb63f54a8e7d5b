"""What to do now about a SpeculativeDeployment. Read this first.

Steps of the whole deployment (each is a function of the module of its name in `steps`):

    check_spec             the spec can be carried out
    end_dropped_pools      pools that the spec no longer has are deleted
    report_refusals        writes that the API server has refused are reported
    ensure_claim           the models have a volume
    fetch_models           the models are on it, pinned to commits
    check_draft            the draft fits its target
    check_kinds            the cluster has the kinds that are needed
    report_missing_guards  guards that the operator may not make are reported
    report_missing_routes  routes that cannot be made are reported

Then for each pool, after its memory has taken in people's requests (`carry_out`), its failures (`take_down`; among them
speculation that stopped paying), which also chooses what it serves, and what it lends to its run (`lend`):

    stop_runs              runs of former questions end; all rest while suspended
    report_degraded        speculation that does not pay as measured ends in SpeculationDegraded
    report_stuck_servers   what the cluster refuses to the servers for too long ends in Stalled
    pull_images            the image of the next servers is on the nodes of those that serve
    serve                  the servers are what was chosen: first the baseline, later a candidate shown to be faster
    measure                a BenchmarkRun decides what is undecided
    prune_runs             old runs that nothing refers to are deleted

Every step reports; after a step that blocks, none acts. While a step of the deployment blocks, no step of a pool runs:
`keep_serving` keeps the servers as they are, and `end_outdated_runs` ends runs whose verdict can never be used. No step
promotes: a run's verdict changes what `choose` returns, and `serve` rolls that out.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.reasons import to_status as conditions_of
from paceline.api.record import to_status
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import BASELINE
from paceline.plan.deployment.dropped import dropped
from paceline.plan.deployment.effective import OF_NO_POOL, of_pools
from paceline.plan.deployment.events import events, state, without_reconciling
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.loan import lend
from paceline.plan.deployment.lost import orphans
from paceline.plan.deployment.pool import Pool, pools
from paceline.plan.deployment.requests import asked, carry_out, unknown_requests, waiting_requests
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.deployment.steps.check_draft import check_draft
from paceline.plan.deployment.steps.check_kinds import check_kinds
from paceline.plan.deployment.steps.check_spec import check_spec
from paceline.plan.deployment.steps.end_dropped_pools import end_dropped_pools
from paceline.plan.deployment.steps.end_outdated_runs import end_outdated_runs
from paceline.plan.deployment.steps.ensure_claim import ensure_claim
from paceline.plan.deployment.steps.fetch_models import fetch_models
from paceline.plan.deployment.steps.keep_serving import keep_serving
from paceline.plan.deployment.steps.measure import measure
from paceline.plan.deployment.steps.prune_runs import prune_runs
from paceline.plan.deployment.steps.pull_images import pull_images
from paceline.plan.deployment.steps.report_degraded import report_degraded
from paceline.plan.deployment.steps.report_missing_guards import report_missing_guards
from paceline.plan.deployment.steps.report_missing_routes import report_missing_routes
from paceline.plan.deployment.steps.report_refusals import report_refusals
from paceline.plan.deployment.steps.report_stuck_servers import report_stuck_servers
from paceline.plan.deployment.steps.serve import serve
from paceline.plan.deployment.steps.stop_runs import stop_runs
from paceline.plan.deployment.take_down import take_down
from paceline.plan.deployment.watched import watched
from paceline.plan.silence import recheck_at, waiting
from paceline.plan.step import Plan, Step, StepResult, earliest, walk

STEPS: tuple[Step[Snapshot], ...] = (
    check_spec,
    end_dropped_pools,
    report_refusals,
    ensure_claim,
    fetch_models,
    check_draft,
    check_kinds,
    report_missing_guards,
    report_missing_routes,
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

MOST_NOTES = 64
MOST_REFUSED = 64
"""Requests that status can hold."""

PINS = ("models_hash", "artifacts")
"""Fields that stay until a prefetch writes them: it may find other commits, and all would be measured again."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Pure: the same snapshot at the same time gives the same status and actions."""
    if adopted := orphans(snapshot):
        return Plan(status=None, actions=adopted)  # first, as the garbage collector is about to delete them
    results = walk(STEPS, snapshot, now)
    pinned = next((result.pinned for result in results if result.pinned), None)
    entries: list[PoolStatus] = []
    refused = list(unknown_requests(snapshot))
    if pinned is not None and not any(result.blocks for result in results):
        pool_results: list[StepResult] = []
        for pool in pools(snapshot, pinned, now):
            requested, not_done = carry_out(pool, now)
            rollout = lend(take_down(requested, now), now)
            steps = walk(POOL_STEPS, rollout, now)
            refused += not_done
            pool_results += steps
            entries.append(_entry(rollout.pool, steps))
    else:
        kept = keep_serving(snapshot, now)
        pool_results = [kept] if results[0].blocks else [kept, end_outdated_runs(snapshot, now)]
        entries += kept.status["pools"]
        refused += waiting_requests(snapshot, results)
    every = [*results, *pool_results]
    status = _status(snapshot, every, entries, now)
    status = replace(
        status,
        refused=tuple(refused[:MOST_REFUSED]),
        dropped=dropped(snapshot.status, entries, asked(snapshot)),
        **{name: getattr(snapshot.status, name) for name in PINS},
    )
    for result in results:
        status = replace(status, **result.status)
    return Plan(
        status=to_status(status),
        actions=tuple(action for result in every for action in result.actions),
        events=events(snapshot.status, status),
        watched=watched(snapshot.spec, status.pools),
        requeue_at=earliest((*(result.requeue_at for result in every), recheck_at(waiting(snapshot.children), now))),
    )


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
        summary=" ".join(_in_a_word(entry) for entry in entries if entry.progress),  # not before its models are there
        notes=tuple(notes[:MOST_NOTES]),
        state=state(conditions),
        conditions=conditions,
        pools=tuple(entries),
    )


def _entry(pool: Pool, results: Sequence[StepResult]) -> PoolStatus:
    """The pool's entry: fields that no step returns stay, except `readyReplicas`, which is counted in each pass."""
    held = hold(pool)
    entry = replace(pool.remembered, holds=(held,) if held else (), ready_replicas=None)
    for result in results:
        entry = replace(entry, **result.status)
    return entry if pool.decided else replace(entry, verdict=None)  # it was about another question


def _in_a_word(entry: PoolStatus) -> str:
    """`latency=wide 1.36x`."""
    arm = entry.serving.arm if entry.serving else "-"
    speedup = entry.serving.evidence.speedup if entry.serving else None
    shown = f" {speedup:.2f}x" if speedup and arm not in (BASELINE, "-") else ""
    return f"{entry.name}={arm}{shown}"


__all__ = ["POOL_STEPS", "STEPS", "Pool", "Rollout", "Snapshot", "plan"]
