"""`paceline report` and `kubectl paceline`: where runs are found, what is written, what is said when it cannot be."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.memory import Cluster, MemoryApi
from tests.support.messages import Says
from tests.support.reports import demo, listed
from tests.support.runs import latency, throughput
from tests.unit.cli.states import both_promoted

from paceline import cli
from paceline.cli.report_source import source_named
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.measure import record


def call(*words: str) -> int:
    return cli.main(["report", *words])


def test_runs_come_from_files_and_from_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, written = tmp_path / "latency.yaml", tmp_path / "report.json"
    one.write_text(yaml.safe_dump_all(record.as_documents(latency())), encoding="utf-8")
    other = {"kind": "ConfigMap", "metadata": {"name": "not-ours"}}
    monkeypatch.setattr("sys.stdin", io.StringIO(listed(throughput(), other)))

    assert call(str(one), "-", "-o", str(written)) == 0
    assert [run["pool"] for run in json.loads(written.read_text())["runs"]] == ["latency", "throughput"]


@pytest.mark.parametrize(
    ("name", "words", "begins"),
    [
        ("report.html", (), "<!doctype html>"),
        ("report.md", (), "# qwen3-coder-next"),
        ("report.json", (), "{"),
        ("report", ("--format", "md"), "# qwen3-coder-next"),
        ("report.md", ("--format", "json"), "{"),
    ],
)
def test_the_ending_or_the_format_says_what_is_written(
    tmp_path: Path, name: str, words: tuple[str, ...], begins: str
) -> None:
    run = tmp_path / "run.json"
    run.write_text(listed(latency()), encoding="utf-8")
    assert call(str(run), "-o", str(tmp_path / name), *words) == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ('{"kind": "List", "items": []}', "report.html"),
        ('{"kind": ', "report.html"),
        ('{"kind": "BenchmarkRun"}', "report.html"),
        pytest.param(listed(latency()), "report.pdf", id="pdf"),
    ],
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, out: str, says: Says
) -> None:
    file = tmp_path / "run.json"
    file.write_text(text, encoding="utf-8")
    assert call(str(file), "-o", str(tmp_path / out)) == 1
    says(capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_file_of_a_deployment_and_its_runs_is_a_page_about_the_deployment(tmp_path: Path) -> None:
    """As `kubectl get specdep,bench,benchround,controllerrevisions -o yaml` writes it; a run of another deployment
    stays a run."""
    world = both_promoted()
    kinds = ("SpeculativeDeployment", "BenchmarkRun", "BenchmarkRound", "ControllerRevision")
    items = [one for kind in kinds for one in world.cluster.of(kind)]
    (tmp_path / "all.yaml").write_text(listed(*items, latency()))
    assert call(str(tmp_path / "all.yaml"), "-o", str(tmp_path / "report.json")) == 0
    found = json.loads((tmp_path / "report.json").read_text())
    (deployment,) = found["deployments"]
    evidence = [pool["evidence"] for pool in deployment["pools"]]
    assert [run["name"] for run in found["runs"]] == [*evidence, latency()["metadata"]["name"]]
    assert deployment["pools"][0]["history"][0]["kept"] is True


def test_a_name_without_a_cluster_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert call("some-run", "-o", "-") == 1
    says(capsys.readouterr().err)


# In the cluster.


@pytest.fixture
async def cluster() -> MemoryApi:
    """Two pools of one deployment, one of them measured twice."""
    api = MemoryApi(Cluster(kinds=RECONCILED_KINDS))
    pools = [{"name": "throughput"}, {"name": "latency"}]
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    deployment = {"kind": "SpeculativeDeployment", "metadata": {"name": "qwen3-coder-next"}, "spec": {"pools": pools}}
    again = latency()
    again["metadata"]["name"] = again["metadata"]["name"].removesuffix("1") + "2"
    again["metadata"].setdefault("annotations", {})["paceline.dev/attempt"] = "2"
    for manifest in (deployment, throughput(), again, latency()):
        manifest["apiVersion"] = "paceline.dev/v1alpha1"
        manifest["metadata"] |= {"namespace": "models", "labels": {DEPLOYMENT_LABEL: "qwen3-coder-next"}}
        await api.create(manifest)
    return api


def names(runs: Sequence[dict[str, Any]]) -> list[str]:
    return [run["metadata"]["name"] for run in runs]


@pytest.mark.parametrize("name", ["qwen3-coder-next", "specdep/qwen3-coder-next"])
async def test_a_deployments_name_means_the_deployment_with_its_runs(cluster: MemoryApi, name: str) -> None:
    found = await source_named(cluster, "models", name)  # type: ignore[arg-type]
    (served,) = found.deployments
    assert [pool.name for pool in served.deployment.pools] == ["throughput", "latency"]
    assert len(served.runs) == 3
    assert (found.runs, served.revisions, served.unread) == ((), frozenset(), "")


@pytest.mark.parametrize("kind", ["", "bench/", "BenchmarkRun/"])
async def test_a_runs_name_means_that_run(cluster: MemoryApi, kind: str) -> None:
    run = "qwen3-coder-next-latency-5f0c9a1b2d-1"
    found = await source_named(cluster, "models", f"{kind}{run}")  # type: ignore[arg-type]
    assert (found.deployments, names(found.runs)) == ((), [run])


@pytest.mark.parametrize("name", ["nothing", "bench/qwen3-coder-next", "runs/of-mine"])
async def test_a_name_that_nothing_has_is_said(cluster: MemoryApi, name: str, says: Says) -> None:
    with pytest.raises(ValueError, match=f"^{name}: ") as refused:
        await source_named(cluster, "models", name)  # type: ignore[arg-type]
    says(refused.value)


# The plugin.


def test_kubectl_finds_the_plugin_and_it_reports(tmp_path: Path) -> None:
    plugin = Path(sys.executable).with_name("kubectl-paceline")
    assert os.access(plugin, os.X_OK)
    (tmp_path / "run.json").write_text(listed(demo()[0]))
    subprocess.run([plugin, "report", "run.json", "-o", "report.html"], cwd=tmp_path, check=True)
    assert "<!doctype html>" in (tmp_path / "report.html").read_text()


def test_the_plugin_has_the_gate_and_nothing_that_is_no_users(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.plugin(["gate", "--help"])
    assert ended.value.code == 0
    assert cli.plugin(["operator"]) == 2
    assert "usage: kubectl paceline gate" in capsys.readouterr().out


# What it costs.


@pytest.mark.parametrize("command", ["validate", "gate", "report"])
def test_no_command_imports_what_draws_before_it_is_asked_to(command: str) -> None:
    code = (
        "import contextlib, sys; from paceline.cli import main\n"
        f"with contextlib.suppress(SystemExit): main(['{command}', '--help'])\n"
        "sys.exit(bool({'matplotlib', 'jinja2'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    """The operator's image has neither matplotlib nor jinja2; Markdown and JSON do without."""
    (tmp_path / "run.json").write_text(listed(latency()))
    code = (
        "import sys; sys.modules |= {'matplotlib': None, 'jinja2': None}; from paceline.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    made = {
        form: subprocess.run(
            [sys.executable, "-c", code, "report", "run.json", "-o", f"report.{form}"],
            cwd=tmp_path, check=False, capture_output=True, text=True,
        )
        for form in ("html", "md", "json")
    }  # fmt: skip
    assert {form: done.returncode for form, done in made.items()} == {"html": 1, "md": 0, "json": 0}
    assert "pip install jinja2 matplotlib" in made["html"].stderr
