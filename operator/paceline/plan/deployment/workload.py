"""The desired servers: revision, rendering, number, and how they replace the previous ones.

`promotion.surge: Auto` tries one additional server: the old ones serve until it is ready. A full cluster has no room
for it; after a minute, servers are replaced in place, one at a time. The decision is in status (`target.surge`) before
the servers change, and stays as long as the target: a roll-out in progress ignores that capacity changes.

Manual additions to our servers stay, because the fields have another owner, but were never measured: `drift` lists
them. Our own fields are restored in the next pass. The API server adds values of fields, never items of these lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from paceline.api import served_spec
from paceline.api.status import Target
from paceline.core import BASELINE, PromotionSpec, Surge, UntilDecided
from paceline.core.manifest import Manifest, Object
from paceline.plan.deployment.choose import Choice
from paceline.plan.deployment.holds import held_by_a_person
from paceline.plan.deployment.incumbent import SERVED
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.servers import Servers, pod_template
from paceline.plan.objects import annotations
from paceline.plan.step import parse_time, timestamp
from paceline.render import rendering, servers
from paceline.render.startup_probe import has_own, startup_probe, with_patience, with_tries

_WHY = "paceline.dev/why"
"""Annotation of the servers: why they run their arm."""
STARTUP_PATIENCE = timedelta(minutes=1)
"""How long the additional server may wait for capacity. The time counts only while no other server of the pool is
ending, because an ending server's accelerators become free once it has drained."""
_KEYS = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}
"""List of a container → the key of its items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A revision for a pool to serve."""

    revision: str
    rendering: Mapping[str, Any]
    why: str
    has_served: bool
    """Since it became the goal, all servers were of it and ready."""
    waits: bool
    """Wait for a verdict, without servers until then."""
    in_place: bool
    """Each server ends before its successor starts."""


def as_they_are(servers: Servers, rendering: Mapping[str, Any]) -> Goal:
    """Keep the servers unchanged; `rendering` is the kept rendering of their revision."""
    return Goal(
        revision=servers.revision,
        rendering=rendering,
        why=annotations(servers.manifest).get(_WHY, ""),
        has_served=True,
        waits=False,
        in_place=is_in_place(servers.manifest),
    )


def server_manifest(pool: Pool, goal: Goal) -> Manifest:
    why = {_WHY: goal.why} if goal.why else {}
    return servers(
        pool.snapshot.owner,
        pool.name,
        _patient(pool, goal),
        replicas(pool, goal.waits),
        pool.deployment.promotion.progress_deadline,
        why,
        surge=not goal.in_place,
    )


def _patient(pool: Pool, goal: Goal) -> Manifest:
    """The kept rendering with the startup probe of the present spec: a raised `promotion.progressDeadline` reaches the
    existing servers without restarting any that serves. A user's own probe stays as kept.

    The probe of a running pod cannot be changed: if servers of this revision have started and one is ready, the probe
    stays until none is ready.
    """
    kept, current = goal.rendering, pool.servers
    if has_own(pool.server.engine.pod_template):
        return dict(kept)
    if current and current.revision == goal.revision and current.ready and (goal.has_served or current.settled):
        probe = startup_probe(pod_template(current.manifest)) or {}
        return with_tries(kept, probe["failureThreshold"]) if "failureThreshold" in probe else dict(kept)
    return with_patience(kept, pool.deployment.promotion.progress_deadline)


def rendered(pool: Pool, choice: Choice) -> Manifest | None:
    """The kept rendering of the choice, else a new one. None if the pool is frozen on a choice whose rendering is lost:
    its servers stay unchanged."""
    if kept := pool.kept.get(choice.revision):
        data: Manifest = kept["data"]
        return data
    server, arm = pool.server, pool.arms.get(choice.arm)
    if (incumbent := pool.incumbent) and incumbent.revision == choice.revision:
        server, arm = incumbent.server, incumbent.arm
    if pool.frozen and choice.revision != pool.revision(arm or pool.arms[BASELINE]):
        return None
    assert arm is not None
    made = rendering(
        pool.snapshot.owner,
        pool.name,
        server,
        arm,
        choice.revision,
        pool.snapshot.settings,
        pool.deployment.promotion.progress_deadline,
    )
    return {**made, SERVED: served_spec(server, arm)}


def waits_for_verdict(pool: Pool, choice: Choice) -> bool:
    """Whether `untilDecided: Nothing` keeps the pool without servers for now. Not after a person's rollback to a
    baseline, which must be served."""
    by_person = held_by_a_person(pool)
    if by_person and by_person.reason == "RolledBack":
        return False
    nothing = pool.deployment.promotion.until_decided is UntilDecided.NOTHING
    serves_on = (pool.frozen or pool.incumbent) and pool.remembered.serving is not None
    return nothing and choice.arm == BASELINE and not pool.has_verdict and not serves_on


def replicas(pool: Pool, waits: bool) -> int | None:
    """The replicas to apply: the requested ones minus those lent to the pool's run. None leaves them to an autoscaler.
    Autoscalers ignore a pool at zero, so we start the first server after waiting for a verdict, or after the last one
    was lent. Any other pool at zero that has served was scaled down on purpose."""
    if waits:
        return 0
    if pool.spec.replicas is not None:
        return max(0, pool.spec.replicas - (pool.remembered.borrowed or 0))
    lent_or_new = pool.remembered.borrowed or not pool.remembered.serving
    ours = pool.servers is not None and not pool.servers.replicas and lent_or_new
    return 1 if ours else None


def leaves_zero(wanted: int | None, servers: Servers | None) -> bool:
    """Whether the servers are about to be scaled up from zero, so that none missing does not mean settled."""
    return bool(wanted) and servers is not None and not servers.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Surging:
    """How servers are replaced, as fields of `target`."""

    surge: Literal["Tried", "Skipped", "Withdrawn"] | None = None
    surge_waits_since: str = ""


def withdrawn_at(target: Surging | Target | None) -> datetime | None:
    """When the additional server that waits for capacity is given up; None if none waits."""
    return parse_time(target.surge_waits_since) + STARTUP_PATIENCE if target and target.surge_waits_since else None


def in_place(promotion: PromotionSpec, target: Target | None) -> bool:
    """Whether each server ends before its successor starts."""
    return promotion.surge is Surge.NEVER or (target is not None and target.surge in ("Skipped", "Withdrawn"))


def is_in_place(servers: Object) -> bool:
    """Whether the Deployment currently replaces its servers in place."""
    return not servers["spec"].get("strategy", {}).get("rollingUpdate", {}).get("maxSurge", 0)


def surging(
    promotion: PromotionSpec, servers: Servers | None, before: Target | None, revision: str, now: datetime
) -> Surging:
    """`before` is the target of the last pass, `revision` the present target's. If not all servers are ready when they
    are to be replaced, no additional one is tried: it would not make up for the missing ones, and would delay the
    replacement."""
    if promotion.surge is Surge.NEVER or servers is None or not servers.replicas:
        return Surging()
    if servers.manifest["kind"] != "Deployment":
        return Surging()
    last = before if before and before.revision == revision else Target()
    if last.surge in ("Skipped", "Withdrawn"):
        return Surging(surge=last.surge)
    if servers.revision != revision and not last.surge:
        return Surging(surge="Skipped" if servers.ready < servers.replicas else "Tried")
    if servers.revision != revision or not servers.one_more_waits:
        return Surging(surge=last.surge)
    waiting = Surging(surge=last.surge, surge_waits_since=last.surge_waits_since or timestamp(now))
    end = withdrawn_at(waiting)
    return Surging(surge="Withdrawn") if end and now >= end else waiting


def drift(actual: Object, ours: Mapping[str, Any]) -> tuple[str, ...]:
    """Each addition in the `actual` pod template, as in `env FOO of container server`."""
    return tuple(_pod(actual.get("spec") or {}, ours.get("spec") or {}))


def _pod(actual: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for volume in _added(actual.get("volumes"), ours.get("volumes"), "name"):
        yield f"volume {volume}"
    for kind, word in (("containers", "container"), ("initContainers", "init container")):
        mine = {container["name"]: container for container in ours.get(kind) or ()}
        for container in actual.get(kind) or ():
            if container["name"] not in mine:
                yield f"{word} {container['name']}"
                continue
            rendered = mine[container["name"]]
            for field, key in _KEYS.items():
                for item in _added(container.get(field), rendered.get(field), key):
                    yield f"{field} {item} of {word} {container['name']}"
            if container.get("envFrom") and not rendered.get("envFrom"):
                yield f"envFrom of {word} {container['name']}"


def _added(actual: Iterable[Mapping[str, Any]] | None, ours: Iterable[Mapping[str, Any]] | None, key: str) -> list[Any]:
    rendered = {item.get(key) for item in ours or ()}
    return [item.get(key) for item in actual or () if item.get(key) not in rendered]
