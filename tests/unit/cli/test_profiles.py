"""Profiles at the desk: `validate` over several files, and what `plan` says of an edit before it is applied."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.plan.test_profiles import in_production, naming, profile
from tests.support.example_files import EXAMPLES
from tests.support.messages import Says
from tests.support.world import World

from paceline.cli import main


def write(file: Path, *manifests: Any) -> str:
    file.write_text(yaml.safe_dump_all(manifests))
    return str(file)


def test_a_lock_is_an_error_at_the_line_that_contradicts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    manifest = naming(budget={"gpuHours": "60"})
    deployment = write(tmp_path / "deployment.yaml", manifest)
    locked = write(tmp_path / "profile.yaml", profile(locked=["budget"]))
    assert main(["validate", deployment, locked]) == 1
    place, _, message = capsys.readouterr().out.partition(": spec.benchmark.budget: ")
    line = int(place.removeprefix(f"{deployment}:").split(":")[0])
    assert Path(deployment).read_text().splitlines()[line - 1].strip() == "budget:"
    says(message)
    assert main(["validate", str(tmp_path)]) == 1, "both are in the directory"


def test_rules_are_checked_with_the_profiles_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = naming()
    manifest["spec"]["pools"][0]["load"][0]["datasets"] = ["own"]
    assert main(["validate", write(tmp_path / "both.yaml", manifest, profile())]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert ": spec.pools[0].load[0].datasets[0]: " in line
    assert "BenchmarkProfile house-rules" in line


def test_a_profile_that_is_in_no_file_is_not_checked_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = write(tmp_path / "alone.yaml", naming())
    elsewhere = write(tmp_path / "elsewhere.yaml", {**profile(), "metadata": {"name": "house-rules", "namespace": "b"}})
    assert main(["validate", alone, elsewhere]) == 0
    assert "note: spec.benchmark.profileRef: " in capsys.readouterr().err
    for command in ("plan", "render", "measure"):
        assert main([command, alone]) != 0
        assert "spec.benchmark.profileRef.name: " in capsys.readouterr().err


def test_a_wrong_profile_is_named_and_stands_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {**profile(), "spec": {"locked": ["budgets"], "gate": {"confidence": 95}}}
    assert main(["validate", write(tmp_path / "both.yaml", naming(), wrong)]) == 1
    out, err = capsys.readouterr()
    assert [line.split(": ")[1] for line in out.splitlines()] == ["spec.gate.confidence", "spec.locked[0]"]
    assert "house-rules" in err


def test_the_example_is_planned_with_its_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(EXAMPLES / "benchmark-profile.yaml")]) == 0
    out = capsys.readouterr().out
    assert "benchmark.window (0 22 * * 1-5 Europe/Berlin, for 8 h)" in out
    assert "questions@1 " in out


def served(tmp_path: Path) -> str:
    """What `kubectl get` lists where two deployments name the profile, one of which serves, and a third does not."""
    world = in_production(World())
    objects = [one for (kind, _), one in world.cluster.objects.items() if kind != "Pod"]
    second, third = naming(), naming(profileRef={"name": "other"})
    for one, name in ((second, "second"), (third, "third")):
        one["metadata"] |= {"name": name, "uid": name}
    file = tmp_path / "there.yaml"
    text = json.dumps({"kind": "List", "items": [*objects, second, third]})
    file.write_text(text.replace('"uid-', '"there-'))  # the forecast gives uids as the world did
    return str(file)


@pytest.mark.parametrize(
    "spec", [{}, {"gate": {"decideAfterRounds": [3, 5, 8], "minImprovement": "4%"}}], ids=["as it is", "another gate"]
)
def test_an_edit_that_asks_for_no_round_is_seen_before_it_is_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, Any]
) -> None:
    assert main(["plan", write(tmp_path / "profile.yaml", profile(**spec)), "--cluster", served(tmp_path)]) == 0
    head, *rows = [line.split() for line in capsys.readouterr().out.split("\n\n")[0].splitlines()]
    assert head == ["DEPLOYMENT/POOL", "ROUNDS", "JOBS", "SERVER", "STARTS", "GPU-HOURS"]
    assert [row[0] for row in rows] == ["qwen3-coder-next/latency", "second/latency", "all"]
    assert [row[1] for row in rows] == ["0", "3-8", "3-8"]


def test_an_edit_that_asks_for_rounds_has_its_gpu_hours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited = profile(benchmark={"datasets": [{"name": "code", "source": "builtin://code", "maxTokens": 64}]})
    assert main(["plan", write(tmp_path / "profile.yaml", edited), "--cluster", served(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.split("\n\n")[0].splitlines()[1:]]
    assert [row[1] for row in rows] == ["3-8", "3-8", "6-16"]
    assert all(float(row[-1].split("-")[0]) > 0 for row in rows)


def test_an_edit_that_would_stall_a_deployment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = naming(budget={"gpuHours": "60"})
    manifest["metadata"]["uid"] = "u"
    there = write(tmp_path / "there.yaml", manifest)
    assert main(["plan", write(tmp_path / "p.yaml", profile(locked=["budget"])), "--cluster", there]) == 1
    assert "SpeculativeDeployment qwen3-coder-next: spec.benchmark.budget: " in capsys.readouterr().err
