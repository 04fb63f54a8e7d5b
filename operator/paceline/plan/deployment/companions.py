"""Objects beside a pool's servers: its Service; the NetworkPolicy and PodDisruptionBudget of the installation; the
HTTPRoute and InferencePool of the spec, if the cluster has these kinds."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from paceline.core import DeploymentSpec, PoolSettings, Server, server_of
from paceline.core.manifest import Manifest
from paceline.core.names import child_name
from paceline.engines.pod_template import SERVER
from paceline.plan.deployment.choose import Rollout
from paceline.plan.deployment.pool import Pool, name_conflict
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import owned_by
from paceline.plan.step import Action, Apply, Delete, StepResult
from paceline.render import Owner, Settings, service
from paceline.render.guards import DISRUPTION_BUDGET, NETWORK_POLICY, disruption_budget, servers_network
from paceline.render.routes import HTTP_ROUTE, INFERENCE_POOL, http_route, inference_pool

PROTECTION = (NETWORK_POLICY, DISRUPTION_BUDGET)
ROUTES = (INFERENCE_POOL, HTTP_ROUTE)


def apply_companions(rollout: Rollout, _: datetime) -> StepResult:
    """Keep the companions up in every pass, even while other steps wait: traffic needs them although nothing is rolled
    out."""
    pool = rollout.pool
    if name_conflict(pool):
        return StepResult()
    nodes = pool.server.accelerator.nodes if pool.servers is None else pool.servers.nodes_each
    address = Apply(service(pool.snapshot.owner, pool.name, nodes), "the pool's address")
    return StepResult(actions=(address, *_protect(pool), *_route(pool)))


def _protect(pool: Pool) -> Iterator[Action]:
    why = "limit who reaches the pool's servers and how many stop at once"
    return _kept_up(pool, PROTECTION, _wanted(pool), why, "the installation has switched it off")


def _route(pool: Pool) -> Iterator[Action]:
    """`unrouted` reports the routes that are not created."""
    snapshot = pool.snapshot
    picked = _can_be_made(snapshot, INFERENCE_POOL, pool.name)
    wanted = routes(snapshot.owner, pool.deployment, pool.spec, pool.server, picked=picked)
    return _kept_up(pool, ROUTES, wanted, "lead requests to the pool's servers", "the spec no longer asks for it")


def _kept_up(pool: Pool, kinds: Iterable[str], wanted: Iterable[Manifest], why: str, why_not: str) -> Iterator[Action]:
    """For these kinds, apply the wanted objects and delete the others. An object of another owner with the same name
    stays unchanged and takes the place of ours."""
    kept = set[str]()
    for one in wanted:
        kept.add(one["kind"])
        if _can_be_made(pool.snapshot, one["kind"], pool.name) and not _stays(pool, one["kind"]):
            yield Apply(one, why)
    for kind in kinds:
        for child in pool.snapshot.owned(kind, pool.name):
            if kind not in kept:
                yield Delete(child, why_not)


def _stays(pool: Pool, kind: str) -> bool:
    """Whether an existing object must not change: it names ports and nodes of the servers, which are frozen."""
    if kind not in (NETWORK_POLICY, INFERENCE_POOL) or not pool.frozen or pool.servers is None:
        return False
    return pool.snapshot.child(kind, child_name(pool.snapshot.name, pool.name)) is not None


def settings_of_protection(settings: Settings) -> dict[str, str]:
    """Wanted kind → the chart's value that asks for it."""
    policies = {NETWORK_POLICY: "networkPolicies.servers"} if "servers" in settings.network_policies else {}
    return policies | ({DISRUPTION_BUDGET: "disruptionBudgets"} if settings.disruption_budgets else {})


def _wanted(pool: Pool) -> Iterator[Manifest]:
    owner, settings = pool.snapshot.owner, pool.snapshot.settings
    if "servers" in settings.network_policies:
        servers = [server_of(pool.server, arm) for arm in pool.spec.arms]
        # Servers of a kept rendering may still answer although no arm of the spec has their engine.
        kept = [one for revision in pool.kept.values() for one in revision["data"]["template"]["spec"]["containers"]]
        ports = [port["containerPort"] for one in kept if one["name"] == SERVER for port in one.get("ports", ())]
        yield servers_network(owner, pool.name, servers, ports)
    if settings.disruption_budgets:
        yield disruption_budget(owner, pool.name)


def routes(
    owner: Owner, deployment: DeploymentSpec, pool: PoolSettings, server: Server, *, picked: bool = True
) -> Iterator[Manifest]:
    """The routes in the spec for one pool. Without its InferencePool (not `picked`), they lead to the Service."""
    picker, gateway = pool.endpoint_picker_ref, deployment.gateway
    if picker:
        yield inference_pool(owner, pool.name, server, picker)
    if gateway:
        yield http_route(owner, pool.name, gateway, pool.header_value or pool.name, picked=bool(picker) and picked)


def unrouted(snapshot: Snapshot) -> Iterator[str]:
    """A note for each object of the spec that is not created."""
    for n, pool in enumerate(snapshot.spec.pools if snapshot.spec else ()):
        if pool.endpoint_picker_ref and (obstacle := _obstacle(snapshot, INFERENCE_POOL, pool.name)):
            yield f"pools[{n}].endpointPickerRef: {obstacle}"
        if snapshot.spec and snapshot.spec.gateway and (obstacle := _obstacle(snapshot, HTTP_ROUTE, pool.name)):
            yield f"gateway: {obstacle}"


def _obstacle(snapshot: Snapshot, kind: str, pool: str) -> str:
    """Why the object cannot be created; "" if it can."""
    if kind in snapshot.absent:
        return (
            f"no {kind} is created: {_INSTALL[kind]}, or the operator lacks permission to list {kind}; nothing waits "
            "for it"
        )
    if not _can_be_made(snapshot, kind, pool):
        name = child_name(snapshot.name, pool)
        return f"{kind} {name} is not managed by Paceline and stays as it is; rename the pool or remove the object"
    return ""


def _can_be_made(snapshot: Snapshot, kind: str, pool: str) -> bool:
    existing = snapshot.child(kind, child_name(snapshot.name, pool))
    return kind not in snapshot.absent and (existing is None or owned_by(existing, snapshot.owner.uid))


_INSTALL = {
    HTTP_ROUTE: "the cluster lacks gateway.networking.k8s.io/v1 (kubernetes-sigs/gateway-api)",
    INFERENCE_POOL: "the cluster lacks inference.networking.k8s.io/v1"
    " (kubernetes-sigs/gateway-api-inference-extension, v1.0 or later)",
}
