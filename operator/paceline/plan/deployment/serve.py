"""Makes the pool's servers match the choice."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.api.status import MESSAGE_LENGTH, MOST_CHANGES, Change, PoolStatus, Serving, ServingEvidence, Target
from paceline.core import BASELINE
from paceline.core.manifest import Object
from paceline.core.names import child_name
from paceline.plan.deployment.choose import Rollout, intent, past
from paceline.plan.deployment.degraded import degraded_causes
from paceline.plan.deployment.doubt import kept_speed
from paceline.plan.deployment.holds import baseline_failure, way_out
from paceline.plan.deployment.loan import lent
from paceline.plan.deployment.pool import Pool, name_conflict
from paceline.plan.deployment.pull import is_pulling
from paceline.plan.deployment.servers import Servers, not_ready, pod_template, replicas_ignored, server_objects
from paceline.plan.deployment.stalled import STALLED
from paceline.plan.deployment.take_down import deadline, failed, target_progress
from paceline.plan.deployment.workload import (
    Goal,
    drift,
    in_place,
    leaves_zero,
    rendered,
    replicas,
    server_manifest,
    surging,
    waits_for_verdict,
    withdrawn_at,
)
from paceline.plan.step import Action, Apply, Delete, StepResult, earliest, parse_time, timestamp
from paceline.plan.trouble import Trouble
from paceline.render import claim_templates, controller_revision
from paceline.render.devices import RESOURCE_CLAIM_TEMPLATE as CLAIM_TEMPLATE

RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""Annotation of a pod template that `kubectl rollout restart` sets."""
ROLLED_OUT = "NewReplicaSetAvailable"
"""Reason of Progressing once every pod is of the present template and ready."""


def serve(rollout: Rollout, now: datetime) -> StepResult:
    """Block until the servers match the choice: runs get only accelerators that no server needs."""
    pool, choice = rollout.pool, rollout.choice
    if conflict := name_conflict(pool):
        return _conflict(rollout, conflict)
    waits = waits_for_verdict(pool, choice)
    wanted = replicas(pool, waits)
    settled = rollout.settled and not leaves_zero(wanted, pool.servers)
    target = _target(rollout, now)
    status: dict[str, Any] = {
        "target": target,
        "ready_replicas": pool.servers.ready if pool.servers else 0,
        "endpoint": f"http://{child_name(pool.snapshot.name, pool.name)}.{pool.snapshot.namespace}.svc",
    }
    # A pool that lent its only server cannot have a server of another revision; the choice is served once the server is
    # back.
    lent_all = not wanted and bool(pool.remembered.borrowed)
    if settled and (rollout.has_served or not lent_all):
        status |= _serves_now(rollout, None if waits else _serving(rollout, target, now), target, now)
    final = pool.servers.trouble.final if pool.servers and pool.servers.trouble else None
    # Later than these times only events cause changes; a requeue in the past would repeat endlessly.
    room = withdrawn_at(target) or (pool.servers.ending_until if pool.servers and target.surge == "Tried" else None)
    due = [at for at in (deadline(pool, target.stands_since), final, room) if at and at > now]
    causes = _nothing(rollout, waits) if settled and not wanted else ()
    causes = causes or _causes(rollout, target, wanted, settled, now)
    return StepResult(
        causes=(*causes, *_held(rollout)),
        actions=(*_servers(rollout, target, waits), *_prune_revisions(rollout)),
        status=status,
        blocks=not settled,
        requeue_at=None if settled else earliest(due),
    )


def as_it_stands(entry: PoolStatus, servers: Servers | None) -> StepResult:
    """Report a pool whose target is unknown, and change nothing."""
    status = {"ready_replicas": servers.ready if servers else 0}
    if servers is None:
        ready = Cause(Reason.NotStarted, entry.name)
    elif servers.settled and not servers.ready:
        ready = Cause(Reason.NothingServes, entry.name)
    elif servers.settled:
        ready = Cause(Reason.Serving, entry.name, "; ".join(filter(None, ("as before", servers.short))))
    else:
        ready = not_ready(entry.name, servers.trouble, f"{servers.ready} ready")
    return StepResult(causes=(ready, *degraded_causes(entry.name, entry.holds, entry.degraded)), status=status)


def _serves_now(rollout: Rollout, serving: Serving | None, target: Target, now: datetime) -> dict[str, Any]:
    """The served revision, and a line of history if it is new."""
    pool = rollout.pool
    new = not rollout.has_served if serving else pool.remembered.serving is not None
    changed = {"history": _with_change(pool, serving, target, now), **_kept_speed(pool, target)} if new else {}
    return {"serving": serving} | changed


def _kept_speed(pool: Pool, target: Target) -> dict[str, Any]:
    """If a run has accepted what begins to serve."""
    if target.at_once or target.request:
        return {"kept_speed": None}  # not compared, or as a person wants it
    run = next((run for run in pool.runs if run.name == target.evidence.run), None)
    kept = kept_speed(pool, run) if run else None
    return {} if kept is None else {"kept_speed": kept}


def _conflict(rollout: Rollout, conflict: str) -> StepResult:
    """Nothing can be rolled out under this name, so the target's deadline is paused."""
    pool = rollout.pool
    ready = Cause(Reason.Serving if rollout.settled else Reason.ServersStarting, pool.name, rollout.choice.arm)
    before = pool.remembered.target
    return StepResult(
        causes=(Cause(Reason.NameConflict, pool.name, conflict), ready),
        status={"target": replace(before, stands_since="")} if before else {},
        blocks=True,
    )


def _nothing(rollout: Rollout, waits: bool) -> tuple[Cause, ...]:
    """Why the pool serves nothing for now although it should."""
    pool = rollout.pool
    given = lent(pool.remembered, pool.spec)
    return (Cause(Reason.NothingServes, pool.name, given),) if waits or given else ()


def _held(rollout: Rollout) -> tuple[Cause, ...]:
    """The pool is not Ready while the spec's baseline is held, because the pool serves something else than the spec
    asks for."""
    pool, failed_ = rollout.pool, baseline_failure(rollout.pool)
    if failed_ is None:
        return ()
    return (Cause(Reason.NotReady, pool.name, f"revision {failed_.revision}: {failed_.message}; {way_out(pool)}"),)


def _servers(rollout: Rollout, target: Target, waits: bool) -> Iterator[Action]:
    """Apply servers of the chosen rendering and the objects they name; without a kept rendering, change nothing."""
    pool, choice, owner = rollout.pool, rollout.choice, rollout.pool.snapshot.owner
    rendering = rendered(pool, choice)
    if rendering is None:
        return
    given = lent(pool.remembered, pool.spec)
    why = f"serve {choice.arm}: {choice.message}" + (f"; {given}" if given else "")
    if choice.revision not in pool.kept:
        yield Apply(controller_revision(owner, pool.name, choice.revision, rendering), why)
    for template in claim_templates(owner, pool.name, rendering):
        yield Apply(template, "the devices that servers claim")
    goal = Goal(
        revision=choice.revision,
        rendering=rendering,
        why=choice.message,
        has_served=rollout.has_served,
        waits=waits,
        in_place=in_place(pool.deployment.promotion, target),
    )
    servers = server_manifest(pool, goal)
    yield Apply(servers, why)
    for other in server_objects(pool.snapshot, pool.name):
        if other["kind"] != servers["kind"]:  # the accelerators do not suffice for both
            yield Delete(other, f"a {servers['kind']} serves instead")
    yield from _prune_claim_templates(rollout, rendering)


def _prune_claim_templates(rollout: Rollout, rendering: Mapping[str, Any]) -> tuple[Delete, ...]:
    """Delete claim templates that no server names any more; not during a roll-out, when old servers may be created
    again."""
    unused = (
        one
        for one in rollout.pool.snapshot.owned(CLAIM_TEMPLATE, rollout.pool.name)
        if one["metadata"]["name"] not in rendering.get("devices", {})
    )
    return tuple(Delete(one, "no server claims its devices") for one in unused) if rollout.settled else ()


def _prune_revisions(rollout: Rollout) -> list[Delete]:
    """Delete renderings beyond the history limit, except those that may be chosen now. Those that served last are kept
    longest, for `rollback`."""
    pool = rollout.pool
    if pool.blocked:  # its future arms are unknown
        return []
    last = pool.remembered.serving.revision if pool.remembered.serving else None
    needed = {rollout.choice.revision, last, *(pool.revision(arm) for arm in pool.spec.arms)}
    if pool.servers:
        needed.add(pool.servers.revision)
    latest_first = list(dict.fromkeys(change.revision for change in past(pool)))
    ages = {revision: -age for age, revision in enumerate(latest_first)}
    spare = sorted(
        ((revision, kept) for revision, kept in pool.kept.items() if revision not in needed),
        key=lambda one: (
            one[0] in ages,
            ages.get(one[0], 0),
            one[1]["metadata"].get("creationTimestamp", ""),
            one[1]["metadata"]["name"],
        ),
    )
    surplus = len(spare) - pool.deployment.promotion.revision_history_limit
    return [Delete(kept, "beyond revisionHistoryLimit") for _, kept in spare[: max(0, surplus)]]


def _causes(rollout: Rollout, target: Target, wanted: int | None, settled: bool, now: datetime) -> tuple[Cause, ...]:
    pool, choice, servers = rollout.pool, rollout.choice, rollout.pool.servers
    if settled:
        return (_serves(rollout),)
    problem = servers.trouble if servers and servers.revision == choice.revision else None
    enough = servers is not None and servers.replicas and servers.ready >= max(servers.replicas, wanted or 0)
    if rollout.has_served:
        progress = _restoring(pool, choice.arm)
    else:
        reason = Reason.RollingOut if pool.remembered.serving else Reason.Starting
        progress = Cause(
            reason, pool.name, f"{choice.arm}: {choice.message}{_how(target, problem if enough else None)}"
        )
    if enough and not (problem and problem.reason is Reason.Paused):
        # Old and new servers together are as many as requested.
        ready = Cause(
            Reason.Serving, pool.name, f"until the servers of {choice.arm} are ready, the previous servers serve"
        )
    else:
        ready = not_ready(pool.name, problem or (servers.evicted if servers else None), choice.arm)
    if problem and problem.fatal:
        return Cause(Reason.ServerFailed, pool.name, problem.message), ready
    failure = failed(rollout, now)
    if failure and not (problem and problem.reason in STALLED):
        # Reported only if nothing can be served instead.
        return progress, Cause(Reason.ServerFailed, pool.name, failure.message), ready
    return progress, ready


def _how(target: Target, problem: Trouble | None) -> str:
    """How servers are replaced, if that may surprise; and the `problem` of the new ones while others serve."""
    why = f"; {problem.message.rstrip('.')}" if problem else ""
    if target.surge_waits_since:
        return f"{why}; one more server waits for room since {target.surge_waits_since}"
    in_place = IN_PLACE.get(target.surge or "", "")
    return f"{why}; replaced in place: {in_place}" if in_place else why


IN_PLACE = {
    "Skipped": "not all servers were ready",
    "Withdrawn": "there is no room for one more server",
}
"""Why servers are replaced in place although promotion.surge is Auto."""


def _serves(rollout: Rollout) -> Cause:
    pool, choice = rollout.pool, rollout.choice
    overruled = replicas_ignored(pool.snapshot, pool.name)
    if pool.servers and not pool.servers.ready:
        return Cause(Reason.ScaledToZero, pool.name, overruled or "replicas is 0")
    plain = choice.arm == BASELINE and choice.reason not in ("RolledBack", "Aborted")
    note = choice.arm if plain else f"{choice.arm}, {choice.message}"
    added, short = _added(rollout), pool.servers.short if pool.servers else ""
    message = "; ".join(filter(None, (note, added, overruled, short, lent(pool.remembered, pool.spec))))
    reason = Reason.Drifted if added else Reason.ReplicasIgnored if overruled else Reason.Serving
    return Cause(reason, pool.name, message)


def _added(rollout: Rollout) -> str:
    """What others added to the servers, and how to fix it; "" if nothing."""
    pool = rollout.pool
    kept = pool.kept.get(rollout.choice.revision)
    if pool.servers is None or kept is None:
        return ""
    manifest = pool.servers.manifest
    added = drift(pod_template(manifest), kept["data"]["template"])
    way_out = f"remove it from {manifest['kind']} {manifest['metadata']['name']}, or set it in spec.engine"
    return f"{', '.join(added)}: {way_out}" if added else ""


def _target(rollout: Rollout, now: datetime) -> Target:
    """The target, written before the servers change. A revision keeps the reason of its first choice."""
    pool, choice = rollout.pool, rollout.choice
    before, progress = pool.remembered.target, target_progress(rollout, now)
    new = intent(choice, timestamp(now), pool.asked)
    if before and before.revision == choice.revision:
        new = replace(new, start_time=before.start_time, reason=before.reason or choice.reason, request=before.request)
    # The way to replace servers is chosen when they are replaced, not while their image is pulled.
    servers = None if is_pulling(rollout, now) else pool.servers
    tried = surging(pool.deployment.promotion, servers, before, choice.revision, now)
    return replace(
        new,
        stands_since=progress.stands_since,
        ready=progress.ready,
        surge=tried.surge,
        surge_waits_since=tried.surge_waits_since,
    )


def _serving(rollout: Rollout, target: Target, now: datetime) -> Serving:
    before = rollout.pool.remembered.serving
    # A leader with a fast clock may have chosen the target. A start time before the target's would count as never
    # having served (`has_served`), and as new in every pass.
    begins = max(timestamp(now), target.start_time, key=parse_time)
    return Serving(
        revision=target.revision,
        arm=target.arm,
        start_time=before.start_time if before and rollout.has_served else begins,
        evidence=target.evidence,
    )


def _with_change(pool: Pool, serving: Serving | None, target: Target, now: datetime) -> tuple[Change, ...]:
    """The history with a change to `serving`, latest first. Called at the end of each roll-out, even one that returned
    to its start: an undone attempt is worth a line."""
    changed = Change(
        time=timestamp(now),
        revision=target.revision if serving else "",
        arm=target.arm if serving else "",
        reason=target.reason if serving else "Stopped",
        message=target.message[:MESSAGE_LENGTH],
        request=target.request,
        evidence=target.evidence if serving else ServingEvidence(),
    )
    return (changed, *pool.remembered.history)[:MOST_CHANGES]


def _restoring(pool: Pool, arm: str) -> Cause:
    """The Cause for servers of a revision that has served before."""
    servers = pool.servers
    if servers is None:
        return Cause(Reason.Restoring, pool.name, f"{arm}: its servers are gone")
    wanted = servers.manifest["spec"].get("replicas", 1)
    what = _restarted(servers) or f"{servers.ready} of {wanted} ready"
    return Cause(Reason.Restoring, pool.name, f"{arm}: {what}")


def _restarted(servers: Servers) -> str:
    """The time of a manual restart while it is in progress; else ""."""
    template: Any = pod_template(servers.manifest)["metadata"]
    when = (template.get("annotations") or {}).get(RESTARTED)
    rolls = when and _rolls(servers.manifest)
    return f"restarted by hand (kubectl rollout restart, {when})" if rolls else ""


def _rolls(manifest: Object) -> bool:
    """Whether the controller still reports a roll-out."""
    conditions = (manifest.get("status") or {}).get("conditions", ())
    return any(c["type"] == "Progressing" and c.get("reason") != ROLLED_OUT for c in conditions)
