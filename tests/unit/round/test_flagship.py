"""The flagship example and its upstream twin as they stand: the argv that they render, on the emulated release that
their image speaks, with the models of the hub."""

import dataclasses
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.example import RUN, SETTINGS
from tests.unit.round.pod import CODE_1, Start

from paceline import api
from paceline.evidence import RoundPlan
from paceline.plan.deployment import Snapshot
from paceline.plan.deployment.models import models_of, pin
from paceline.plan.deployment.pool import pools
from paceline.render.round_job import round_plan
from paceline_emulator.hub.models import generated

EXAMPLES = Path(__file__).parents[3] / "examples"
ENTRY = ("python3", "-m", "sglang.launch_server")
PUBLISHED = "hf://thoughtworks/Qwen3-Coder-Next-Eagle3"


def asked(manifest: dict[str, Any], home: Path, port: int) -> RoundPlan:
    """The first round of its pool latency, of one short workload and with the hub's models below `home`."""
    spec = api.deployment(manifest)
    repositories, commits = generated(), {}
    for model in models_of(spec):
        found = repositories[model.source.removeprefix("hf://")].at(model.revision)
        assert found
        commits[model.source, model.revision] = found.commit
        for name, file in found.files.items():
            path = home / found.commit / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(file.content)
    snapshot = Snapshot(manifest=manifest, spec=spec, invalid="", children={}, settings=SETTINGS)
    pool = next(found for found in pools(snapshot, pin(spec, commits), datetime.now(UTC)) if found.name == "latency")
    plan = round_plan(RUN, pool.run_spec, pool.spec.arms, 0, 0)

    def here(word: str) -> str:
        """A snapshot's path ends with its commit."""
        return str(home / word.rpartition("/")[2]) if word.startswith("/models/hub/") else word

    arms = tuple(
        dataclasses.replace(arm, argv=(sys.executable, "-m", "paceline_emulator", *map(here, arm.argv[len(ENTRY) :])))
        for arm in plan.arms
    )
    assert all(arm.argv[: len(ENTRY)] == ENTRY for arm in plan.arms)
    moved = tuple(
        dataclasses.replace(arm, port=port, argv=tuple(str(port) if word == "30000" else word for word in arm.argv))
        for arm in arms
    )
    return dataclasses.replace(plan, arms=moved, workloads=(CODE_1,))


def example(name: str, head: str | None = None) -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    manifest["metadata"] |= {"namespace": "models", "uid": "uid-of-the-deployment"}
    if head:
        manifest["spec"]["draft"]["source"] = head
    return manifest


@pytest.mark.parametrize(
    ("manifest", "least", "most"),
    [
        pytest.param(example("qwen3-coder-next"), 1.3, 1.5, id="the fork"),
        pytest.param(example("qwen3-coder-next-upstream"), 1.3, 1.5, id="upstream"),
        pytest.param(example("qwen3-coder-next-upstream", PUBLISHED), 0.5, 0.9, id="upstream with the fork's head"),
    ],
)
def test_it_is_measured_as_it_stands(
    start: Start, tmp_path: Path, port: int, manifest: dict[str, Any], least: float, most: float
) -> None:
    """Published: 1.39x on code for one user. A head on states that it was not trained on is slower than none."""
    version = manifest["spec"]["engine"]["version"]
    plan = asked(manifest, tmp_path, port)
    outcome = start(
        plan.arms,
        change=lambda begun: dataclasses.replace(plan, results_dir=begun.results_dir),
        PACELINE_EMULATE_VERSION=version,
    ).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    assert outcome.result.engine_version == f"{version}+emulated"
    baseline, wide = (replicate.points[0].output_throughput or 0 for replicate in outcome.result.replicates)
    assert least < wide / baseline < most
