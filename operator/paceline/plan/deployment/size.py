"""How many servers a pool has."""

from paceline.api.status import Hold, PoolStatus
from paceline.core import BASELINE, DeploymentSpec, UntilDecided
from paceline.core.names import LENT
from paceline.plan.deployment.servers import Servers
from paceline.plan.objects import annotations


def waits_for_verdict(deployment: DeploymentSpec, arm: str, held: Hold | None, *, decided: bool) -> bool:
    """Whether `untilDecided: Nothing` keeps the pool without servers for now. A person who rolled back to a baseline
    wants it served."""
    if held and held.reason == "RolledBack":
        return False
    nothing = deployment.promotion.until_decided is UntilDecided.NOTHING
    return nothing and arm == BASELINE and not decided


def replicas(wanted: int | None, waits: bool, remembered: PoolStatus, servers: Servers | None) -> int | None:
    """The replicas to apply: those asked for (`wanted`), minus those that the pool has lent to its run. None leaves
    them to an autoscaler. An autoscaler does nothing about a pool at zero, so we start the first server after waiting
    for a verdict; a pool that has served was scaled to zero on purpose. What is lent when an autoscaler takes over
    comes back first: the write that adds it takes the annotation away."""
    if waits:
        return 0
    if wanted is not None:
        return max(0, wanted - (remembered.borrowed or 0))
    if servers is not None and LENT in annotations(servers.manifest):
        return servers.replicas + 1
    ours = servers is not None and not servers.replicas and not remembered.serving
    return 1 if ours else None


def leaves_zero(wanted: int | None, servers: Servers | None) -> bool:
    """Whether the servers are about to be scaled up from zero: that none is missing then means nothing."""
    return bool(wanted) and servers is not None and not servers.replicas
