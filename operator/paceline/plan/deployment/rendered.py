"""The rendering that a pool is to serve."""

from paceline.plan.deployment.choose import Choice
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import Manifest
from paceline.render import rendering


def rendered(pool: Pool, choice: Choice) -> Manifest:
    """The one that is kept of the choice, else a new one."""
    if kept := pool.kept.get(choice.revision):
        data: Manifest = kept["data"]
        return data
    return rendering(
        pool.snapshot.owner,
        pool.name,
        pool.server,
        pool.arms[choice.arm],
        choice.revision,
        pool.snapshot.settings,
        pool.deployment.promotion.progress_deadline,
    )
