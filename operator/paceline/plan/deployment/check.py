"""What can be known to be wrong before a GPU is taken."""

from datetime import datetime

from paceline.api import Mark, Reason
from paceline.core.names import POOL_LABEL
from paceline.engines import places
from paceline.plan.deployment.cache import facts
from paceline.plan.deployment.look import Snapshot
from paceline.plan.terms import Delete, Said, owned_by
from paceline.preflight import findings
from paceline.render.group import KIND as GROUPS


def readable(snapshot: Snapshot, _: datetime) -> Said:
    """The spec says something that can be carried out."""
    if snapshot.spec is None:
        return Said(marks=(Mark(Reason.InvalidSpec, None, snapshot.invalid),), holds=True)
    refused = places.refused(snapshot.spec, snapshot.manifest["spec"])
    if refused:
        note = "; ".join(f"{refusal.path}: {refusal.message}" for refusal in refused)
        return Said(marks=(Mark(Reason.InvalidSpec, None, note),), holds=True)
    return Said()


def preflight(snapshot: Snapshot, _: datetime) -> Said:
    """The draft fits its target, as far as the prefetch's facts tell."""
    spec, known = snapshot.spec, facts(snapshot)
    if spec is None or known is None:
        return Said()
    arms = tuple(dict.fromkeys(arm for pool in spec.pools for arm in pool.arms))
    found = [finding for finding in findings(spec.server, arms, known.facts) if finding.blocks]
    if not found:
        return Said()
    note = "; ".join(f"{finding.path}: {finding.found}; {finding.why}; {finding.fix}" for finding in found)
    return Said(marks=(Mark(Reason.PreflightFailed, None, note),), holds=True)


def let_go(snapshot: Snapshot, _: datetime) -> Said:
    """What belongs to a pool that the spec no longer has."""
    if snapshot.spec is None:
        return Said()
    wanted = {pool.name for pool in snapshot.spec.pools}
    left = [
        child
        for kind in ("Deployment", GROUPS, "Service", "BenchmarkRun", "ControllerRevision")
        for child in snapshot.of(kind)
        if owned_by(child, snapshot.owner.uid) and child["metadata"].get("labels", {}).get(POOL_LABEL) not in wanted
    ]
    return Said(actions=tuple(Delete(child, "its pool is no longer in spec.pools") for child in left))
