"""What can be known to be wrong before a GPU is taken."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.core import DeploymentSpec
from paceline.core.names import POOL_LABEL
from paceline.engines import places
from paceline.engines.model_rules import FOREIGN_LAYERS
from paceline.plan.deployment.cache import facts
from paceline.plan.deployment.guard import GUARDS
from paceline.plan.deployment.snapshot import Pool, Snapshot
from paceline.plan.objects import owned_by
from paceline.plan.step import Delete, StepResult
from paceline.preflight import ModelFacts, findings
from paceline.render.group import KIND as GROUPS


def readable(snapshot: Snapshot, _: datetime) -> StepResult:
    """The spec says something that can be carried out."""
    if snapshot.spec is None:
        return StepResult(causes=(Cause(Reason.InvalidSpec, None, snapshot.invalid),), blocks=True)
    refused = places.refused(snapshot.spec, snapshot.manifest["spec"])
    if refused:
        note = "; ".join(f"{refusal.path}: {refusal.message}" for refusal in refused)
        return StepResult(causes=(Cause(Reason.InvalidSpec, None, note),), blocks=True)
    return StepResult()


def preflight(snapshot: Snapshot, _: datetime) -> StepResult:
    """The models fit the spec and each other, as far as the prefetch's facts tell.

    What stands in the way is Stalled; what is worth knowing is noted for as long as it is so.
    """
    if snapshot.spec is None:
        return StepResult()
    said = found_in(snapshot.spec, snapshot.manifest["spec"], facts(snapshot))
    blocking, worth_knowing = (tuple(text for text, blocks in said if blocks is kind) for kind in (True, False))
    if blocking:
        return StepResult(causes=(Cause(Reason.PreflightFailed, None, "; ".join(blocking)),), blocks=True)
    return StepResult(notes=worth_knowing)


def found_in(
    spec: DeploymentSpec, written: Mapping[str, Any], known: Mapping[str, ModelFacts]
) -> tuple[tuple[str, bool], ...]:
    """What preflight finds in all pools, each once: a sentence that begins with the field, and whether it blocks.

    `written` is the manifest's spec as it came, `known` facts by source.
    """
    found: dict[tuple[str, bool], None] = {}
    for pool in spec.pools:
        largest = max(workload.concurrency for workload in pool.workloads)
        server = replace(spec.server, largest_concurrency=largest)
        place = places.in_pool(written, pool.name)
        for finding in findings(server, pool.arms, known):
            path = f"spec.{finding.path}" if finding.arm is None else place(finding.arm, finding.path)
            found[f"{path}: {finding.problem}; {finding.why}; {finding.fix}", finding.blocks] = None
    return tuple(found)


def foretold(pool: Pool) -> str:
    """Why a candidate that was rejected was likely to be: what preflight knew of its head and let pass."""
    told = findings(pool.server, pool.spec.arms, facts(pool.snapshot))
    return "; ".join(f"expected: {one.problem}; {one.why}" for one in told if one.rule == FOREIGN_LAYERS)


def let_go(snapshot: Snapshot, _: datetime) -> StepResult:
    """What belongs to a pool that the spec no longer has."""
    if snapshot.spec is None:
        return StepResult()
    wanted = {pool.name for pool in snapshot.spec.pools}
    left = [
        child
        for kind in ("Deployment", GROUPS, "Service", "BenchmarkRun", "ControllerRevision", *GUARDS)
        for child in snapshot.of(kind)
        if owned_by(child, snapshot.owner.uid) and child["metadata"].get("labels", {}).get(POOL_LABEL) not in wanted
    ]
    return StepResult(actions=tuple(Delete(child, "its pool is no longer in spec.pools") for child in left))
