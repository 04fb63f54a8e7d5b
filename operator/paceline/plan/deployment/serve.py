"""Make the servers what choose() says."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.api import Mark, Reason
from paceline.core import BASELINE, UntilDecided
from paceline.core.names import child_name
from paceline.plan.deployment.choose import Choice, as_chosen, choose, has_served, intent
from paceline.plan.deployment.guard import guard
from paceline.plan.deployment.look import Pool, serving
from paceline.plan.deployment.missing import restoring
from paceline.plan.terms import Action, Apply, Delete, Found, Manifest, Said, owned_by, parse_time, timestamp
from paceline.render import controller_revision, group_name, rendering, servers, service
from paceline.render.group import KIND as GROUPS


def serve(pool: Pool, now: datetime) -> Said:
    """Hold until the servers are what was chosen: a run takes the GPUs that are left when everybody is served."""
    choice = choose(pool)
    if taken := foreign(pool):
        ready = Mark(Reason.Serving if as_chosen(pool, choice) else Reason.ServersStarting, pool.name, choice.arm)
        return Said(marks=(Mark(Reason.NameConflict, pool.name, taken), ready), holds=True)
    overdue = _overdue(pool, choice, now)
    if overdue:
        return overdue
    waits = _waits(pool, choice)
    settled = as_chosen(pool, choice)
    target = _target(pool, choice, now)
    record: dict[str, Any] = {
        "target": target,
        "readyReplicas": pool.servers.ready if pool.servers else 0,
        "endpoint": f"http://{child_name(pool.snapshot.name, pool.name)}.{pool.snapshot.namespace}.svc",
    }
    if settled:
        record["serving"] = None if waits else _serving(pool, target, now)
    spec = pool.snapshot.spec
    assert spec is not None
    deadline = parse_time(target["since"]) + spec.promotion.progress_deadline
    return Said(
        marks=(Mark(Reason.NothingServes, pool.name),) if settled and waits else tuple(_marks(pool, choice, settled)),
        actions=_actions(pool, choice, 0 if waits else pool.spec.replicas),
        record=record,
        holds=not settled,
        # Once it has passed only an event changes anything; a wake in the past would come again and again.
        wake=deadline if not settled and deadline > now else None,
    )


def _actions(pool: Pool, choice: Choice, wanted: int | None) -> tuple[Action, ...]:
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
    annotations = {"paceline.dev/why": choice.why}
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
        Apply(service(owner, pool.name, pool.server), "the pool's address"),
        *guard(pool),
        *_forget(pool, choice),
    )


def _forget(pool: Pool, choice: Choice) -> list[Delete]:
    """Old renderings beyond the history limit; never one that may be chosen now."""
    assert pool.snapshot.spec is not None
    needed = {choice.revision, *(pool.revision(arm) for arm in pool.spec.arms)}
    if pool.servers:
        needed.add(pool.servers.revision)
    spare = sorted(
        (found for revision, found in pool.kept.items() if revision not in needed),
        key=lambda found: (found["metadata"].get("creationTimestamp", ""), found["metadata"]["name"]),
    )
    surplus = len(spare) - pool.snapshot.spec.promotion.revision_history_limit
    return [Delete(found, "beyond revisionHistoryLimit") for found in spare[: max(0, surplus)]]


def _waits(pool: Pool, choice: Choice) -> bool:
    """untilDecided: Nothing, and no verdict yet."""
    spec = pool.snapshot.spec
    assert spec is not None
    nothing = spec.promotion.until_decided is UntilDecided.NOTHING
    return nothing and choice.arm == BASELINE and pool.decided is None


def _marks(pool: Pool, choice: Choice, settled: bool) -> list[Mark]:
    if settled:
        if pool.servers and not pool.servers.ready:
            return [Mark(Reason.ScaledToZero, pool.name, "replicas is 0")]
        note = choice.arm if choice.arm == BASELINE else f"{choice.arm}, {choice.why}"
        return [Mark(Reason.Serving, pool.name, note)]
    first = not pool.remembered.get("serving")
    found = pool.servers.trouble if pool.servers and pool.servers.revision == choice.revision else None
    going_on = Mark(Reason.Starting if first else Reason.RollingOut, pool.name, f"{choice.arm}: {choice.why}")
    marks = [restoring(pool, choice.arm) if has_served(pool, choice.revision) else going_on]
    if found is None:
        return [*marks, Mark(Reason.ServersStarting, pool.name, choice.arm)]
    if found.fatal:
        return [Mark(Reason.ServerFailed, pool.name, found.what), Mark(Reason.Crashing, pool.name, found.what)]
    return [*marks, Mark(found.says, pool.name, found.what)]


def _target(pool: Pool, choice: Choice, now: datetime) -> Mapping[str, Any]:
    """The intent, written before the Deployment is touched."""
    before = pool.remembered.get("target") or {}
    same = before.get("revision") == choice.revision
    return intent(choice, before["since"] if same else timestamp(now))


def _serving(pool: Pool, target: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    same = has_served(pool, target["revision"])
    return {
        "revision": target["revision"],
        "arm": target["arm"],
        "since": pool.remembered["serving"]["since"] if same else timestamp(now),
        **{key: target[key] for key in ("evidence", "speedup") if key in target},
    }


def _overdue(pool: Pool, choice: Choice, now: datetime) -> Said | None:
    """A candidate that is not ready by its deadline is undone and held; the next pass rolls back. One whose server
    fails for good needs no deadline: trying again changes nothing."""
    spec, target = pool.snapshot.spec, pool.remembered.get("target") or {}
    ours = pool.servers if pool.servers and pool.servers.revision == choice.revision else None
    fatal = ours is not None and ours.trouble is not None and ours.trouble.fatal
    if (
        spec is None
        or choice.arm == BASELINE
        or target.get("revision") != choice.revision
        or as_chosen(pool, choice)
        or has_served(pool, choice.revision)
        or not (fatal or now >= parse_time(target["since"]) + spec.promotion.progress_deadline)
    ):
        return None
    hold = {"reason": "NotReady", "since": timestamp(now), "revision": choice.revision}
    note = pool.servers.trouble.what if pool.servers and pool.servers.trouble else choice.arm
    return Said(
        marks=(Mark(Reason.NotReady, pool.name, note), Mark(Reason.ServersStarting, pool.name, note)),
        record={"hold": hold},
        holds=True,
        wake=now,
    )


def foreign(pool: Pool) -> str | None:
    """An object of the name we need that is somebody else's is never taken over."""
    name = child_name(pool.snapshot.name, pool.name)
    several = pool.server.accelerator.nodes > 1
    made = (GROUPS, group_name(pool.snapshot.name, pool.name)) if several else ("Deployment", name)
    for kind, wanted in (made, ("Service", name)):
        found: Found | None = pool.snapshot.child(kind, wanted)
        if found is not None and not owned_by(found, pool.snapshot.owner.uid):
            return f"{kind} {wanted} belongs to somebody else; rename the pool or remove the object"
    return None
