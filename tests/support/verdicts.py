"""What a run makes of rounds: everything between a round's answer and the verdict, as the operator does it."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from tests.support.in_status import records as in_status
from tests.support.in_status import round_status

from paceline import api
from paceline.core import RunSpec, Workload
from paceline.evidence import RoundPlan, RoundResult, judge_points
from paceline.plan.run.conclusion import Conclusion
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.run.steps.conclude import conclude
from paceline.render import Settings

FILE = Path(__file__).parents[2] / "examples" / "benchmark-only.yaml"
Record = Mapping[str, Any]
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def question(candidate: str, workloads: Sequence[Workload]) -> RunSpec:
    """Is this candidate 5 % faster?"""
    manifest = yaml.safe_load(FILE.read_text())
    for model in (manifest["spec"]["target"], *(arm["draft"] for arm in manifest["spec"]["arms"] if "draft" in arm)):
        model |= {"source": "hf://company/model", "commit": "1" * 40}
    spec = api.run(manifest)
    baseline, wide, *_ = spec.arms
    return dataclasses.replace(
        spec, arms=(baseline, dataclasses.replace(wide, name=candidate)), workloads=tuple(workloads)
    )


def recorded(plan: RoundPlan, result: RoundResult) -> Record:
    return round_status(plan, result, judge_points(plan, result), f"job-{plan.round}", "gpu-0")


def concluded(spec: RunSpec, records: Iterable[Record]) -> Conclusion | None:
    """None while the run wants another round."""
    manifest = {"metadata": {"name": "run", "namespace": "models", "uid": "1", "generation": 1}, "spec": {}}
    return conclude(between_rounds(manifest, spec), Evidence(spec=spec, records=in_status(records)), NOW)


def between_rounds(manifest: Mapping[str, Any], spec: RunSpec) -> Snapshot:
    """A run of which no Job is there."""
    return Snapshot(
        manifest=manifest,
        spec=spec,
        invalid="",
        jobs=(),
        namespaces=(),
        suspended=False,
        settings=Settings(image="paceline"),
    )


def outcome(conclusion: Conclusion) -> str:
    assert conclusion.verdict
    return conclusion.verdict.outcome
