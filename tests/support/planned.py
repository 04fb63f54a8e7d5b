"""What the planner of a deployment reads in a story."""

from collections.abc import Sequence

from tests.support.world import World

from paceline.plan import deployment
from paceline.plan.deployment.pins import pin
from paceline.plan.deployment.pool import pools


def deployment_pools(world: World) -> Sequence[deployment.Pool]:
    snapshot = world.deployment_snapshot()
    prefetch = snapshot.prefetch
    assert prefetch is not None
    assert prefetch.commits is not None
    return pools(snapshot, pin(prefetch.spec, prefetch.commits), world.cluster.now)
