"""Deployments as they stand in public documents: what is printed is a golden file, validates, and starts the same."""

import io
import json
import re
from pathlib import Path

import pytest
import yaml
from tests.support import golden
from tests.support.migration import CASES, HUB, Case, Manifest, arguments, container, served, started

from paceline.cli import main
from paceline.cli.manifests import ours

HERE = Path(__file__).parent
DOCS = Path(__file__).parents[3] / "docs" / "migration.md"

DIFFERENT = {
    "--model-path": "the directory of the model's commit on the cache, below /models",
    "--model": "the directory of the model's commit on the cache, below /models",
    "--served-model-name": "always given: what you gave, or the model's name, which the engine takes by itself",
    "--host": "always 0.0.0.0",
    "--port": "always 30000 on SGLang, 8000 on vLLM",
    "--tp-size": "always given: what you gave, or 1, the engine's default",
    "--tensor-parallel-size": "always given: what you gave, or 1, the engine's default",
    "--random-seed": "always 0, or two starts of one configuration would differ",
    "--seed": "always 0, or two starts of one configuration would differ",
    "--enable-metrics": "always given: SGLang counts nothing without it",
    "--decode-log-interval": "always 10, or the tail of a short workload would be lost",
    "--max-running-requests": "always given: what you gave, or 48, or twice the largest concurrency if that is more",
    "--max-num-seqs": "always given: what you gave, or 48, or twice the largest concurrency if that is more",
    "--override-generation-config": "always given: what you gave, or `min_p` 0, as vLLM refuses another when it drafts",
    "--shutdown-timeout": "always given: what you gave, or 120, as vLLM would abort the requests under way",
    "--api-key": "the key of a Secret: on vLLM in the environment, not here",
    "--speculative-*": "in the candidate's command, not in the baseline's",
}
"""Flag → what it is in every server of Paceline, and why."""
AS_GIVEN = ("--tp-size", "--tensor-parallel-size", "--served-model-name", "--max-running-requests", "--max-num-seqs")
"""Those of them that are as the Deployment has them where it has them."""


def imported(case: Case, capsys: pytest.CaptureFixture[str], *more: str, fails: bool = False) -> str:
    code = main(["import", str(case.file), *case.options, *more])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "") or fails, said.err
    return said.out


def resource(case: Case, capsys: pytest.CaptureFixture[str], *more: str) -> Manifest:
    found: Manifest = yaml.safe_load(imported(case, capsys, *more))
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_printed(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """With its comments, which are what a person has to do."""
    text = imported(case, capsys)
    path = HERE / "golden" / f"{case}.yaml"
    if golden.WRITE:
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_validates(case: Case, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "imported.yaml"
    file.write_text(imported(case, capsys))
    assert main(["validate", str(file)]) == 0
    assert [one["kind"] for one in ours(str(file))] == ["SpeculativeDeployment"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_baseline_starts_with_the_same_arguments(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """But for those that stand in the table, with why."""
    before = arguments(case.flags, case.command)
    after = started(case, served(resource(case, capsys)))
    same = [name for name in before if name in AS_GIVEN or not is_different(name)]
    assert {name: after.get(name) for name in same} == {name: before[name] for name in same}
    assert [name for name in after if name not in same and not is_different(name)] == []
    assert after["--model-path" if "--model-path" in after else "--model"] == (case.model,)
    assert not any(name.startswith("--spec") for name in after)


def is_different(name: str) -> bool:
    return any(name == row or (row.endswith("*") and name.startswith(row[:-1])) for row in DIFFERENT)


@pytest.mark.parametrize("case", [case for case in CASES if "speculative" in case.command], ids=str)
def test_the_candidate_speculates_as_the_deployment_did(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """Heads are read at their paths on the cache."""
    before = {k: v for k, v in arguments(case.flags, case.command).items() if k.startswith("--spec")}
    after = {
        k: v for k, v in started(case, served(resource(case, capsys), "current")).items() if k.startswith("--spec")
    }
    assert after.keys() == before.keys()
    (head,) = {"--speculative-config", "--speculative-draft-model-path"} & before.keys()
    assert {name: after[name] for name in after if name != head} == {k: v for k, v in before.items() if k != head}
    (was,), (now,) = before[head], after[head]
    if was.startswith("{"):
        was, now = json.loads(was), json.loads(now)
        assert {**now, "model": was["model"]} == was
        was, now = was["model"], now["model"]
    assert now in (was, HUB.format(was.replace("/", "--")))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_secret_is_printed(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert not re.search(r"hf_not_a_real_one|sk-not-a-real-one", imported(case, capsys))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_of_kubectls_noise_is_left(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = resource(case, capsys)
    assert set(manifest) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(manifest["metadata"]) <= {"name", "namespace"}
    assert "terminationMessagePath" not in str(manifest)
    assert "default-scheduler" not in str(manifest)


def test_it_disturbs_nothing_when_it_is_applied(capsys: pytest.CaptureFixture[str]) -> None:
    """No server, no round: servers outrank pods without a priority and would take their GPUs."""
    spec = resource(CASES[1], capsys)["spec"]
    assert (spec["suspend"], [pool["replicas"] for pool in spec["pools"]]) == (True, [0])


def test_live_has_the_deployments_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    spec = resource(CASES[1], capsys, "--live")["spec"]
    assert ("suspend" in spec, [pool["replicas"] for pool in spec["pools"]]) == (False, [3])


def test_what_the_measurement_will_cost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`paceline import FILE --live | paceline plan -`"""
    monkeypatch.setattr("sys.stdin", io.StringIO(imported(CASES[1], capsys, "--live")))
    assert main(["plan", "-"]) == 0
    assert re.search(r"\nmain +4-8 +4-8 ", capsys.readouterr().out)


def test_the_old_service_finds_the_new_pods(capsys: pytest.CaptureFixture[str]) -> None:
    """Their labels are carried over, and the port is the same where it was the engine's own."""
    template = served(resource(CASES[1], capsys))
    assert template["metadata"]["labels"].items() >= {"app": "mistral-7b"}.items()
    assert container(template)["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]


def test_what_is_more_than_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the script: placement, resources, shared memory, secrets, the files beside the models."""
    template = served(resource(CASES[4], capsys))
    server, spec = container(template), template["spec"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200", "topology.example.com/rack": "a"}
    assert [one["key"] for one in spec["tolerations"]] == ["nvidia.com/gpu", "dedicated"]
    assert server["resources"]["limits"] == {"nvidia.com/gpu": "4", "memory": "512Gi", "rdma/hca": "1"}
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}} in spec["volumes"]
    mounts = {mount["mountPath"]: mount["name"] for mount in server["volumeMounts"]}
    assert mounts.items() >= {"/models": "models", "/wheels": "wheels", "/dev/shm": "shm"}.items()
    assert {"name": "models", "persistentVolumeClaim": {"claimName": "company-models"}} in spec["volumes"]
    keys = {one["name"]: one.get("valueFrom", one.get("value")) for one in server["env"]}
    assert keys["PACELINE_API_KEY"] == {"secretKeyRef": {"name": "clients", "key": "key"}}
    assert keys["NCCL_DEBUG"] == "WARN"
    assert spec["terminationGracePeriodSeconds"] == 600


def test_the_table_of_the_document_is_this() -> None:
    rows = re.findall(r"^\| (`--[^|]+`) \| (.+?) \|$", DOCS.read_text(), re.MULTILINE)
    assert {flag: said for flags, said in rows for flag in re.findall("`([^`]+)`", flags)} == DIFFERENT
