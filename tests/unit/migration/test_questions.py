"""What a Deployment does not say is asked for, with the option that answers; exit codes as other commands have them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says
from tests.support.migration import CASES, Manifest

from paceline.cli import main

LLAMA, MISTRAL, STACK, AIBRIX, SCRIPT = CASES
Change = Callable[[Manifest], object]


def pod(deployment: Manifest) -> Manifest:
    found: Manifest = deployment["spec"]["template"]["spec"]
    return found


def engine(deployment: Manifest) -> Manifest:
    found: Manifest = pod(deployment)["containers"][0]
    return found


def without(holder: Manifest, *names: str) -> None:
    for name in names:
        holder.pop(name)


def run(tmp_path: Path, deployment: Any, *options: str) -> int:
    file = tmp_path / "d.yaml"
    file.write_text(deployment if isinstance(deployment, str) else yaml.safe_dump(deployment))
    return main(["import", str(file), *options])


@pytest.mark.parametrize(
    ("case", "change", "option"),
    [
        (LLAMA, lambda d: None, "--engine-version"),
        (MISTRAL, lambda d: engine(d).update(image="own/serving:1.2.3"), "--engine-version"),
        (MISTRAL, lambda d: engine(d).update(image="vllm/vllm-openai@sha256:0"), "--engine-version"),
        (MISTRAL, lambda d: without(pod(d), "nodeSelector"), "--product"),
        (MISTRAL, lambda d: engine(d).update(resources={"limits": {"nvidia.com/gpu": "1000m"}}), "--gpus"),
        (MISTRAL, lambda d: without(engine(d), "resources"), "--gpus"),
        (AIBRIX, lambda d: None, "--target"),
        (AIBRIX, lambda d: engine(d).update(volumeMounts=[]), "--target"),
        (MISTRAL, lambda d: engine(d).update(args=["vllm serve gpt2"]), "--target"),
        (MISTRAL, lambda d: engine(d).update(args=["vllm serve --dtype auto"]), "--target"),
        (MISTRAL, lambda d: engine(d).update(command=["vllm"], args=["serve", "a/b", "-tp", "$(TP)"]), ""),
        (MISTRAL, lambda d: engine(d).update(args=["vllm serve a/b -tp $TP"]), ""),
        (MISTRAL, lambda d: engine(d).update(command=["nginx"]), ""),
        (MISTRAL, lambda d: d.update(kind="StatefulSet"), ""),
    ],
)
def test_what_is_asked(
    case: Any, change: Change, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    deployment = case.deployment
    change(deployment)
    assert run(tmp_path, deployment) == 1
    said = capsys.readouterr()
    assert option in said.err
    assert said.out == ""
    says(*said.err.splitlines())


def test_the_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--engine-version=0.5.23", "--product=NVIDIA-H200", "--gpus=2", "--name=llama", "--pool=chat"]
    options += ["--target=pvc://weights/llama", "--head=pvc://weights/head", "--concurrency=2,4"]
    assert run(tmp_path, LLAMA.deployment, *options) == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert (spec["target"]["source"], spec["target"]["servedName"]) == (
        "pvc://weights/llama",
        "meta-llama/Llama-3.1-8B-Instruct",
    )
    assert spec["draft"] == {"algorithm": "EAGLE3", "source": "pvc://weights/head"}
    assert spec["accelerator"] == {"product": "NVIDIA-H200", "count": 2, "tensorParallelSize": 1}
    assert spec["cache"] == {"claimName": "weights"}
    (pool,) = spec["pools"]
    assert (pool["name"], pool["load"]) == ("chat", [{"concurrency": [2, 4]}])
    assert [one["name"] for one in spec["candidates"]] == ["three", "five"]


def test_a_number_that_is_given_is_not_asked_of_the_deployment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = MISTRAL.deployment
    engine(deployment)["resources"] = {"limits": {"nvidia.com/gpu": "1000m"}}
    deployment["spec"]["replicas"] = None
    assert run(tmp_path, deployment, "--gpus=1", "--live") == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert (spec["accelerator"]["count"], spec["pools"][0]["replicas"]) == (1, 1)


def test_a_head_is_compared_beside_the_one_that_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, STACK.deployment, "--head=hf://a/other") == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert spec["draft"]["source"] == "hf://a/other"
    drafts = {one["name"]: one.get("draft", {}).get("source") for one in spec["candidates"]}
    assert drafts == {"current": "hf://yuhuili/Eagle3-Qwen3-30B-A3B", "three": None, "five": None}


def test_what_the_engine_would_refuse_is_said_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = MISTRAL.deployment
    engine(deployment)["args"] = ["vllm serve a/b --max-num-seqs 8 --max-model-len many"]
    assert run(tmp_path, deployment) == 1
    said = capsys.readouterr()
    assert "spec.engine.args[2]: --max-model-len" in said.err
    assert "# To do: spec.engine.args[2]: --max-model-len" in said.out
    assert yaml.safe_load(said.out)["spec"]["pools"][0]["load"] == [{"concurrency": [1, 8]}]


def test_a_key_that_is_written_out_does_not_leave_the_server_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, AIBRIX.deployment, "--target=hf://a/b") == 1
    said = capsys.readouterr()
    assert "spec.engine.apiKeySecretRef: --api-key … " in said.err
    assert "sk-not" not in said.out + said.err


def test_a_list_is_imported_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    """As `kubectl get deployments -A -o yaml` prints it; others are passed over."""
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    found = {"apiVersion": "v1", "kind": "List", "items": [other, MISTRAL.deployment, STACK.deployment]}
    assert run(tmp_path, found) == 0
    names = [one["metadata"]["name"] for one in yaml.safe_load_all(capsys.readouterr().out)]
    assert names == ["mistral-7b", "vllm-qwen3-deployment-vllm"]
    assert run(tmp_path, found, "--name=both") == 1
    says(capsys.readouterr().err)


def test_another_deployments_script_stops_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in a List of all Deployments of a cluster. One that would start an engine is named."""
    other, odd = STACK.deployment, LLAMA.deployment
    engine(other).update(command=["sh", "-c"], args=["echo 'without end"])
    assert run(tmp_path, {"kind": "List", "items": [other, MISTRAL.deployment]}) == 0
    engine(odd).update(command=["sh", "-c"], args=["vllm serve 'a/b"])
    assert run(tmp_path, {"kind": "List", "items": [odd, MISTRAL.deployment]}) == 1
    said = capsys.readouterr()
    assert f"Deployment {odd['metadata']['name']}: containers[" in said.err
    assert "name: mistral-7b" in said.out


def test_a_model_that_only_a_file_names_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = MISTRAL.deployment
    engine(deployment)["args"] = ["vllm serve --config /own/config.yaml"]
    assert run(tmp_path, deployment, "--target=hf://a/b") == 0
    said = capsys.readouterr().out
    assert yaml.safe_load(said)["spec"]["target"] == {"source": "hf://a/b", "servedName": "a/b"}
    assert "# * --config /own/config.yaml: " in said


def test_a_model_of_another_hub(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    deployment = MISTRAL.deployment
    engine(deployment)["env"] = [{"name": "VLLM_USE_MODELSCOPE", "value": "True"}]
    assert run(tmp_path, deployment) == 1
    says(capsys.readouterr().err)


def test_the_topology_of_tpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = MISTRAL.deployment
    labels = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "2x2"}
    pod(deployment)["nodeSelector"] = labels
    words = "python -m sgl_jax.launch_server --model-path a/b --tp-size 4 --disable-overlap-schedule"
    engine(deployment).update(args=[words], resources={"limits": {"google.com/tpu": 4}}, image="sglang-jax:0.0.2")
    run(tmp_path, deployment, "--head=hf://a/head")
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert (spec["accelerator"]["product"], spec["accelerator"]["topology"]) == ("tpu-v6e-slice", "2x2")
    assert "nodeSelector" not in spec


def test_a_claim_on_devices_is_not_taken_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = MISTRAL.deployment
    pod(deployment)["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    engine(deployment)["resources"] = {"claims": [{"name": "gpu"}]}
    assert run(tmp_path, deployment, "--gpus=1") == 0
    said = capsys.readouterr().out
    assert "resourceClaims" not in said
    assert "spec.accelerator.deviceClassName" in said


def test_what_else_is_not_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = MISTRAL.deployment
    deployment["metadata"].update(name="7b.mistral", annotations={"a/b": "red\x1b[31m"})
    deployment["spec"]["revisionHistoryLimit"] = 3
    engine(deployment).update(
        image="own/team-vllm:2.1.0", ports=[{"containerPort": 8000, "name": "api", "hostPort": 8000}]
    )
    pod(deployment)["containers"].append({"name": "second", "image": "vllm/vllm-openai:v0.33.0", "args": ["a/b"]})
    assert run(tmp_path, deployment) == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["metadata"]["name"] == "b-mistral"
    said = " ".join(printed.replace("#", "").split())
    for part in (
        "metadata.name 7b.mistral: becomes b-mistral",
        "spec.revisionHistoryLimit: 3 ",
        "image own/team-vllm:2.1.0: ",
        "ports[api]: the port is called http ",
        "ports[api].hostPort: 8000 ",
        "containers[second]: ",
    ):
        assert part in said, part


def test_a_file_that_a_candidate_names_stays_mounted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deployment = SCRIPT.deployment
    words = "--model-path /data/qwen --speculative-algorithm EAGLE --speculative-draft-model-path /data/head "
    words += "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-token-map /data/map.pt"
    mounts = [{"name": "models", "mountPath": "/data"}]
    engine(deployment).update(args=[f"sglang serve {words}"], command=["sh", "-c"], volumeMounts=mounts)
    assert run(tmp_path, deployment) == 0
    (server,) = yaml.safe_load(capsys.readouterr().out)["spec"]["engine"]["podTemplate"]["spec"]["containers"]
    assert server["volumeMounts"] == [{"name": "own-models", "mountPath": "/data", "readOnly": True}]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: engine(d).update(env=[{"value": "1"}]),
        lambda d: engine(d).update(resources={"limits": {"nvidia.com/gpu": "some"}}),
        lambda d: pod(d).update(volumes=["models"]),
        lambda d: pod(d).update(containers={"name": "server"}),
        lambda d: d.update(spec=[]),
        lambda d: engine(d).update(args=['vllm serve a/b --speculative-config \'{"num_speculative_tokens": "4"}\'']),
    ],
)
def test_what_no_api_server_has_taken_ends_in_a_line(
    change: Change, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deployment = MISTRAL.deployment
    change(deployment)
    assert run(tmp_path, deployment) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("text", ["a: [", "a: 1\na: 2\n", "kind: Deployment\napiVersion: apps/v1\nspec: {}\n", "- 1\n"])
def test_a_file_that_is_none(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, text) == 1
    assert capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "/nowhere.yaml"]) == 1
    assert "/nowhere.yaml: [Errno 2]" in capsys.readouterr().err
