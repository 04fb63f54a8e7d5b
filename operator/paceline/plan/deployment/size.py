"""How many servers a pool is to have."""

from paceline.api.status import PoolStatus
from paceline.core import BASELINE, UntilDecided
from paceline.plan.deployment.snapshot import Pool, Servers


def waits_for_a_verdict(pool: Pool, arm: str) -> bool:
    """untilDecided: Nothing, and no verdict yet."""
    spec = pool.snapshot.spec
    assert spec is not None
    nothing = spec.promotion.until_decided is UntilDecided.NOTHING
    return nothing and arm == BASELINE and pool.decided is None


def replicas(asked: int | None, waits: bool, remembered: PoolStatus, there: Servers | None) -> int | None:
    """None: an autoscaler's. It acts on nothing that is at zero, so the first server after waiting for a verdict is
    ours; a pool that has served and is at zero now was scaled there."""
    if waits:
        return 0
    ours = asked is None and there is not None and not there.asked and not remembered.serving
    return 1 if ours else asked


def leaves_zero(wanted: int | None, there: Servers | None) -> bool:
    """That none of none is ready says nothing yet."""
    return bool(wanted) and there is not None and not there.asked
