"""A SpeculativeDeployment: what to do now. Read this first.

    readable    the spec can be carried out
    let_go      pools that are no longer asked for end
    refused     what the API server did not let us write is told
    keep_claim  there is a place for models
    fetch       the models are there, pinned to commits
    preflight   the draft fits its target
    installed   the cluster knows the kinds that are needed
    unguarded   of those that are only wanted, it is said which it lacks
  then for each pool, once what people ask for by annotation (requests), and what does not run (down), is in its memory:
    stop        runs of old questions end, and all rest while suspended
    stuck       what the cluster will not do for the servers ends in Stalled
    serve       the servers are what choose() says: at first the baseline, later what has been shown to be faster
    measure     a BenchmarkRun for what is undecided
    retain      old runs that nothing refers to go

Every step speaks; none acts after one that holds. While one of the first holds, meanwhile() keeps what serves, and
outdated() ends runs whose answer can never be used. There is no step that promotes: a run's verdict changes what
choose() answers, and serve() does the rest.
"""

from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.reasons import to_status as conditions_of
from paceline.api.record import to_status
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import BASELINE
from paceline.plan.deployment.cache import commits, fetch
from paceline.plan.deployment.check import let_go, preflight, readable
from paceline.plan.deployment.claim import keep_claim
from paceline.plan.deployment.down import undone
from paceline.plan.deployment.events import events, state, without_pretence
from paceline.plan.deployment.guard import unguarded
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.installed import installed
from paceline.plan.deployment.keep_serving import meanwhile
from paceline.plan.deployment.lost import orphans
from paceline.plan.deployment.measure import measure, stop
from paceline.plan.deployment.outdated import outdated
from paceline.plan.deployment.requests import carried_out, unknown
from paceline.plan.deployment.retain import retain
from paceline.plan.deployment.serve import serve
from paceline.plan.deployment.snapshot import Pool, Snapshot, pin, pools
from paceline.plan.deployment.stuck import refused, stuck
from paceline.plan.silence import look_again, waiting
from paceline.plan.step import Plan, Step, StepResult, earliest, walk

STEPS: tuple[Step[Snapshot], ...] = (readable, let_go, refused, keep_claim, fetch, preflight, installed, unguarded)
POOL_STEPS: tuple[Step[Pool], ...] = (stop, stuck, serve, measure, retain)

MOST_NOTES = 64
MOST_REFUSED = 64
"""Requests that status can hold."""

PINS = ("models_hash", "models", "datasets")
"""Stay while no prefetch says others: another one may find other commits, and all would be measured again."""


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Pure: the same snapshot at the same time gives the same status and actions."""
    if adopted := orphans(snapshot):
        return Plan(status=None, actions=adopted)  # the garbage collector is on its way: everything else comes after
    said = walk(STEPS, snapshot, now)
    entries: list[PoolStatus] = []
    pool_said: list[StepResult] = []
    held = any(step.blocks for step in said)
    not_carried_out = list(unknown(snapshot))
    known = commits(snapshot)
    if snapshot.spec is not None and known is not None and not held:
        for looked_at in pools(snapshot, pin(snapshot.spec, known), now):
            asked, not_done = carried_out(looked_at, now)
            pool = undone(asked, now)
            not_carried_out += not_done
            steps = walk(POOL_STEPS, pool, now)
            pool_said += steps
            entries.append(_entry(pool, steps))
    else:
        as_it_is = meanwhile(snapshot, now)
        pool_said += [as_it_is] if said[0].blocks else [as_it_is, outdated(snapshot, now)]
        entries = list(as_it_is.status["pools"])
    everything = [*said, *pool_said]
    notes = [note for say in everything for note in say.notes]
    causes = without_pretence(cause for say in everything for cause in say.causes)
    if not any(cause.reason.value.condition == "Ready" for cause in causes):
        causes.append(Cause(Reason.NotStarted))
    conditions = conditions_of(causes, snapshot.status.conditions, snapshot.generation, now)
    pins = {name: getattr(snapshot.status, name) for name in PINS}
    status = SpeculativeDeploymentStatus(
        observed_generation=snapshot.generation,
        summary=" ".join(_in_a_word(entry) for entry in entries),
        notes=tuple(notes[:MOST_NOTES]),
        state=state(conditions),
        conditions=conditions,
        pools=tuple(entries),
        refused=tuple(not_carried_out[:MOST_REFUSED]),
        **(pins | {name: value for say in said for name, value in say.status.items()}),
    )
    return Plan(
        status=to_status(status),
        actions=tuple(action for say in everything for action in say.actions),
        events=events(snapshot.status, status),
        requeue_at=earliest((*(say.requeue_at for say in everything), look_again(waiting(snapshot.children), now))),
    )


def _entry(pool: Pool, steps: list[StepResult]) -> PoolStatus:
    """What no step speaks of is as it was, but for the servers: how many are ready is asked anew in each pass."""
    entry = replace(pool.remembered, hold=hold(pool), ready_replicas=None)
    for say in steps:
        entry = replace(entry, **say.status)
    return entry if pool.decided else replace(entry, verdict=None)  # it answered another question


def _in_a_word(entry: PoolStatus) -> str:
    """`latency=wide 1.36x`."""
    arm = entry.serving.arm if entry.serving else "-"
    of_verdict = entry.verdict.speedup if entry.verdict and entry.verdict.winner == arm else None
    speedup = (entry.serving.speedup if entry.serving else None) or of_verdict  # older releases: with the verdict alone
    shown = f" {speedup:.2f}x" if speedup and arm not in (BASELINE, "-") else ""
    return f"{entry.name}={arm}{shown}"


__all__ = ["POOL_STEPS", "STEPS", "Pool", "Snapshot", "plan"]
