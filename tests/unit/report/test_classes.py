"""Which arm is best on which dataset: in status, in the report, and as a file for a router."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.campaigns import BASELINE_32, NARROW_32, WIDE_32
from tests.support.searched import begun
from tests.support.world import example

from paceline import api
from paceline.api.round import rounds_of
from paceline.cli import main
from paceline.core import ArmOutcome
from paceline.gate import Finding
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.results import results
from paceline.report import FORMATS, build_report
from paceline.report.classes import prompt_routing

TRUTH = {"baseline": BASELINE_32, "narrow": NARROW_32, "wide": WIDE_32}


@cache
def ended() -> dict[str, Any]:
    """The throughput pool of the example, to its verdict by the published table."""
    manifest: dict[str, Any] = dict(example("throughput"))
    world = begun(manifest)
    for _ in range(9):
        if not world.runs("throughput")[0].get("status", {}).get("verdict"):
            world.round_ends(truth=TRUTH)
    return world.runs("throughput")[0]


def file_of(run: dict[str, Any], folder: Path) -> str:
    (folder / "run.yaml").write_text(yaml.safe_dump(run, sort_keys=False))
    return str(folder / "run.yaml")


def on_gpus(run: dict[str, Any]) -> dict[str, Any]:
    """As if none of its rounds had been emulated, as they are in tests."""
    return json.loads(json.dumps(run).replace('"emulated": true', '"emulated": false'))  # type: ignore[no-any-return]


def test_status_names_the_best_arm_of_each_dataset() -> None:
    assert {one["dataset"]: one.get("best") for one in ended()["status"]["classes"]} == {
        "code": None,
        "swe": "wide",
        "terminal": None,
        "chat": "wide",
    }


def test_the_report_has_a_table_of_them() -> None:
    text = FORMATS["md"](build_report([ended()]))
    assert "### Fastest arm by dataset" in text
    assert "| chat | wide | wide over narrow | 1." in text


def test_a_router_gets_the_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file_of(on_gpus(ended()), tmp_path), "--format", "routing", "-o", "-"]) == 0
    trees = json.loads(capsys.readouterr().out)
    assert trees == {name: {"num_steps": 3, "eagle_topk": 4, "num_draft_tokens": 8} for name in ("swe", "chat")}


def test_a_router_gets_nothing_of_an_emulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file_of(ended(), tmp_path), "--format", "routing", "-o", "-"]) == 1
    assert "the rounds are emulated" in capsys.readouterr().err


def test_two_runs_that_disagree_choose_no_tree() -> None:
    one, other = on_gpus(ended()), deepcopy(on_gpus(ended()))
    for arm in other["spec"]["arms"][1:]:
        arm["tree"] = {"numSteps": 1}
    with pytest.raises(ValueError, match="swe: two runs name different trees"):
        prompt_routing(build_report([one, other]))


@pytest.mark.parametrize(
    ("finding", "best"),
    [(Finding.WORKLOAD_REGRESSED, "wide"), (Finding.LENGTHS_DIFFER, ""), (Finding.LIMIT_EXCEEDED, "")],
)
def test_an_arm_that_was_rejected_for_more_than_its_speed_is_best_nowhere(finding: Finding, best: str) -> None:
    evidence = Evidence(spec=api.run(ended()), records=rounds_of(ended()))
    arms = evidence.verdict.arms
    rejected = replace(arms["wide"], outcome=ArmOutcome.REJECTED, reason=finding)
    vars(evidence)["verdict"] = replace(evidence.verdict, arms={**arms, "wide": rejected})
    assert {one.dataset: one.best for one in results(evidence, ended()["spec"])["classes"]}["chat"] == best


def test_a_chain_has_the_defaults_of_its_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = deepcopy(on_gpus(ended()))
    for arm in run["spec"]["arms"][1:]:
        arm["tree"] = {"numSteps": 3}
    assert main(["report", file_of(run, tmp_path), "--format", "routing", "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["chat"] == {"num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}


def test_a_gate_of_one_dataset_names_none() -> None:
    manifest: dict[str, Any] = dict(example("throughput"))
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "chat", "source": "builtin://chat"}]}
    world = begun(manifest)
    for _ in range(3):
        world.round_ends(truth=TRUTH)
    assert not world.runs("throughput")[0]["status"].get("classes")
