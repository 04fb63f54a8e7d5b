"""A SpeculativeDeployment of the real SGLang server in the local cluster, and what the operator makes of it."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

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
class Deployed:
    """The two resources as they stood once the pool had a verdict and served what it says."""

    name: str
    deployment: Mapping[str, Any]
    run: Mapping[str, Any]

    @property
    def pool(self) -> Mapping[str, Any]:
        pool: Mapping[str, Any] = self.deployment["status"]["pools"][0]
        return pool

    @property
    def rounds(self) -> Sequence[Mapping[str, Any]]:
        rounds: Sequence[Mapping[str, Any]] = self.run["status"]["rounds"]
        return rounds

    def points(self, arm: str) -> list[Mapping[str, Any]]:
        return [point for one in self.rounds for point in one["points"] if point["arm"] == arm]

    def parity(self, arm: str) -> list[Mapping[str, Any]]:
        """What became of this arm's answers, server by server."""
        return [each["parity"] for one in self.rounds for each in one["replicates"] if each["arm"] == arm]

    def resolved(self, arm: str) -> list[Mapping[str, str]]:
        """What each server of this arm said of its own arguments."""
        return [each["resolved"] for one in self.rounds for each in one["replicates"] if each["arm"] == arm]

    def chat(self, message: str) -> dict[str, Any]:
        """Ask the pool's Service for eight tokens, from another pod, by the address in status."""
        request = {"model": "tiny-llama", "max_tokens": 8, "messages": [{"role": "user", "content": message}]}
        url = f"{self.pool['endpoint']}/v1/chat/completions"
        answer: dict[str, Any] = json.loads(
            kubectl("exec", "deployment/hub", "--", "python", "-c", POST, url, json.dumps(request))
        )
        return answer


def deployed(name: str, parity: Mapping[str, Any] | None = None, **environment: str) -> Iterator[Deployed]:
    """Apply dev/sglang/deployment.yaml with this environment for its servers, wait for the end, and take it away."""
    manifest = yaml.safe_load((ROOT / "dev/sglang/deployment.yaml").read_text())
    manifest["metadata"]["name"] = name
    manifest["spec"]["cache"]["hostPath"] = os.environ["SGLANG_DIR"]
    manifest["spec"]["engine"]["env"] += [{"name": key, "value": value} for key, value in environment.items()]
    if parity:
        manifest["spec"].setdefault("benchmark", {})["parity"] = dict(parity)
    kubectl("apply", "-f", "-", feed=json.dumps(manifest))
    try:
        found = _wait(name)
        told.extend(_report(found))
        yield found
    finally:
        kubectl("delete", "specdep", name)
        kubectl("wait", "pod", "--selector", f"paceline.dev/deployment={name}", "--for=delete", "--timeout=180s")


def _wait(name: str) -> Deployed:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        deployment = get("specdep", name)
        status = deployment.get("status") or {}
        pool: Mapping[str, Any] = next(iter(status.get("pools", ())), {})
        if any(said["type"] == "Stalled" and said["status"] == "True" for said in status.get("conditions", ())):
            break
        if "verdict" in pool and pool["serving"]["revision"] == pool["target"]["revision"] and pool["readyReplicas"]:
            return Deployed(name=name, deployment=deployment, run=get("bench", pool["verdict"]["benchmarkRun"]))
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
    baseline, wide = found.resolved("baseline")[0], found.resolved("wide")[0]
    differing = {key for key in wide if wide[key] != baseline.get(key)}
    equal = ", ".join(f"{key}={value}" for key, value in sorted(wide.items()) if key not in differing)
    yield f"  resolved alike: {equal}"
    for key in sorted(differing):
        yield f"  resolved apart: {key}: baseline {baseline.get(key)}, wide {wide[key]}"
    for one in found.rounds:
        starts = {each["arm"]: each.get("startSeconds", "-") for each in one["replicates"]}
        for point in one["points"]:
            yield (
                f"  round {one['round'] + 1} {point['arm']} {point['workload']}: ready after {starts[point['arm']]} s, "
                f"{point.get('outputTokens', '-')} tokens at {point.get('outputThroughput', '-')} tok/s, "
                f"acceptance length {point.get('acceptLength', '-')}, verify calls {point.get('verifyCalls', '-')}, "
                + ("valid" if point["valid"] else f"invalid: {point['why']}")
            )
    for arm in ("baseline", "wide") if "parity" in found.run["spec"] else ():
        yield f"  answers of {arm}: {found.parity(arm)}"
    for result in status["results"]:
        length = f", acceptance length {result['acceptLength']}" if "acceptLength" in result else ""
        yield f"  result {result['arm']} {result['workload']}: {result['ratio']}x{length}"
    verdict = status["verdict"]
    yield f"  verdict {verdict['outcome']}, {verdict['reason']}, {len(found.rounds)} round(s): {verdict['message']}"
    yield f"  serves {found.pool['serving']['arm']} at {found.pool['endpoint']}"
