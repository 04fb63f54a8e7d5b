"""What stands under a name that we need and is somebody else's."""

from paceline.core.names import child_name
from paceline.plan.deployment.snapshot import Pool
from paceline.plan.objects import Object, owned_by
from paceline.render import group_name
from paceline.render.group import KIND as GROUPS


def foreign(pool: Pool) -> str | None:
    """An object of the name we need that is somebody else's is never taken over."""
    name = child_name(pool.snapshot.name, pool.name)
    several = pool.server.accelerator.nodes > 1
    made = (GROUPS, group_name(pool.snapshot.name, pool.name)) if several else ("Deployment", name)
    for kind, wanted in (made, ("Service", name)):
        found: Object | None = pool.snapshot.child(kind, wanted)
        if found is not None and not owned_by(found, pool.snapshot.owner.uid):
            return f"{kind} {wanted} is not managed by Paceline; rename the pool or remove the object"
    return None
