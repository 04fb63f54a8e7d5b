"""What the planner of a deployment reads in a story."""

from collections.abc import Sequence

from tests.support.world import World

from paceline.plan import deployment
from paceline.plan.deployment.models import pin
from paceline.plan.deployment.pool import pools


def deployment_pools(world: World) -> Sequence[deployment.Pool]:
    snapshot = world.deployment_snapshot()
    prefetch = snapshot.prefetch
    assert prefetch is not None
    assert not prefetch.missing
    return pools(snapshot, pin(prefetch.spec, prefetch.known), world.cluster.now)
