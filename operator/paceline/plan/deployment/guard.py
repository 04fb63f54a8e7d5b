"""What stands around a pool's servers, as the installation wants it: a NetworkPolicy and a PodDisruptionBudget."""

from collections.abc import Iterator

from paceline.plan.deployment.look import Pool, children
from paceline.plan.terms import Action, Apply, Delete, Manifest, owned_by
from paceline.render.guards import DISRUPTION_BUDGET, NETWORK_POLICY, disruption_budget, servers_network

GUARDS = (NETWORK_POLICY, DISRUPTION_BUDGET)


def guard(pool: Pool) -> Iterator[Action]:
    """One of the name that we need which is somebody else's stays as it is, and is enough."""
    snapshot, kept = pool.snapshot, set[str]()
    for made in _wanted(pool):
        kept.add(made["kind"])
        there = snapshot.child(made["kind"], made["metadata"]["name"])
        if there is None or owned_by(there, snapshot.owner.uid):
            yield Apply(made, "who reaches the pool's servers, and how many go at a time")
    for kind in GUARDS:
        for child in children(snapshot, kind, pool.name):
            if kind not in kept:
                yield Delete(child, "the installation wants none")


def _wanted(pool: Pool) -> Iterator[Manifest]:
    owner, settings = pool.snapshot.owner, pool.snapshot.settings
    if "servers" in settings.network_policies:
        yield servers_network(owner, pool.name, pool.server)
    if settings.disruption_budgets:
        yield disruption_budget(owner, pool.name)
