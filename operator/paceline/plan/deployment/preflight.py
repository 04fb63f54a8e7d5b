"""Preflight's findings in a spec's pools, given the prefetch's facts about the models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.core import DeploymentSpec
from paceline.engines import refusals_of_spec
from paceline.preflight import ModelFacts, findings


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """`text` starts with the field. `blocks`: the pool cannot be served with this problem."""

    text: str
    blocks: bool
    pool: str


def model_problems(
    spec: DeploymentSpec, written: Mapping[str, Any], facts: Mapping[str, ModelFacts]
) -> tuple[ModelProblem, ...]:
    """Problems of every pool. `written` is the manifest's spec as submitted; `facts` are by source."""
    found: list[ModelProblem] = []
    for pool in spec.pools:
        largest = max(workload.concurrency for workload in pool.workloads)
        server = replace(spec.server, max_concurrency=largest)
        place = refusals_of_spec.in_pool(written, pool.name)
        for finding in findings(server, pool.arms, facts):
            path = f"spec.{finding.path}" if finding.arm is None else place(finding.arm, finding.path)
            text = f"{path}: {finding.problem}; {finding.why}; {finding.fix}"
            found.append(ModelProblem(text, finding.blocks, pool.name))
    return tuple(found)


def each_once(found: Iterable[ModelProblem]) -> tuple[tuple[str, bool], ...]:
    """Text, and whether it blocks; without duplicates, because pools may share a problem."""
    return tuple(dict.fromkeys((one.text, one.blocks) for one in found))
