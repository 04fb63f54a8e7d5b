"""`paceline render`: which objects, and what it says of bad input."""

import re
from pathlib import Path

import pytest
import yaml
from tests.support.messages import Says
from tests.support.rendered import EXAMPLES, example
from tests.support.searched import searching
from tests.support.world import World

from paceline.cli import main
from paceline.plan.run.snapshot import RoundJob

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
    "arguments",
    [
        ["--pool", "fast"],
        ["--arm", "slim"],
        ["--pool", "latency", "--arm", "narrow"],
    ],
)
def test_a_pool_or_arm_that_is_not_there(arguments: list[str], capsys: pytest.CaptureFixture[str], says: Says) -> None:
    assert main(["render", NEXT, *arguments]) == 1
    says(capsys.readouterr().err.removeprefix(f"{NEXT}: "))


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    assert main(["render", str(tmp_path / "none.yaml")]) == 1
    says(capsys.readouterr().err)


def test_a_file_with_nothing_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("kind: ConfigMap\n---\napiVersion: example.com/v1\nkind: BenchmarkRun\nspec: {}\n")
    assert main(["render", str(path)]) == 1
    says(capsys.readouterr().err)


# Pools and runs that search.

SEARCH = str(EXAMPLES / "search.yaml")


def test_a_pool_that_searches_serves_its_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", SEARCH, "--pool", "latency"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"# Pool latency .* 45 candidates, tree-1-1-2 to tree-7-8-32: .*--arm", out)
    assert [one["kind"] for one in yaml.safe_load_all(out)] == ["ControllerRevision", "Deployment", "Service"]
    assert "--speculative" not in out


def test_any_tree_that_it_may_find_can_be_rendered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", SEARCH, "--pool", "latency", "--arm", "tree-3-4-8"]) == 0
    (server,) = [one for one in yaml.safe_load_all(capsys.readouterr().out) if one["kind"] == "Deployment"]
    argv = server["spec"]["template"]["spec"]["containers"][0]["command"]
    assert argv[argv.index("--speculative-num-draft-tokens") + 1] == "8"


def test_of_many_arms_a_message_names_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", SEARCH, "--pool", "latency", "--arm", "wide"]) == 1
    said = capsys.readouterr().err
    assert " baseline, tree-1-1-2, " in said
    assert said.endswith(" and 34 more\n")


def test_of_a_search_the_first_round_is_its_first_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a server for each arm."""
    world = World()
    world.apply(searching("latency"))
    world.prefetch_ends()
    world.servers_ready()
    (run,) = world.runs("latency")
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({key: run[key] for key in ("apiVersion", "kind", "metadata", "spec")}))
    assert main(["render", str(path)]) == 0
    out = capsys.readouterr().out
    assert ": 1 server, " in out
    (job,) = yaml.safe_load_all(out)
    (first,) = world.under_way("round")
    assert RoundJob(job=job, pod=None).plan.cells == RoundJob(job=first, pod=None).plan.cells
    assert main(["render", str(path), "--arm", "tree-3-4-8"]) == 0
    assert ": 2 servers, " in capsys.readouterr().out
