"""The fields of a SpeculativeDeployment's spec, and specs in which they say something."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.edits import GONE
from tests.support.world import example

from paceline import api

SPEC = next(
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for crd in api.crds()
    if crd["spec"]["names"]["kind"] == "SpeculativeDeployment"
)


def fields(schema: Mapping[str, Any] = SPEC, path: str = "") -> Iterator[str]:
    """Paths of the fields that hold no other fields, `pools[].name`, as the CRD has them."""
    inside = schema.get("items", schema).get("properties")
    if not inside:
        yield path
        return
    path += "[]" if "items" in schema else ""
    for name, inner in inside.items():
        yield from fields(inner, f"{path}.{name}" if path else name)


def secret(name: str) -> dict[str, Any]:
    return {"name": name, "key": "key"}


def environment() -> list[dict[str, Any]]:
    """A variable of each origin."""
    return [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
        {"name": "D", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {
            "name": "E",
            "valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1"}},
        },
        {"name": "F", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": True}}},
    ]


def of_environment(where: str) -> dict[str, Any]:
    """Edits of `environment()`."""
    return {
        f"{where}.0.name": "OTHER",
        f"{where}.0.value": "2",
        f"{where}.1.valueFrom.secretKeyRef.name": "other",
        f"{where}.1.valueFrom.secretKeyRef.key": "other",
        f"{where}.1.valueFrom.secretKeyRef.optional": False,
        f"{where}.2.valueFrom.configMapKeyRef.name": "other",
        f"{where}.2.valueFrom.configMapKeyRef.key": "other",
        f"{where}.2.valueFrom.configMapKeyRef.optional": False,
        f"{where}.3.valueFrom.fieldRef.apiVersion": GONE,
        f"{where}.3.valueFrom.fieldRef.fieldPath": "metadata.namespace",
        f"{where}.4.valueFrom.resourceFieldRef.containerName": "other",
        f"{where}.4.valueFrom.resourceFieldRef.resource": "requests.cpu",
        f"{where}.4.valueFrom.resourceFieldRef.divisor": "1m",
        f"{where}.5.valueFrom.fileKeyRef.volumeName": "other",
        f"{where}.5.valueFrom.fileKeyRef.path": "other",
        f"{where}.5.valueFrom.fileKeyRef.key": "other",
        f"{where}.5.valueFrom.fileKeyRef.optional": False,
    }


def full() -> dict[str, Any]:
    """A pool of one candidate, and most of what may be said about it."""
    manifest = dict(example("latency"))
    spec = manifest["spec"]
    spec["engine"] |= {
        "version": "0.5.23",
        "env": environment(),
        "apiKeySecretRef": secret("api"),
        "adminKeySecretRef": secret("admin"),
        "podTemplate": {"spec": {"priorityClassName": "high"}},
    }
    spec["accelerator"] |= {"tensorParallelSize": 4, "memory": "141Gi"}
    spec["cache"] |= {
        "env": environment(),
        "tokenSecretRef": {"name": "token"},
        "securityContext": {"runAsUser": 1, "runAsGroup": 1, "fsGroup": 1, "supplementalGroups": [1]},
    }
    spec["nodeSelector"] = {"rack": "a"}
    spec["tolerations"] = [{"key": "dedicated", "value": "a", "effect": "NoExecute", "tolerationSeconds": 5}]
    parent = {"name": "inference", "namespace": "gateways", "sectionName": "http"}
    spec["gateway"] = {"parentRefs": [parent], "hostnames": ["a.example"]}
    limits = [{"metric": "p95TTFT", "maxIncrease": "50%"}]
    spec["gate"] = {"limits": limits, "decideAfterRounds": [2]}
    pool = spec["pools"][0]
    pool["endpointPickerRef"] = {"name": "picker"}
    pool["load"][0]["datasets"] = ["code", "chat"]
    spec["benchmark"] = {
        "datasets": [{"name": name, "source": f"builtin://{name}"} for name in ("code", "chat", "swe")],
        "timeouts": {"start": "20m", "workload": "20m"},
        "podLabels": {"queue": "a"},
        "queueName": "gpus",
    }
    return manifest


def with_candidate(**fields: Any) -> dict[str, Any]:
    """`full`, with this candidate."""
    manifest = full()
    manifest["spec"]["candidates"] = [{"name": "wide", **fields}]
    manifest["spec"]["pools"][0].pop("candidates", None)
    return manifest


def with_limits() -> dict[str, Any]:
    """Of all kinds, and the pool's own beside those of all pools."""
    manifest = full()
    every = [
        {"metric": "p95TTFT", "maxIncrease": "50%"},
        {"metric": "kvTokens", "maxDecrease": "50%"},
        {"metric": "retractions", "max": 3},
    ]
    manifest["spec"]["gate"]["limits"] = every
    return manifest


def with_limits_of_its_own() -> dict[str, Any]:
    manifest = with_limits()
    manifest["spec"]["pools"][0]["gate"] = {"limits": manifest["spec"]["gate"].pop("limits")}
    return manifest


def with_its_own_engine() -> dict[str, Any]:
    """A candidate on another release, with variables that the other arms do not have."""
    found = full()
    own = {"type": "SGLang", "version": "0.5.22", "image": "docker.io/ours/sglang:1"}
    own |= {"args": ["--attention-backend=triton", "--mem-fraction-static=0.85"], "env": environment()}
    for number, variable in enumerate(own["env"]):
        variable["name"] = f"OWN_{number}"
    own["unsetEnv"] = ["A"]
    found["spec"]["candidates"][0]["engine"] = own
    return found


def blocks() -> dict[str, Any]:
    draft = {"algorithm": "DFLASH", "source": "hf://a/blocks"}
    return with_candidate(draft=draft, blockSize=8)


def ngram() -> dict[str, Any]:
    return with_candidate(draft={"algorithm": "NGRAM"}, ngram={"numDraftTokens": 8, "breadth": 4})


def ngram_of_a_window() -> dict[str, Any]:
    """Which only engines have that were released before."""
    manifest = with_candidate(draft={"algorithm": "NGRAM"}, ngram={"minMatch": 1, "maxMatch": 8})
    manifest["spec"]["engine"]["version"] = "0.5.6"
    del manifest["spec"]["engine"]["adminKeySecretRef"]
    return manifest


def adaptive() -> dict[str, Any]:
    return with_candidate(adaptive={"numSteps": 3})


def scheduled() -> dict[str, Any]:
    return with_candidate(depthByBatchSize=[{"fromBatchSize": 1, "numSteps": 3}, {"fromBatchSize": 4, "numSteps": 1}])


def of_its_own() -> dict[str, Any]:
    """A candidate whose algorithm and flags are the engine's own."""
    draft = {"algorithm": "Custom", "name": "OURS", "source": "hf://a/own"}
    return with_candidate(draft=draft, custom={"args": ["--speculative-num-steps=2"]})


def as_default() -> dict[str, Any]:
    """The algorithm of all candidates is the engine's own."""
    manifest = of_its_own()
    manifest["spec"]["draft"] = manifest["spec"]["candidates"][0].pop("draft")
    return manifest


def tree_of_another_head() -> dict[str, Any]:
    draft = {"algorithm": "EAGLE3", "source": "hf://a/head"}
    return with_candidate(draft=draft, tree={"numSteps": 3, "topK": 4, "numDraftTokens": 8})


def searching() -> dict[str, Any]:
    manifest = full()
    pool = manifest["spec"]["pools"][0]
    del manifest["spec"]["candidates"]
    pool.pop("candidates", None)
    manifest["spec"]["engine"]["env"] = [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"}]
    pool["search"] = {"numSteps": {"min": 1, "max": 4}, "topK": {"min": 1, "max": 4}}
    pool["search"]["numDraftTokens"] = {"min": 2, "max": 8}
    return manifest


def own_traffic() -> dict[str, Any]:
    """Datasets of all kinds."""
    manifest = full()
    spec = manifest["spec"]
    spec["engine"]["args"] = [*spec["engine"]["args"], "--lora-paths", "sql=/models/adapters/sql"]
    spec["pools"][0]["load"] = [
        {"concurrency": [1, 8], "datasets": ["chats"]},
        {"requestRate": "0.6", "datasets": ["rated"]},
        {"ramp": {"from": 2, "to": 8}, "datasets": ["ramp"]},
    ]
    spec["benchmark"]["datasets"] = [
        {"name": "chats", "source": "hf://datasets/a/prompts/data/chat.parquet", "requests": 64, "maxTokens": 96},
        {"name": "rated", "source": "configMap://traffic/chats.jsonl", "requests": 120},
        {"name": "ramp", "source": "builtin://code"},
    ]
    spec["benchmark"]["datasets"][1]["slo"] = {"ttft": "500ms", "itl": "50ms"}
    return manifest


def borrowing() -> dict[str, Any]:
    manifest = full()
    manifest["spec"]["pools"][0]["replicas"] = 3
    manifest["spec"]["benchmark"] |= {"capacityPolicy": "Borrow", "minServing": 1}
    return manifest


def claiming_devices() -> dict[str, Any]:
    manifest = full()
    manifest["spec"]["accelerator"] |= {
        "deviceClassName": "gpu.nvidia.com",
        "deviceSelectors": ["device.driver != 'a'"],
    }
    return manifest


def on_a_claim_of_others() -> dict[str, Any]:
    manifest = full()
    manifest["spec"]["cache"] = {"claimName": "models"}
    return manifest


def on_a_directory() -> dict[str, Any]:
    manifest = full()
    manifest["spec"]["cache"] = {"hostPath": "/models"}
    return manifest


def fetched_anew() -> dict[str, Any]:
    return full()


def begins() -> dict[str, Any]:
    return full()


def fetched_later() -> dict[str, Any]:
    return full()


def upgraded_later() -> dict[str, Any]:
    return full()


def answered_otherwise() -> dict[str, Any]:
    return full()


def measured() -> dict[str, Any]:
    return full()


def used() -> dict[str, Any]:
    return full()


def in_a_window() -> dict[str, Any]:
    manifest = full()
    manifest["spec"]["benchmark"]["window"] = {"schedule": "0 8 * * *", "duration": "8h", "timeZone": "UTC"}
    return manifest


def within_limits() -> dict[str, Any]:
    """Of cost, and outputs are compared."""
    manifest = full()
    manifest["spec"]["benchmark"] |= {
        "budget": {"gpuHours": "50"},
        "parity": {"samples": 4, "maxTokens": 32},
    }
    return manifest


def profiled() -> dict[str, Any]:
    """It names one of `PROFILES`."""
    manifest = full()
    del manifest["spec"]["gate"]
    manifest["spec"]["benchmark"]["profileRef"] = {"name": "usual"}
    return manifest


PROFILES = tuple(
    {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkProfile",
        "metadata": {"name": name, "namespace": "models"},
        "spec": {"gate": {"maxRegression": allowed}},
    }
    for name, allowed in (("usual", "3%"), ("stricter", "1%"))
)


BASES: Mapping[str, Callable[[], dict[str, Any]]] = {
    base.__name__: base
    for base in (
        full,
        with_limits,
        with_limits_of_its_own,
        with_its_own_engine,
        blocks,
        ngram,
        ngram_of_a_window,
        adaptive,
        scheduled,
        of_its_own,
        as_default,
        tree_of_another_head,
        searching,
        own_traffic,
        borrowing,
        claiming_devices,
        on_a_claim_of_others,
        on_a_directory,
        within_limits,
        fetched_anew,
        fetched_later,
        upgraded_later,
        answered_otherwise,
        begins,
        measured,
        used,
        in_a_window,
        profiled,
    )
}
