"""What stands around a pool's servers, as the installation wants it: a NetworkPolicy and a PodDisruptionBudget."""

from collections.abc import Iterator
from datetime import datetime

from paceline.plan.deployment.snapshot import Pool, Snapshot, children
from paceline.plan.objects import owned_by
from paceline.plan.step import Action, Apply, Delete, Manifest, StepResult
from paceline.render import Settings
from paceline.render.guards import DISRUPTION_BUDGET, NETWORK_POLICY, disruption_budget, servers_network

GUARDS = (NETWORK_POLICY, DISRUPTION_BUDGET)


def guard(pool: Pool) -> Iterator[Action]:
    """One of the name that we need which is somebody else's stays as it is, and is enough."""
    snapshot, kept = pool.snapshot, set[str]()
    for made in _wanted(pool):
        kept.add(made["kind"])
        if made["kind"] in snapshot.absent:
            continue
        there = snapshot.child(made["kind"], made["metadata"]["name"])
        if there is None or owned_by(there, snapshot.owner.uid):
            yield Apply(made, "limit who reaches the pool's servers and how many stop at once")
    for kind in GUARDS:
        for child in children(snapshot, kind, pool.name):
            if kind not in kept:
                yield Delete(child, "the installation has switched it off")


def unguarded(snapshot: Snapshot, _: datetime) -> StepResult:
    """What the installation wants around servers and the operator may not make: they serve without, and it is told."""
    wanted = {kind: value for kind, value in _values(snapshot.settings).items() if kind in snapshot.absent}
    return StepResult(
        notes=tuple(
            f"no {kind} is made for servers: the operator may not list them; let its ClusterRole be that of its own "
            f"release's chart, or switch them off ({value})"
            for kind, value in wanted.items()
        )
    )


def _values(settings: Settings) -> dict[str, str]:
    """Kinds that are wanted, and what of the chart says so."""
    policies = {NETWORK_POLICY: "networkPolicies.servers"} if "servers" in settings.network_policies else {}
    return policies | ({DISRUPTION_BUDGET: "disruptionBudgets"} if settings.disruption_budgets else {})


def _wanted(pool: Pool) -> Iterator[Manifest]:
    owner, settings = pool.snapshot.owner, pool.snapshot.settings
    if "servers" in settings.network_policies:
        yield servers_network(owner, pool.name, pool.server)
    if settings.disruption_budgets:
        yield disruption_budget(owner, pool.name)
