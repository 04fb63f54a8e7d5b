"""`paceline render`: which objects, and what it says of bad input."""

from pathlib import Path

import pytest
import yaml
from tests.support.rendered import EXAMPLES, example

from paceline.cli import main

NEXT = str(EXAMPLES / "qwen3-coder-next.yaml")


def kinds(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["render", *arguments]) == 0
    return [f"{one['kind']} {one['metadata']['name']}" for one in yaml.safe_load_all(capsys.readouterr().out)]


def test_everything_that_would_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    names = [name.rpartition("-")[0] if "Revision" in name or "Job" in name else name for name in kinds(capsys, NEXT)]
    assert names == [
        "PersistentVolumeClaim models",
        "Job qwen3-coder-next-fetch",
        "ControllerRevision qwen3-coder-next-latency",
        "Deployment qwen3-coder-next-latency",
        "Service qwen3-coder-next-latency",
        "ControllerRevision qwen3-coder-next-throughput",
        "Deployment qwen3-coder-next-throughput",
        "Service qwen3-coder-next-throughput",
    ]


def test_one_pool(capsys: pytest.CaptureFixture[str]) -> None:
    found = kinds(capsys, NEXT, "--pool", "latency", "--arm", "wide")
    assert [name.split()[0] for name in found] == ["ControllerRevision", "Deployment", "Service"]


def test_an_arm_of_one_pool_alone(capsys: pytest.CaptureFixture[str]) -> None:
    found = kinds(capsys, NEXT, "--arm", "narrow")
    assert found[-1] == "Service qwen3-coder-next-throughput"
    assert not any(name.startswith("Service qwen3-coder-next-latency") for name in found)


def test_several_nodes_are_a_leader_worker_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = example("glm-4.7-fp8")
    manifest["spec"]["accelerator"] |= {"nodes": 2, "tensorParallelSize": 16}
    path = tmp_path / "two-nodes.yaml"
    path.write_text(yaml.safe_dump(manifest))
    assert "LeaderWorkerSet glm-4-7-fp8-latency" in kinds(capsys, str(path))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pool", "fast"], "no pool fast; there are latency, throughput"),
        (["--arm", "slim"], "no arm slim; pool latency has baseline, wide; pool throughput has baseline, narrow, wide"),
        (["--pool", "latency", "--arm", "narrow"], "no arm narrow; pool latency has baseline, wide"),
    ],
)
def test_a_pool_or_arm_that_is_not_there(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", NEXT, *arguments]) == 1
    assert capsys.readouterr().err == f"{NEXT}: {says}\n"


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(tmp_path / "none.yaml")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_file_with_nothing_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("kind: ConfigMap\n")
    assert main(["render", str(path)]) == 1
    assert capsys.readouterr().err == f"{path}: it has neither a SpeculativeDeployment nor a BenchmarkRun\n"
