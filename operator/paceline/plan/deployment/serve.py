"""Make the servers what choose() says."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.api.status import Serving, Target
from paceline.core import BASELINE
from paceline.core.names import child_name
from paceline.plan.deployment.choose import Choice, as_chosen, choose, has_served, intent
from paceline.plan.deployment.down import deadline, failed, standing
from paceline.plan.deployment.drift import drift
from paceline.plan.deployment.guard import guard
from paceline.plan.deployment.hold import baseline_held, hold, way_out
from paceline.plan.deployment.missing import restoring
from paceline.plan.deployment.patience import patient
from paceline.plan.deployment.size import leaves_zero, replicas, waits_for_a_verdict
from paceline.plan.deployment.snapshot import Pool, pod_template, serving
from paceline.plan.deployment.strangers import foreign
from paceline.plan.deployment.stuck import IN_THE_END
from paceline.plan.deployment.tries import tries
from paceline.plan.step import Action, Apply, Delete, Manifest, StepResult, earliest, timestamp
from paceline.render import controller_revision, rendering, servers, service


def serve(pool: Pool, now: datetime) -> StepResult:
    """Hold until the servers are what was chosen: a run takes the GPUs that are left when everybody is served."""
    choice = choose(pool)
    if taken := foreign(pool):
        ready = Cause(Reason.Serving if as_chosen(pool, choice) else Reason.ServersStarting, pool.name, choice.arm)
        # Nothing can be rolled out meanwhile, so no time runs.
        before = pool.remembered.target
        paused = {"target": replace(before, stands_since="")} if before else {}
        return StepResult(causes=(Cause(Reason.NameConflict, pool.name, taken), ready), status=paused, blocks=True)
    waits = waits_for_a_verdict(pool, choice.arm)
    wanted = replicas(pool.spec.replicas, waits, pool.remembered, pool.servers)
    settled = as_chosen(pool, choice) and not leaves_zero(wanted, pool.servers)
    target = _target(pool, choice, now)
    record: dict[str, Any] = {
        "target": target,
        "ready_replicas": pool.servers.ready if pool.servers else 0,
        "endpoint": f"http://{child_name(pool.snapshot.name, pool.name)}.{pool.snapshot.namespace}.svc",
    }
    if settled:
        record["serving"] = None if waits else _serving(pool, target, now)
    spec = pool.snapshot.spec
    assert spec is not None
    final = pool.servers.trouble.final if pool.servers and pool.servers.trouble else None
    # Once they have passed only an event changes anything; a wake in the past would come again and again.
    looks = [at for at in (deadline(pool, target.stands_since), final) if at and at > now]
    again, next_try = tries(pool.servers, pool.remembered, now)
    causes = (
        (Cause(Reason.NothingServes, pool.name),) if settled and waits else tuple(_causes(pool, choice, settled, now))
    )
    return StepResult(
        causes=(*causes, *_held(pool)),
        actions=_actions(pool, choice, wanted, again),
        status=record,
        blocks=not settled,
        requeue_at=earliest((next_try, *(() if settled else looks))),
    )


def _held(pool: Pool) -> tuple[Cause, ...]:
    """For as long as it is so: what the spec asks for is not what is served."""
    held = hold(pool)
    if held is None or not baseline_held(pool):
        return ()
    return (Cause(Reason.NotReady, pool.name, f"revision {held.revision}: {held.message}; {way_out(pool)}"),)


def _actions(pool: Pool, choice: Choice, wanted: int | None, again: Mapping[str, str]) -> tuple[Action, ...]:
    """`again`: the annotation of what was refused and is tried again."""
    owner, spec = pool.snapshot.owner, pool.snapshot.spec
    assert spec is not None
    kept = pool.kept.get(choice.revision)
    pinned: Manifest = (
        kept["data"]
        if kept
        else rendering(
            owner,
            pool.name,
            pool.server,
            pool.arms[choice.arm],
            choice.revision,
            pool.snapshot.settings,
            spec.promotion.progress_deadline,
        )
    )
    why = f"serve {choice.arm}: {choice.why}"
    keep = () if kept else (Apply(controller_revision(owner, pool.name, choice.revision, pinned), why),)
    annotations = {"paceline.dev/why": choice.why, **again}
    pinned = patient(pinned, choice.revision, pool.servers, has_served(pool, choice.revision), spec)
    made = servers(owner, pool.name, pinned, wanted, spec.promotion.progress_deadline, annotations)
    return (
        *keep,
        Apply(made, why),
        # There are no accelerators for both.
        *(
            Delete(other, f"a {made['kind']} serves instead")
            for other in serving(pool.snapshot, pool.name)
            if other["kind"] != made["kind"]
        ),
        Apply(service(owner, pool.name, pinned.get("nodes", 1)), "the pool's address"),
        *guard(pool),
        *_forget(pool, choice),
    )


def _forget(pool: Pool, choice: Choice) -> list[Delete]:
    """Old renderings beyond the history limit; never one that may be chosen now."""
    assert pool.snapshot.spec is not None
    last = pool.remembered.serving.revision if pool.remembered.serving else None
    needed = {choice.revision, last, *(pool.revision(arm) for arm in pool.spec.arms)}
    if pool.servers:
        needed.add(pool.servers.revision)
    spare = sorted(
        (found for revision, found in pool.kept.items() if revision not in needed),
        key=lambda found: (found["metadata"].get("creationTimestamp", ""), found["metadata"]["name"]),
    )
    surplus = len(spare) - pool.snapshot.spec.promotion.revision_history_limit
    return [Delete(found, "beyond revisionHistoryLimit") for found in spare[: max(0, surplus)]]


def _causes(pool: Pool, choice: Choice, settled: bool, now: datetime) -> list[Cause]:
    if settled:
        if pool.servers and not pool.servers.ready:
            return [Cause(Reason.ScaledToZero, pool.name, "replicas is 0")]
        note = choice.arm if choice.arm == BASELINE else f"{choice.arm}, {choice.why}"
        added, missing = _added(pool, choice), pool.servers.short if pool.servers else ""
        said = "; ".join(filter(None, (note, added, missing)))
        return [Cause(Reason.Drifted if added else Reason.Serving, pool.name, said)]
    first = not pool.remembered.serving
    found = pool.servers.trouble if pool.servers and pool.servers.revision == choice.revision else None
    going_on = Cause(Reason.Starting if first else Reason.RollingOut, pool.name, f"{choice.arm}: {choice.why}")
    causes = [restoring(pool, choice.arm) if has_served(pool, choice.revision) else going_on]
    if found and found.fatal:
        return [Cause(Reason.ServerFailed, pool.name, found.what), Cause(found.says, pool.name, found.what)]
    late = failed(pool, choice, now)
    if late and not (found and found.says in IN_THE_END):
        # Only what nothing takes the place of is still there.
        causes = [*causes, Cause(Reason.ServerFailed, pool.name, late.message)]
    if found is None:
        return [*causes, Cause(Reason.ServersStarting, pool.name, choice.arm)]
    return [*causes, Cause(found.says, pool.name, found.what)]


def _added(pool: Pool, choice: Choice) -> str:
    """What is not ours of the servers; "" if nothing."""
    kept = pool.kept.get(choice.revision)
    if pool.servers is None or kept is None:
        return ""
    found = pool.servers.found
    added = drift(pod_template(found), kept["data"]["template"])
    way = f"remove it from {found['kind']} {found['metadata']['name']}, or set it in spec.engine"
    return f"{', '.join(added)}: {way}" if added else ""


def _target(pool: Pool, choice: Choice, now: datetime) -> Target:
    """The intent, written before the Deployment is touched."""
    before, stands = pool.remembered.target, standing(pool, choice, now)
    since = before.since if before and before.revision == choice.revision else timestamp(now)
    return replace(intent(choice, since), stands_since=stands.stands_since, ready=stands.ready)


def _serving(pool: Pool, target: Target, now: datetime) -> Serving:
    before = pool.remembered.serving
    return Serving(
        revision=target.revision,
        arm=target.arm,
        since=before.since if before and has_served(pool, target.revision) else timestamp(now),
        evidence=target.evidence,
        speedup=target.speedup,
    )
