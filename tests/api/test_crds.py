"""The CRDs on a real API server: established, structural, with a status of its own and columns that tell the story."""

import json
from datetime import datetime
from typing import Any

import pytest
from tests.support.apiserver import Running
from tests.support.edits import EXAMPLE, example, example_run

from paceline.api import Cause, Reason
from paceline.api.crd import crds
from paceline.api.reasons import conditions_to_status as conditions_of
from paceline.core.record import to_status

NOW = "2026-11-21T12:00:00Z"
AT = datetime.fromisoformat(NOW)


def conditions(*marks: Cause) -> list[dict[str, Any]]:
    return [to_status(one) for one in conditions_of(marks, (), 1, AT)]


@pytest.fixture
def specdep(apiserver: Running) -> Any:
    name = example()["metadata"]["name"]
    apiserver.kubectl("apply", "--server-side", "-f", str(EXAMPLE))
    yield name
    apiserver.kubectl("delete", "specdep", name)


@pytest.fixture
def bench(apiserver: Running) -> Any:
    manifest = example_run()
    apiserver.kubectl("create", "-f", "-", given=manifest)
    yield manifest["metadata"]["name"]
    apiserver.kubectl("delete", "bench", manifest["metadata"]["name"])


def publish(apiserver: Running, plural: str, name: str, status: dict[str, Any]) -> dict[str, Any]:
    """Replaces the status alone, as the operator does it; returns what is stored."""
    patch = [{"op": "add", "path": "/status", "value": status}]
    apiserver.kubectl("patch", plural, name, "--subresource=status", "--type=json", "-p", json.dumps(patch))
    stored: dict[str, Any] = json.loads(apiserver.kubectl("get", plural, name, "-o", "json").stdout)
    return stored


@pytest.mark.parametrize("name", [crd["metadata"]["name"] for crd in crds()])
def test_the_crd_is_established_and_structural(apiserver: Running, name: str) -> None:
    stored = json.loads(apiserver.kubectl("get", "crd", name, "-o", "json").stdout)
    found = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
    assert found == {"NamesAccepted": "True", "Established": "True"}


def test_one_line_says_what_is_served_and_why(apiserver: Running, specdep: str) -> None:
    marks = [Cause(Reason.Serving), Cause(Reason.NothingToMeasure), Cause(Reason.AllPromoted)]
    status = {
        "observedGeneration": 1,
        "summary": "latency=wide 1.36x throughput=narrow 1.03x",
        "state": "Serving",
        "engine": "SGLang 0.5.23",
        "conditions": conditions(*marks),
    }
    publish(apiserver, "speculativedeployments", specdep, status)
    header, line = apiserver.kubectl("get", "specdep").stdout.splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "SUMMARY", "MEASURING", "AGE"]
    assert line.split()[:-1] == [specdep, "True", "Serving", *status["summary"].split(), "False"]
    wide = apiserver.kubectl("get", "specdep", "-o", "wide").stdout.splitlines()[1]
    assert wide.split()[-3:] == ["hf://Qwen/Qwen3-Coder-Next", "SGLang", "0.5.23"]
    assert specdep in apiserver.kubectl("get", "all").stdout


def test_status_and_spec_are_written_apart(apiserver: Running, specdep: str) -> None:
    stored = publish(apiserver, "speculativedeployments", specdep, {"summary": "latency=baseline"})
    assert stored["metadata"]["generation"] == 1
    apiserver.kubectl(
        "patch", "specdep", specdep, "--type=merge", "-p", '{"spec":{"suspend":true},"status":{"summary":""}}'
    )
    stored = json.loads(apiserver.kubectl("get", "specdep", specdep, "-o", "json").stdout)
    assert (stored["metadata"]["generation"], stored["status"]["summary"]) == (2, "latency=baseline")


def test_kubectl_waits_for_one_pool(apiserver: Running, specdep: str) -> None:
    """By the form of docs/automation.md; the other pool, and the whole, are not decided."""
    of_latency, of_both = conditions(Cause(Reason.AllDecided)), conditions(Cause(Reason.Undecided))
    pools = [{"name": "latency", "conditions": of_latency}, {"name": "throughput", "conditions": of_both}]
    publish(apiserver, "speculativedeployments", specdep, {"conditions": of_both, "pools": pools})
    form = """--for=jsonpath={.status.pools[?(@.name=="%s")].conditions[?(@.type=="Decided")].status}=True"""
    waited = apiserver.kubectl("wait", f"specdep/{specdep}", form % "latency", "--timeout=5s").stdout
    assert waited == f"speculativedeployment.paceline.dev/{specdep} condition met\n"
    late = apiserver.kubectl("wait", f"specdep/{specdep}", form % "throughput", "--timeout=1s", check=False)
    assert "timed out waiting for the condition" in late.stderr


EVIDENCE = {"run": "run-1", "speedup": "1.36", "caveats": ["Emulated"]}
POOL = {
    "name": "latency",
    "conditions": conditions(Cause(Reason.Serving)),
    "candidates": ["wide"],
    "gate": {"minImprovement": "5%", "decideAfterRounds": [4, 6, 8]},
    "serving": {"revision": "5d41402abc", "arm": "wide", "evidence": EVIDENCE, "startTime": NOW},
    "readyReplicas": 1,
    "endpoint": "http://qwen3-coder-next-latency.default.svc:80",
    "benchmarkRun": "run-1",
    "verdict": {
        "outcome": "Promote", "winner": "wide", "evidence": EVIDENCE, "lower": "1.34", "upper": "1.38",
        "message": "faster on every workload",
    },
    "holds": [
        {"revision": "5d41402abc", "reason": "NotReady", "startTime": NOW, "internal": {"deadlineSeconds": 1800}},
        {"revision": "", "reason": "Aborted", "startTime": NOW},
    ],
    "internal": {
        "target": {
            "revision": "5d41402abc", "arm": "wide", "evidence": EVIDENCE, "startTime": NOW,
            "fingerprint": "0123456789", "reason": "Promoted", "message": "proven",
        },
        "progress": {"step": "measure", "message": "round 3 of at most 8"},
        "handled": {"promote": "t1", "retry": "t3"},
        "attempts": 1,
    },
}  # fmt: skip
DEPLOYMENT_STATUS = {
    "observedGeneration": 1,
    "summary": "latency=wide 1.36x",
    "internal": {"volume": "qwen3-models"},
    "artifacts": [
        {
            "source": "hf://a/b",
            "revision": "main",
            "commit": "0" * 40,
            "internal": {"facts": {"hidden_size": 2048, "architectures": ["Qwen3NextForCausalLM"]}},
        },
        {"source": "hf://datasets/a/b/c.jsonl", "revision": "main", "commit": "0" * 40},
    ],
    "pools": [POOL],
}

# With every kind of field.
ROUND = {
    "round": 0,
    "try": 0,
    "job": "run-1-0-0",
    "node": "gpu-0",
    "startTime": NOW,
    "completionTime": NOW,
    "gpus": ["GPU-0", "GPU-1"],
    "gpuModel": "NVIDIA H200",
    "driver": "550.127.08",
    "image": "lmsysorg/sglang@sha256:00",
    "clientImage": "paceline@sha256:01",
    "paceline": "0.1.0",
    "heldSeconds": 1200,
    "idleSeconds": 120,
    "neighbours": ["team/train (4)"],
    "notes": ["results not kept: no space left"],
    "raw": {"path": "/models/.paceline/results/run/uid/0-0.jsonl.gz", "sha256": "ab" * 32, "bytes": 123_456},
    "engineVersion": "0.5.23",
    "emulated": True,
    "replicates": [
        {
            "arm": "baseline", "startSeconds": "13.2", "exitCode": 1, "error": "last useful line",
            "seconds": {"image": "31", "imports": "8.2", "weights": "2.8", "warmUp": "4.1", "loads": "9.3", "end": "5"},
            "resolved": {"attention_backend": "triton"}, "restSHA256": "ab" * 32, "kvTokens": 880_000,
            "clocks": {
                "smMHz": 1755, "mostSMMHz": 1980, "powerLimitWatts": 700, "celsius": 71,
                "throttled": [{"workload": "code@1", "reasons": ["SwPowerCap"], "percent": 43}],
            },
        }
    ],
    "points": [
        {
            "arm": "wide", "workload": "code@1", "valid": True, "why": "", "asked": 6, "completed": 6,
            "outputTokens": 576, "outputThroughput": "249.71", "steadyThroughput": "250.1", "meanTTFT": "0.041",
            "p95TTFT": "0.05", "meanTPOT": "0.0039", "p95TPOT": "0.004", "p95E2E": "0.4", "acceptLength": "2.81",
            "acceptedAt": ["0.74", "0.5", "0"], "verifyCalls": 205, "retractions": 0,
        }
    ],
    "error": "",
}  # fmt: skip
RUN_STATUS = {
    "observedGeneration": 1,
    "fingerprint": "0123456789",
    "node": "gpu-0",
    "startTime": NOW,
    "completionTime": NOW,
    "engineVersion": "0.5.23",
    "lastMeasuredTime": NOW,
    "internal": {
        "armRounds": {"baseline": 3, "wide": 3},
        "firstMeasuredTime": NOW,
        "imageDigests": {"server": "sha256:00", "client": "sha256:01"},
    },
    "results": [
        {"arm": "wide", "workload": "mean", "ratio": "1.36", "lower": "1.3", "upper": "1.4", "acceptLength": "2.8"}
    ],
    "verdict": {
        "outcome": "Promote",
        "winner": "wide",
        "speedup": "1.36",
        "rounds": 3,
        "reason": "Promote",
        "message": "wide is faster",
    },
    "armVerdicts": [{"arm": "wide", "outcome": "promotable", "reason": "ok", "margin": "0.018"}],
    "cost": {
        "gpuSeconds": 1234,
        "idleGpuSeconds": 123,
        "startingGpuSeconds": 900,
        "loadGpuSeconds": 180,
        "serverStarts": 6,
    },
    "emulated": True,
    "noise": "0.003",
    "progress": {
        "step": "done",
        "round": 3,
        "job": "run-1-2-0",
        "message": "decided",
        "secondsPerRound": 300,
        "internal": {"unplacedSince": "2026-11-21T10:00:00Z", "seen": True},
    },
}


def test_nothing_of_a_deployments_status_is_pruned(apiserver: Running, specdep: str) -> None:
    assert publish(apiserver, "speculativedeployments", specdep, DEPLOYMENT_STATUS)["status"] == DEPLOYMENT_STATUS


def test_nothing_of_a_runs_status_is_pruned(apiserver: Running, bench: str) -> None:
    assert publish(apiserver, "benchmarkruns", bench, RUN_STATUS)["status"] == RUN_STATUS
    header, line = apiserver.kubectl("get", "bench").stdout.splitlines()
    assert header.split() == ["NAME", "POOL", "ROUNDS", "OUTCOME", "WINNER", "SPEEDUP", "NODE", "AGE"]
    assert line.split()[:-1] == [bench, "throughput", "3", "Promote", "wide", "1.36", "gpu-0"]


def test_a_round_is_kept_whole_and_never_changes(apiserver: Running) -> None:
    """Whoever may write rounds: another number under the same name is refused."""
    manifest = {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRound",
        "metadata": {"name": "run-1-0-0", "labels": {"paceline.dev/run": "run-1"}},
        "spec": {"fingerprint": "0123456789", **ROUND},
    }
    for _ in range(2):
        apiserver.kubectl("apply", "--server-side", "-f", "-", given=manifest)
    stored = json.loads(apiserver.kubectl("get", "benchround", "run-1-0-0", "-o", "json").stdout)
    assert (stored["spec"], stored["metadata"]["generation"]) == (manifest["spec"], 1)
    header, line = apiserver.kubectl("get", "benchround").stdout.splitlines()
    assert header.split() == ["NAME", "RUN", "ROUND", "NODE", "FAILED", "AGE"]
    assert line.split()[:4] == ["run-1-0-0", "run-1", "0", "gpu-0"]
    patch = '{"spec": {"points": []}}'
    refused = apiserver.kubectl("patch", "benchround", "run-1-0-0", "--type=merge", "-p", patch, check=False)
    assert "a round is measured once" in refused.stderr
    apiserver.kubectl("delete", "benchround", "run-1-0-0")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size": "500Gi"}, ""),
        ({"name": "others", "size": "1Gi", "storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}, ""),
        ({"size": "399Gi"}, "size cannot become smaller on a claim that exists"),
        ({"storageClassName": "fast"}, "storageClassName cannot be changed on a claim that exists"),
        ({"accessModes": ["ReadWriteOnce"]}, "accessModes cannot be changed on a claim that exists"),
    ],
)
def test_of_a_claim_only_the_size_changes_and_only_grows(
    apiserver: Running, specdep: str, change: dict[str, Any], says: str
) -> None:
    patch = json.dumps({"spec": {"cache": {"claim": change}}})
    done = apiserver.kubectl("patch", "specdep", specdep, "--type=merge", "-p", patch, check=False)
    assert says in done.stderr if says else done.returncode == 0, done.stderr


def test_a_run_never_changes(apiserver: Running, bench: str) -> None:
    refused = apiserver.kubectl("patch", "bench", bench, "--type=merge", "-p", '{"spec":{"pool":"other"}}', check=False)
    assert "spec is immutable: make another BenchmarkRun" in refused.stderr
    apiserver.kubectl("label", "bench", bench, "note=kept")


def test_a_finished_run_never_changes(apiserver: Running, bench: str) -> None:
    """Neither a field, nor the whole, nor that it has ended. A write that says nothing new is let through."""
    measuring = {"conditions": conditions(Cause(Reason.RunMeasuring)), "node": "gpu-0"}
    publish(apiserver, "benchmarkruns", bench, measuring)
    ended = RUN_STATUS | {"conditions": conditions(Cause(Reason.Promote))}
    assert publish(apiserver, "benchmarkruns", bench, ended)["status"] == ended
    assert publish(apiserver, "benchmarkruns", bench, ended)["status"] == ended
    for change in (
        {"verdict": {"outcome": "Reject"}},
        {"node": ""},
        {"conditions": []},
        {"results": None},
        {"noise": "0.9"},
    ):
        flags = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": change}))
        refused = apiserver.kubectl("patch", "bench", bench, *flags, check=False)
        assert "a finished run never changes: make another BenchmarkRun" in refused.stderr
    flags = ("--subresource=status", "--type=json", "-p", '[{"op": "remove", "path": "/status"}]')
    assert "a finished run never changes" in apiserver.kubectl("patch", "bench", bench, *flags, check=False).stderr
    apiserver.kubectl("annotate", "bench", bench, "paceline.dev/superseded=true")
