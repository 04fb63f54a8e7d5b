"""`paceline import deployment/NAME` on a real cluster: containerd's exec, a kubelet's environment, rights of RBAC."""

import json
import subprocess
import sys
from pathlib import Path

import yaml
from tests.cluster.example import emulated
from tests.support.kubernetes import STATE, Manifest, Namespace

NAME, KEY = "llm", "canary-of-the-key-0123456789"
CONFIG = {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 36, "vocab_size": 151936}
SCRIPT = f"""
cd /tmp; mkdir -p qwen/q; echo '{json.dumps(CONFIG)}' > qwen/q/config.json
if [ -n "$KEY" ]; then KEYS="--api-key $KEY"; fi
python3 -m sglang.launch_server --model-path qwen/q --served-model-name q --tokenizer-path qwen/q $KEYS
"""
SERVER = {
    "name": "server",
    "image": "localhost/paceline-sglang-emulator:dev",
    "imagePullPolicy": "IfNotPresent",
    "command": ["sh", "-c", SCRIPT],
    "env": [*emulated(), {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}],
}
ANSWERS = ("--target=hf://Qwen/Qwen3-8B", "--engine-version=0.5.23", "--product=NVIDIA-H200", "--gpus=1")


LOG = {"name": "log", "image": SERVER["image"], "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1000"]}
"""Process 1 is pause, and each container sees the processes of both."""


def paceline(here: Namespace, kubeconfig: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paceline.cli", "import", f"deployment/{NAME}", "-n", here.name]
    command += [*ANSWERS, "--kubeconfig", str(kubeconfig), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def as_a_viewer(here: Namespace, folder: Path) -> Path:
    """A kubeconfig of who may read pods, and not exec into them."""
    here.kubectl("create", "serviceaccount", "viewer")
    here.kubectl("create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={here.name}:viewer")
    config = yaml.safe_load((STATE / "kubeconfig").read_text())
    config["users"] = [{**one, "user": {"token": here.kubectl("create", "token", "viewer")}} for one in config["users"]]
    (folder / "viewer").write_text(yaml.safe_dump(config))
    return folder / "viewer"


def test_the_words_of_a_running_server_are_imported_by_who_may_exec(here: Namespace, tmp_path: Path) -> None:
    here.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"api": KEY}})
    here.apply(deployment())
    here.kubectl("rollout", "status", f"deployment/{NAME}", "--timeout=60s")

    done = paceline(here, STATE / "kubeconfig")
    assert done.returncode == 0, done.stderr
    spec = yaml.safe_load(done.stdout)["spec"]
    assert spec["target"]["servedName"] == "q"
    assert spec["engine"]["args"] == ["--tokenizer-path", "/tmp/qwen/q"]
    assert spec["engine"]["apiKeySecretRef"] == {"name": "keys", "key": "api"}
    assert KEY not in done.stdout

    other = paceline(here, STATE / "kubeconfig", "-c", "log")
    assert (other.returncode, other.stdout) == (1, "")
    assert "does not run in container log: name its own with -c" in other.stderr

    refused = paceline(here, as_a_viewer(here, tmp_path))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"no permission to get pods/exec in namespace {here.name}: ask for get and create" in refused.stderr


def deployment() -> Manifest:
    labels = {"app": NAME}
    pod = {"containers": [LOG, SERVER], "shareProcessNamespace": True, "terminationGracePeriodSeconds": 1}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec}
