"""What preflight finds in a spec's pools, given the facts that the prefetch has read of the models."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paceline.core import DeploymentSpec
from paceline.engines import places
from paceline.engines.model_rules import FOREIGN_LAYERS
from paceline.plan.deployment.pool import Pool
from paceline.preflight import ModelFacts, findings


def problems(
    spec: DeploymentSpec, written: Mapping[str, Any], facts: Mapping[str, ModelFacts]
) -> tuple[tuple[str, bool], ...]:
    """Each problem of any pool once: a sentence that begins with the field, and whether it blocks.

    `written` is the manifest's spec as it came, `facts` are by source.
    """
    sentences: dict[tuple[str, bool], None] = {}
    for pool in spec.pools:
        largest = max(workload.concurrency for workload in pool.workloads)
        server = replace(spec.server, max_concurrency=largest)
        place = places.in_pool(written, pool.name)
        for finding in findings(server, pool.arms, facts):
            path = f"spec.{finding.path}" if finding.arm is None else place(finding.arm, finding.path)
            sentences[f"{path}: {finding.problem}; {finding.why}; {finding.fix}", finding.blocks] = None
    return tuple(sentences)


def foretold(pool: Pool) -> str:
    """Why preflight expected the pool's candidates to be rejected; "" if it did not. It let them pass."""
    facts = pool.snapshot.prefetch.facts if pool.snapshot.prefetch else {}
    foreign = [finding for finding in findings(pool.server, pool.spec.arms, facts) if finding.rule == FOREIGN_LAYERS]
    return "; ".join(f"expected: {finding.problem}; {finding.why}" for finding in foreign)
