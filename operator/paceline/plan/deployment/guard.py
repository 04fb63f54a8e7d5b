"""The NetworkPolicy and the PodDisruptionBudget around a pool's servers, as the installation wants them."""

from collections.abc import Iterator

from paceline.plan.deployment.pool import Pool
from paceline.plan.objects import owned_by
from paceline.plan.step import Action, Apply, Delete, Manifest
from paceline.render import Settings
from paceline.render.guards import DISRUPTION_BUDGET, NETWORK_POLICY, disruption_budget, servers_network

GUARDS = (NETWORK_POLICY, DISRUPTION_BUDGET)


def guard(pool: Pool) -> Iterator[Action]:
    """Apply the guards that are wanted, delete those that are not. An object of another owner with the same name stays
    as it is, and replaces ours."""
    snapshot, kept = pool.snapshot, set[str]()
    for wanted in _wanted(pool):
        kept.add(wanted["kind"])
        if wanted["kind"] in snapshot.absent:
            continue
        existing = snapshot.child(wanted["kind"], wanted["metadata"]["name"])
        if existing is None or owned_by(existing, snapshot.owner.uid):
            yield Apply(wanted, "limit who reaches the pool's servers and how many stop at once")
    for kind in GUARDS:
        for child in snapshot.owned(kind, pool.name):
            if kind not in kept:
                yield Delete(child, "the installation has switched it off")


def settings_of_guards(settings: Settings) -> dict[str, str]:
    """Kind of guard that is wanted → the chart's value that asks for it."""
    policies = {NETWORK_POLICY: "networkPolicies.servers"} if "servers" in settings.network_policies else {}
    return policies | ({DISRUPTION_BUDGET: "disruptionBudgets"} if settings.disruption_budgets else {})


def _wanted(pool: Pool) -> Iterator[Manifest]:
    owner, settings = pool.snapshot.owner, pool.snapshot.settings
    if "servers" in settings.network_policies:
        yield servers_network(owner, pool.name, pool.server)
    if settings.disruption_budgets:
        yield disruption_budget(owner, pool.name)
