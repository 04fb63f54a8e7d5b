"""A SpeculativeDeployment of the real SGLang server in the local cluster, and what the operator makes of it."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.sglang.run import Run

ROOT = Path(__file__).parents[2]
NAMESPACE = "paceline-sglang"
PATIENCE_SECONDS = 900
POST = """
import sys, urllib.request
url, body = sys.argv[1:]
request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""

PARITY = {"samples": 4, "maxTokens": 24}

told: list[str] = []
"""What was seen, for the report at the end."""


def kubectl(*arguments: str, feed: str | None = None) -> str:
    command = ["kubectl", "--namespace", NAMESPACE, *arguments]
    done = subprocess.run(command, input=feed, capture_output=True, text=True)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def get(what: str, *more: str) -> Any:
    return json.loads(kubectl("get", what, *more, "-o", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed(Run):
    """The run, and the deployment as it stood once the pool had a verdict and served what it says."""

    name: str
    deployment: Mapping[str, Any]

    @property
    def pool(self) -> Mapping[str, Any]:
        pool: Mapping[str, Any] = self.deployment["status"]["pools"][0]
        return pool

    def chat(self, message: str) -> dict[str, Any]:
        """Ask the pool's Service for eight tokens, from another pod, by the address in status."""
        request = {"model": "tiny-llama", "max_tokens": 8, "messages": [{"role": "user", "content": message}]}
        url = f"{self.pool['endpoint']}/v1/chat/completions"
        answer: dict[str, Any] = json.loads(
            kubectl("exec", "deployment/hub", "--", "python", "-c", POST, url, json.dumps(request))
        )
        return answer


def tiny(name: str, parity: Mapping[str, Any] | None = None, **environment: str) -> dict[str, Any]:
    """dev/sglang/deployment.yaml with this environment for its servers: random models, which the hub serves."""
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "dev/sglang/deployment.yaml").read_text())
    manifest["metadata"]["name"] = name
    manifest["spec"]["cache"]["hostPath"] = os.environ["SGLANG_DIR"]
    manifest["spec"]["engine"]["env"] += [{"name": key, "value": value} for key, value in environment.items()]
    if parity:
        manifest["spec"].setdefault("benchmark", {})["parity"] = dict(parity)
    return manifest


def trained() -> dict[str, Any]:
    """dev/sglang/trained.yaml: models that were trained, on a claim that is bound to SGLang's directory."""
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "dev/sglang/trained.yaml").read_text())
    return manifest


def claim_of_the_directory(name: str) -> Iterator[None]:
    """A claim of this name on SGLang's directory, which is on this machine and so on every node."""
    access = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{NAMESPACE}-{name}"},
        "spec": {
            **access,
            "capacity": {"storage": "20Gi"},
            "claimRef": {"namespace": NAMESPACE, "name": name},
            "hostPath": {"path": os.environ["SGLANG_DIR"]},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**access, "resources": {"requests": {"storage": "20Gi"}}},
    }
    for each in (volume, claim):
        kubectl("apply", "-f", "-", feed=json.dumps(each))
    yield
    kubectl("delete", "pvc", name, "--wait=false")
    kubectl("delete", "pv", f"{NAMESPACE}-{name}", "--wait=false")


def deployed(manifest: Mapping[str, Any], patience_seconds: float = PATIENCE_SECONDS) -> Iterator[Deployed]:
    """Apply it, wait until its pool serves what its verdict says, and take it away."""
    name = manifest["metadata"]["name"]
    kubectl("apply", "-f", "-", feed=json.dumps(manifest))
    try:
        decided = _wait(name, patience_seconds)
        told.extend(_report(decided))
        yield decided
    finally:
        kubectl("delete", "specdep", name)
        kubectl("wait", "pod", "--selector", f"paceline.dev/deployment={name}", "--for=delete", "--timeout=180s")


def _wait(name: str, patience_seconds: float) -> Deployed:
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        deployment = get("specdep", name)
        status = deployment.get("status") or {}
        pool: Mapping[str, Any] = next(iter(status.get("pools", ())), {})
        if any(said["type"] == "Stalled" and said["status"] == "True" for said in status.get("conditions", ())):
            break
        if (
            "verdict" in pool
            and pool["serving"]["revision"] == pool["internal"]["target"]["revision"]
            and pool["readyReplicas"]
        ):
            return Deployed(name=name, deployment=deployment, run=get("bench", pool["verdict"]["evidence"]["run"]))
        time.sleep(2)
    raise AssertionError("\n".join([f"{name} did not get there:", *_diagnosis()]))


def _diagnosis() -> Iterator[str]:
    """What a person would look at next, before the namespace is gone."""
    yield yaml.safe_dump([(item["metadata"]["name"], item.get("status")) for item in get("specdep,bench")["items"]])
    yield kubectl("get", "pods", "-o", "wide")
    yield kubectl("get", "events", "--sort-by=.metadata.creationTimestamp")
    for pod in kubectl("get", "pods", "-o", "name").split():
        yield kubectl("logs", pod, "--all-containers", "--prefix", "--tail=30", "--ignore-errors")


def _report(found: Deployed) -> Iterator[str]:
    status = found.run["status"]
    emulated = "emulated" if status["emulated"] else "not emulated"
    yield f"{found.name}: engine {status['engineVersion']}, {emulated}, on {status['node']}"
    baseline = found.resolved("baseline")[0]
    candidates = [arm for arm in found.run["spec"]["arms"] if arm["name"] != "baseline"]
    for arm in (each["name"] for each in candidates):
        resolved = found.resolved(arm)[0]
        differing = {key for key in resolved if resolved[key] != baseline.get(key)}
        equal = ", ".join(f"{key}={value}" for key, value in sorted(resolved.items()) if key not in differing)
        yield f"  resolved alike: {equal}"
        for key in sorted(differing):
            yield f"  resolved apart: {key}: baseline {baseline.get(key)}, {arm} {resolved[key]}"
    for one in found.rounds:
        starts = {each["arm"]: each.get("startSeconds", "-") for each in one["replicates"]}
        for point in one["points"]:
            yield (
                f"  round {one['round'] + 1} {point['arm']} {point['workload']}: ready after {starts[point['arm']]} s, "
                f"{point.get('outputTokens', '-')} tokens at {point.get('outputThroughput', '-')} tok/s, "
                f"acceptance length {point.get('acceptLength', '-')}, verify calls {point.get('verifyCalls', '-')}, "
                + ("valid" if point["valid"] else f"invalid: {point['why']}")
            )
    for arm in candidates if "parity" in found.run["spec"]["gate"] else ():
        yield f"  answers of {arm['name']}: {found.parity(arm['name'])}"
    for result in status["results"]:
        length = f", acceptance length {result['acceptLength']}" if "acceptLength" in result else ""
        interval = f"{result['ratio']}x ({result['lower']} to {result['upper']})"
        yield f"  result {result['arm']} {result['workload']}: {interval}{length}"
    verdict = status["verdict"]
    yield f"  verdict {verdict['outcome']}, {verdict['reason']}, {len(found.rounds)} round(s): {verdict['message']}"
    yield f"  serves {found.pool['serving']['arm']} at {found.pool['endpoint']}"
