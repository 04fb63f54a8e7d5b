"""docs/migration.md on a full cluster: an emulated SGLang's Deployment is imported, and hands its GPUs over.

The commands are those of the document. Somebody asks the old Service all the time, each time over a connection of its
own, and writes down what came of it.
"""

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from tests.cluster.example import emulated
from tests.cluster.test_borrow import fill, ready
from tests.cluster.test_capacity import everywhere, holds_gpus
from tests.cluster.volumes import NO_XET, filled
from tests.support import followed
from tests.support.kubernetes import GPU, KUBECTL, STATE, Manifest, Namespace

from paceline.cli import main

OLD, CLAIM, MODEL = "qwen3-8b", "company-models", "/models/qwen/Qwen3-8B"
APP = {"app": OLD}
STARTS = 3.0
"""Seconds until an emulated server has loaded."""
ENDS = 5.0
"""Seconds that the old pod's preStop takes: by then no endpoint sends it anything."""
MARGIN = 25.0
"""Seconds for images, mounts, probes and endpoints on two cores beside other stories."""
DOWNLOAD = (
    'from huggingface_hub import snapshot_download as get; get("Qwen/Qwen3-8B", local_dir="/models/qwen/Qwen3-8B")'
)

ASKER = """
import json, time, urllib.request
url, body = "http://%s/v1/chat/completions", json.dumps({"model": "qwen3-8b", "max_tokens": 4,
    "messages": [{"role": "user", "content": "Hello"}]}).encode()
while True:
    begun, said = time.time(), ""
    try:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert json.load(answer)["choices"]
    except Exception as error:
        said = repr(error)
    print(json.dumps({"at": begun, "error": said}), flush=True)
    time.sleep(0.2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Of all requests since the asker began; `gap` is the longest time between two that were answered, in seconds."""

    answered: int
    errors: Sequence[str]
    gap: float


def heard(here: Namespace) -> Heard:
    """Since the first answer: the asker may be there before the Service is on its node."""
    lines = [json.loads(line) for line in here.logs("asker", "asker").splitlines()]
    lines = list(itertools.dropwhile(lambda line: line["error"], lines))
    times = [line["at"] for line in lines if not line["error"]]
    gaps = [after - before for before, after in pairwise(times)]
    errors = [line["error"] for line in lines if line["error"]]
    return Heard(answered=len(times), errors=errors, gap=max(gaps, default=0.0))


def deployment(replicas: int) -> Manifest:
    """As many people have it: a command, a claim, a probe, a preStop."""
    command = ["python3", "-m", "sglang.launch_server", "--model-path", MODEL, "--served-model-name", "qwen3-8b"]
    server = {
        "name": "sglang",
        "image": "localhost/paceline-sglang-emulator:dev",
        "imagePullPolicy": "IfNotPresent",
        "command": [*command, "--host", "0.0.0.0", "--port", "30000", "--attention-backend", "flashinfer"],
        "env": emulated(STARTUP_SECONDS=str(STARTS)),
        "ports": [{"containerPort": 30000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 30000}, "periodSeconds": 1, "timeoutSeconds": 5},
        "lifecycle": {"preStop": {"sleep": {"seconds": int(ENDS)}}},
        "resources": {"limits": {GPU: 1}},
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
    }
    pod = {
        "containers": [server],
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
        "terminationGracePeriodSeconds": 20,
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": CLAIM}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": OLD},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": APP},
            "template": {"metadata": {"labels": APP}, "spec": pod},
        },
    }


def asked(here: Namespace) -> None:
    ports = [{"port": 80, "targetPort": 30000}]
    here.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": OLD}, "spec": {"selector": APP, "ports": ports}}
    )
    here.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "asker"},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "asker",
                        "image": "localhost/paceline:dev",
                        "command": ["python", "-c", ASKER % f"{OLD}.{here.name}.svc"],
                    }
                ],
            },
        }
    )
    here.wait("the first answers", lambda: heard(here).answered >= 3, 60)


def follow(here: Namespace, directory: Path, *numbers: int) -> None:
    """These steps, in the story's namespace."""
    kubectl = f"{KUBECTL} --kubeconfig {STATE / 'kubeconfig'} --namespace {here.name}"
    done = followed.follow(directory, kubectl, *numbers, old=OLD, name="qwen", seconds=200)
    if done.returncode:
        here.fail(f"steps {numbers}: {done.stdout}\n{done.stderr}")


def imported(here: Namespace, directory: Path) -> Manifest:
    """Step 1, with the options that this Deployment needs."""
    (directory / "old.yaml").write_text(here.kubectl("get", "deployment", OLD, "-o", "yaml"))
    out = subprocess.run(
        [sys.executable, "-m", "paceline.cli", "import", "old.yaml", "--name=qwen", "--engine-version=0.5.23"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    (directory / "new.yaml").write_text(out.stdout)
    assert main(["validate", str(directory / "new.yaml")]) == 0
    found: Manifest = yaml.safe_load(out.stdout)
    return found


@pytest.mark.parametrize("replicas", [2, 1])
@pytest.mark.timeout(300)
def test_it_hands_over(here: Namespace, hub: str, tmp_path: Path, nodes: tuple[str, str], replicas: int) -> None:
    here.wait("other stories to give their GPUs back", lambda: not any(map(holds_gpus, everywhere())), 120)
    filled(here, CLAIM, DOWNLOAD, {"HF_ENDPOINT": hub, "HOME": "/tmp", **NO_XET})
    here.apply(deployment(replicas))
    here.kubectl("rollout", "status", f"deployment/{OLD}", "--timeout=60s")
    fill(here, nodes)
    asked(here)

    manifest = imported(here, tmp_path)
    assert manifest["spec"]["target"]["source"] == f"pvc://{CLAIM}/qwen/Qwen3-8B"
    before = uids(here)
    follow(here, tmp_path, 2)
    assert uids(here) == before
    assert heard(here).errors == []

    follow(here, tmp_path, 4)
    after = [pod for pod in here.list("pods", f"app={OLD}") if ready(pod)]
    assert len(after) == replicas
    assert {pod["metadata"]["labels"]["paceline.dev/deployment"] for pod in after} == {"qwen"}
    counted = heard(here).answered
    here.wait("more answers", lambda: heard(here).answered > counted + 5, 30)
    found = heard(here)
    print(f"{replicas} replicas: {found.answered} answers, {len(found.errors)} errors, longest gap {found.gap:.1f} s")
    if replicas > 1:
        assert found.errors == []
        assert found.gap < STARTS
    else:
        assert STARTS < found.gap < ENDS + STARTS + MARGIN
    follow(here, tmp_path, 6)
    assert {pod["metadata"]["uid"] for pod in here.list("pods", f"app={OLD}")} == {
        one["metadata"]["uid"] for one in after
    }


def uids(here: Namespace) -> set[str]:
    return {pod["metadata"]["uid"] for pod in here.list("pods", f"app={OLD}")}
