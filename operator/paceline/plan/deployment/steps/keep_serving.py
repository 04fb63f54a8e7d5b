"""While the spec, its models or its heads cannot be used, the servers stay as they are, and are reported as they are.

This stands in for the steps of the pools: they need every model at a commit.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.status import PoolStatus, Target
from paceline.core import DeploymentSpec, PoolSpec
from paceline.plan.deployment.autoscaler import left_to_it
from paceline.plan.deployment.degraded import causes as degraded_causes
from paceline.plan.deployment.loan import continued, ends_at, lent_run, may_lend
from paceline.plan.deployment.pull import image_of
from paceline.plan.deployment.runs import Run, close, suspend
from paceline.plan.deployment.server_manifest import Goal, as_they_are, server_manifest
from paceline.plan.deployment.servers import Servers, not_ready, servers_of
from paceline.plan.deployment.size import waits_for_verdict
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.deployment.surge import attempt, in_place, withdrawn_at
from paceline.plan.deployment.tries import tries
from paceline.plan.deployment.window import annotations, changes_at
from paceline.plan.objects import Object, owned_by
from paceline.plan.step import Action, Apply, StepResult, earliest


def keep_serving(snapshot: Snapshot, now: datetime) -> StepResult:
    """`status` has the pools' entries. A spec that cannot be read gives neither the number of servers nor whether runs
    are suspended, so nothing is done then."""
    spec = snapshot.spec
    entries = tuple(_with_loan(snapshot, spec, entry, now) for entry in _entries(snapshot))
    names = [pool.name for pool in spec.pools] if spec else [entry.name for entry in entries]
    serving = {name: servers for name in names if (servers := servers_of(snapshot, name, now))}
    if spec:
        entries = tuple(_attempted(spec, entry, serving.get(entry.name), now) for entry in entries)
    return StepResult(
        causes=(
            *(_cause(name, serving.get(name)) for name in names if serving),
            *(() if serving else (Cause(Reason.NotStarted),)),
            *(cause for entry in entries for cause in degraded_causes(entry.name, entry, entry.hold)),
        ),
        actions=_actions(snapshot, spec, {entry.name: entry for entry in entries}, serving, now) if spec else (),
        status={"pools": tuple(_entry(entry, serving.get(entry.name)) for entry in entries)},
        requeue_at=earliest(
            (
                *(at for entry in entries if spec for at in _due(snapshot, spec, entry, serving.get(entry.name), now)),
                _window_changes_at(snapshot, spec, now),
            )
        ),
    )


def _cause(pool: str, servers: Servers | None) -> Cause:
    if servers is None:
        return not_ready(pool, None, "no servers yet")
    if servers.settled:
        note = "; ".join(filter(None, ("as before", servers.short)))
        return Cause(Reason.Serving, pool, note) if servers.ready else Cause(Reason.NothingServes, pool)
    return not_ready(pool, servers.trouble, f"{servers.ready} ready")


def _actions(
    snapshot: Snapshot,
    spec: DeploymentSpec,
    entries: Mapping[str, PoolStatus],
    serving: Mapping[str, Servers],
    now: datetime,
) -> tuple[Action, ...]:
    """Put back each rendering that was changed or deleted; suspend runs if the spec says so, and start no round outside
    its window."""
    actions: list[Action] = []
    for pool in spec.pools:
        entry = entries.get(pool.name, PoolStatus(name=pool.name))
        actions += _serve(snapshot, spec, pool, entry, serving.get(pool.name), now)
        runs = _runs(snapshot, pool)
        if spec.suspend:
            actions += suspend(snapshot.owner, runs)
        else:
            actions += close(snapshot.owner, runs, annotations(spec, now))
    return tuple(actions)


def _runs(snapshot: Snapshot, pool: PoolSpec) -> list[Run]:
    runs = (Run(manifest=manifest) for manifest in snapshot.owned("BenchmarkRun", pool.name))
    return [run for run in runs if run.under_way]


def _window_changes_at(snapshot: Snapshot, spec: DeploymentSpec | None, now: datetime) -> datetime | None:
    """When it closes for runs under way; where it opens, they wait on."""
    if spec is None or not any(_runs(snapshot, pool) for pool in spec.pools):
        return None
    return changes_at(spec, now)


def _serve(
    snapshot: Snapshot,
    spec: DeploymentSpec,
    pool: PoolSpec,
    entry: PoolStatus,
    servers: Servers | None,
    now: datetime,
) -> tuple[Action, ...]:
    held = entry.hold.revision if entry.hold else None
    # What took the place of another that did not run is served, also if a person had gone back from it before.
    came_back = entry.target if entry.target and entry.target.reason == "TakenDown" else None
    served = came_back or next((one for one in (entry.target, entry.serving) if one and one.revision != held), None)
    revisions = snapshot.revisions(pool.name)
    kept = revisions.get(served.revision) if served else None
    if served is None or kept is None:
        return ()
    goal = Goal(
        revision=served.revision,
        rendering=kept["data"],
        why=served.message if isinstance(served, Target) else "",
        has_served=entry.serving is not None and entry.serving.revision == served.revision,
        waits=waits_for_verdict(spec, served.arm, entry.hold, decided=entry.verdict is not None),
        in_place=in_place(spec.promotion, entry.target),
    )
    before = revisions.get(servers.revision) if servers and servers.revision not in (served.revision, held) else None
    # The image of a target that was not rolled out may not be on the nodes, and is pulled by the steps of a valid spec.
    if servers and before and _image(before) != _image(kept):
        goal = as_they_are(servers, before["data"])
    wanted = server_manifest(snapshot.owner, spec, left_to_it(snapshot, pool), entry, servers, goal, now)
    existing = snapshot.child(wanted["kind"], wanted["metadata"]["name"])
    if (existing and not owned_by(existing, snapshot.owner.uid)) or wanted["kind"] in snapshot.absent:
        return ()
    return (Apply(wanted, f"serve {served.arm} as before"),)


def _image(kept: Object) -> str:
    return image_of(kept["data"]["template"])


def _with_loan(snapshot: Snapshot, spec: DeploymentSpec | None, entry: PoolStatus, now: datetime) -> PoolStatus:
    """What the pool lends goes on or ends; nothing is lent anew."""
    if spec is None or not entry.borrowed:
        return entry
    lends = any(pool.name == entry.name and may_lend(spec, pool) for pool in spec.pools)
    return continued(snapshot, spec, entry, lent_run(snapshot, entry) if lends else None, now)


def _attempted(spec: DeploymentSpec, entry: PoolStatus, servers: Servers | None, now: datetime) -> PoolStatus:
    """The entry with what became of one server more: a roll-out that waits for room would wait as long as the spec."""
    target = entry.target
    if target is None:
        return entry
    tried = attempt(spec.promotion, servers, target, target.revision, now)
    return replace(entry, target=replace(target, surge=tried.surge, surge_waits_since=tried.surge_waits_since))


def _due(
    snapshot: Snapshot, spec: DeploymentSpec, entry: PoolStatus, servers: Servers | None, now: datetime
) -> tuple[datetime | None, ...]:
    run = lent_run(snapshot, entry) if entry.borrowed else None
    loan_ends = ends_at(snapshot, spec, entry, run, now) if run else None
    tried = entry.target is not None and entry.target.surge == "Tried"
    ended = servers.ending_until if servers and tried and not servers.settled else None
    return tries(servers, entry, now)[1], loan_ends, withdrawn_at(entry.target), ended


def _entries(snapshot: Snapshot) -> list[PoolStatus]:
    """Those of status, and of pools that are new."""
    known, asked = snapshot.status.pools, snapshot.spec.pools if snapshot.spec else ()
    names = {entry.name for entry in known}
    return [*known, *(snapshot.remembered(pool.name) for pool in asked if pool.name not in names)]


def _entry(entry: PoolStatus, servers: Servers | None) -> PoolStatus:
    return replace(entry, ready_replicas=servers.ready if servers else 0)
