"""While the spec, its models or its heads cannot be used: what serves goes on as it is, and is told as it is."""

from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.status import PoolStatus, Target
from paceline.core import BASELINE, DeploymentSpec, PoolSpec, UntilDecided
from paceline.core.names import SUPERSEDED, SUSPENDED
from paceline.plan.deployment import snapshot as seen
from paceline.plan.deployment.measure import annotated
from paceline.plan.deployment.patience import patient
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.size import replicas
from paceline.plan.deployment.snapshot import Servers, Snapshot, children, entry_of, revisions
from paceline.plan.deployment.tries import tries
from paceline.plan.objects import owned_by
from paceline.plan.step import Action, Apply, StepResult, earliest
from paceline.render import servers


def meanwhile(snapshot: Snapshot, now: datetime) -> StepResult:
    """`record` has the pools' entries."""
    spec, entries = snapshot.spec, snapshot.status.pools
    names = [pool.name for pool in spec.pools] if spec else [entry.name for entry in entries]
    there = {name: found for name in names if (found := seen.servers(snapshot, name, now))}
    return StepResult(
        causes=tuple(_mark(name, there.get(name)) for name in names) if there else (Cause(Reason.NotStarted),),
        # A spec that cannot be read says neither how many servers there are to be nor whether runs are to rest.
        actions=tuple(
            action
            for pool in (spec.pools if spec else ())
            for action in _keep(snapshot, pool, there.get(pool.name), now)
        ),
        status={"pools": tuple(_entry(entry, there.get(entry.name)) for entry in entries)},
        requeue_at=earliest(tries(there.get(entry.name), entry, now)[1] for entry in entries) if spec else None,
    )


def _mark(name: str, found: Servers | None) -> Cause:
    if found is None:
        return Cause(Reason.ServersStarting, name, "no servers yet")
    if found.settled:
        note = "; ".join(filter(None, ("as before", found.short)))
        return Cause(Reason.Serving, name, note) if found.ready else Cause(Reason.NothingServes, name)
    if found.trouble is None:
        return Cause(Reason.ServersStarting, name, f"{found.ready} ready")
    return Cause(found.trouble.says, name, found.trouble.what)


def _keep(snapshot: Snapshot, pool: PoolSpec, found: Servers | None, now: datetime) -> list[Action]:
    """Of a pool: the rendering that was served, put back where it was changed or deleted; and a suspended run rests."""
    spec, entry = snapshot.spec, entry_of(snapshot, pool.name)
    assert spec is not None
    runs = [Run(found=found) for found in children(snapshot, "BenchmarkRun", pool.name)] if spec.suspend else []
    return [
        *_serve(snapshot, spec, pool, entry, found, now),
        *(
            Apply(annotated(snapshot.owner, run, SUSPENDED), "spec.suspend is set")
            for run in runs
            if not run.finished and SUPERSEDED not in (run.found["metadata"].get("annotations") or {})
        ),
    ]


def _serve(
    snapshot: Snapshot,
    spec: DeploymentSpec,
    pool: PoolSpec,
    entry: PoolStatus,
    found: Servers | None,
    now: datetime,
) -> list[Action]:
    held = entry.hold.revision if entry.hold else None
    goal = next((one for one in (entry.target, entry.serving) if one and one.revision != held), None)
    kept = revisions(snapshot, pool.name).get(goal.revision) if goal else None
    if goal is None or kept is None:
        return []
    nothing = spec.promotion.until_decided is UntilDecided.NOTHING
    waits = nothing and goal.arm == BASELINE and not entry.verdict
    served = entry.serving is not None and entry.serving.revision == goal.revision
    why = {"paceline.dev/why": goal.why} if isinstance(goal, Target) and goal.why else {}
    wanted = servers(
        snapshot.owner,
        pool.name,
        patient(kept["data"], goal.revision, found, served, spec),
        replicas(pool.replicas, waits, entry, found),
        spec.promotion.progress_deadline,
        {**why, **tries(found, entry, now)[0]},
    )
    there = snapshot.child(wanted["kind"], wanted["metadata"]["name"])
    if (there and not owned_by(there, snapshot.owner.uid)) or wanted["kind"] in snapshot.absent:
        return []
    return [Apply(wanted, f"serve {goal.arm} as before")]


def _entry(entry: PoolStatus, found: Servers | None) -> PoolStatus:
    return replace(entry, ready_replicas=found.ready if found else 0)
