"""Objects of other owners under a name that a pool needs."""

from paceline.core.names import child_name
from paceline.plan.deployment.pool import Pool
from paceline.plan.objects import Object, owned_by
from paceline.render import group_name
from paceline.render.group import KIND as GROUPS


def name_conflict(pool: Pool) -> str | None:
    """A message if another owner's object has the name of our servers or Service. It is never taken over."""
    name = child_name(pool.snapshot.name, pool.name)
    several = pool.server.accelerator.nodes > 1
    servers = (GROUPS, group_name(pool.snapshot.name, pool.name)) if several else ("Deployment", name)
    for kind, wanted in (servers, ("Service", name)):
        existing: Object | None = pool.snapshot.child(kind, wanted)
        if existing is not None and not owned_by(existing, pool.snapshot.owner.uid):
            return f"{kind} {wanted} is not managed by Paceline; rename the pool or remove the object"
    return None
