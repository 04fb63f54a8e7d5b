"""A manifest becomes core types, once, with every default filled in."""

from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says

from paceline import core
from paceline.api import deployment, run, run_manifest_spec
from paceline.api.problems import InvalidManifestError, problems

EXAMPLE = Path(__file__).parents[3] / "examples" / "qwen3-coder-next.yaml"


@pytest.fixture
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return loaded


CODE = {"name": "code", "source": "builtin://code"}


def by_hand(deployed: dict[str, Any], *workloads: dict[str, Any]) -> dict[str, Any]:
    """The least of a BenchmarkRun, of this deployment's target."""
    asked = deployed["spec"]
    spec = {
        "pool": "mine",
        "target": asked["target"],
        "engine": asked["engine"],
        "accelerator": asked["accelerator"],
        "cache": {"hostPath": "/models"},
        "arms": [{"name": "baseline"}, {"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}],
        "workloads": list(workloads),
        "gate": {},
    }
    return {"spec": spec}


def test_the_example_is_what_was_published(manifest: dict[str, Any]) -> None:
    spec = deployment(manifest)
    head = core.Draft(algorithm="EAGLE3", model=core.Model(source="hf://thoughtworks/Qwen3-Coder-Next-Eagle3"))
    wide = core.Arm(name="wide", draft=head, tree=core.Tree(num_steps=3, top_k=4, num_draft_tokens=8))
    narrow = core.Arm(name="narrow", draft=head, tree=core.Tree(num_steps=5, top_k=1, num_draft_tokens=6))
    latency, throughput = spec.pools

    assert spec.server.target == core.Model(source="hf://Qwen/Qwen3-Coder-Next")
    assert spec.server.accelerator == core.Accelerator(product="NVIDIA-H200", count=4, tensor_parallel_size=4)
    assert spec.server.engine == core.Engine(
        type="SGLang",
        version="0.5.6",
        image="registry.example.com/sglang:0.5.6-tails-mpt",
        args=("--attention-backend=triton", "--mem-fraction-static=0.85"),
        trust_remote_code=True,
        eagle3_targets=("Qwen3NextForCausalLM",),
    )
    assert spec.cache_claim == core.ClaimTemplate(name="models", size="400Gi")
    assert latency.arms == (core.Arm(name="baseline"), wide)
    assert throughput.arms == (core.Arm(name="baseline"), narrow, wide), "fewer draft tokens first"
    assert [workload.name for workload in throughput.workloads] == ["code@32", "swe@32", "terminal@32", "chat@32"]
    assert {(w.dataset.requests, w.dataset.max_tokens) for w in latency.workloads} == {(64, 512)}
    assert {(w.dataset.requests, w.dataset.max_tokens) for w in throughput.workloads} == {(160, 512)}


def test_what_is_not_said_is_taken_from_core(manifest: dict[str, Any]) -> None:
    spec = deployment(manifest)
    assert spec.pools[0].gate == core.Gate()
    assert spec.promotion == core.PromotionSpec()
    assert spec.max_evidence_age == timedelta(hours=720)
    assert not spec.suspend


def test_a_pools_gate_overrides_key_by_key(manifest: dict[str, Any]) -> None:
    manifest["spec"]["gate"] = {"minImprovement": "10%", "confidence": "90%", "decideAfterRounds": [2, 4]}
    latency, throughput = deployment(manifest).pools
    assert latency.gate == core.Gate(min_improvement=0.1, confidence=0.9, decide_after_rounds=(2, 4))
    assert throughput.gate == core.Gate(min_improvement=0.02, confidence=0.9, decide_after_rounds=(2, 4))


def test_a_candidates_own_draft_takes_the_place_of_the_default(manifest: dict[str, Any]) -> None:
    manifest["spec"]["candidates"] = [{"name": "ngram", "draft": {"algorithm": "NGRAM"}, "ngram": {}}]
    del manifest["spec"]["pools"][0]["candidates"]
    assert deployment(manifest).pools[0].arms[1] == core.Arm(
        name="ngram", draft=core.Draft(algorithm="NGRAM"), ngram=core.Ngram()
    )


def test_durations_are_gos(manifest: dict[str, Any]) -> None:
    manifest["spec"]["promotion"] = {"progressDeadline": "1h30m5s", "mode": "Manual", "untilDecided": "Nothing"}
    assert deployment(manifest).promotion == core.PromotionSpec(
        mode=core.PromotionMode.MANUAL,
        until_decided=core.UntilDecided.NOTHING,
        progress_deadline=timedelta(hours=1, minutes=30, seconds=5),
    )


def test_the_hubs_token_goes_by_reference(manifest: dict[str, Any]) -> None:
    manifest["spec"]["cache"] = {"claimName": "shared", "tokenSecretRef": {"name": "hub"}}
    spec = deployment(manifest)
    assert spec.cache_claim is None
    assert spec.server.cache.claim == "shared"
    assert spec.server.cache.env == (
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    )


def test_six_requests_are_enough_at_concurrency_one(manifest: dict[str, Any]) -> None:
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code", "requests": 6}]}
    manifest["spec"]["pools"].pop()
    assert deployment(manifest).pools[0].workloads[0].dataset.requests == 6


def test_at_concurrency_32_there_are_never_fewer_than_five_times_as_many(manifest: dict[str, Any]) -> None:
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code", "requests": 6}]}
    latency, throughput = deployment(manifest).pools
    assert [workload.dataset.requests for workload in latency.workloads] == [6]
    assert [workload.dataset.requests for workload in throughput.workloads] == [160]


def test_at_a_rate_there_are_requests_for_a_minute_unless_it_is_said(manifest: dict[str, Any]) -> None:
    def requests(rate: str, **said: Any) -> int:
        manifest["spec"]["benchmark"] = {"datasets": [{"name": "chat", "source": "builtin://chat", **said}]}
        manifest["spec"]["pools"][0]["load"] = [{"requestRate": rate, "maxConcurrency": 8}]
        return deployment(manifest).pools[0].workloads[0].dataset.requests

    assert [requests(rate) for rate in ("0.5", "1", "8", "33.333")] == [64, 64, 480, 2000]
    assert requests("5000") == 100_000  # the most there can be: 20 s
    assert requests("8", requests=160) == 160


@pytest.mark.parametrize(("rate", "requests"), [("8", 159), ("3.2", 63), ("0.07", 1), ("5000.1", None)])
def test_fewer_requests_than_arrive_in_20_seconds_are_refused(
    manifest: dict[str, Any], rate: str, requests: int | None, says: Says
) -> None:
    chat = {"name": "chat", "source": "builtin://chat", "requests": requests}
    manifest["spec"]["benchmark"] = {"datasets": [chat]}
    manifest["spec"]["pools"][0]["load"] = [{"requestRate": rate, "maxConcurrency": 8}]
    with pytest.raises(InvalidManifestError) as refused:
        deployment(manifest)
    (problem,) = refused.value.problems
    assert problem.path == "spec.pools[0].load[0].requestRate"
    says(problem.message)


@pytest.mark.parametrize(
    ("said", "temperature", "kept"),
    [
        (None, 0.0, "0"),
        ("0", 0.0, "0"),
        ("0.0", 0.0, "0"),  # the default, however it is written, moves no question
        ("0.7", 0.7, "0.7"),
        ("2", 2.0, "2"),
        ("model", None, "model"),
    ],
)
def test_the_temperature_is_the_datasets(
    manifest: dict[str, Any], said: str | None, temperature: float | None, kept: str | None
) -> None:
    manifest["spec"]["benchmark"] = {
        "datasets": [{"name": "code", "source": "builtin://code", **({"temperature": said} if said else {})}]
    }
    workload = deployment(manifest).pools[0].workloads[0]
    assert workload.dataset.temperature == temperature
    spec = run(by_hand(manifest, {**CODE, "concurrency": 1, "temperature": said or "0"}))
    assert spec.workloads[0].dataset.temperature == temperature
    assert run_manifest_spec(spec)["workloads"][0].get("temperature") == kept


def test_an_slo_is_in_one_form_however_it_is_written(manifest: dict[str, Any]) -> None:
    code, chat = ({"name": name, "source": f"builtin://{name}"} for name in ("code", "chat"))
    manifest["spec"]["benchmark"] = {"datasets": [{**code, "slo": {"ttft": "0s500ms", "itl": "50ms"}}, chat]}
    workloads = deployment(manifest).pools[0].workloads
    assert [workload.dataset.slo for workload in workloads] == [core.Slo(ttft=0.5, itl=0.05), None]

    said = {**code, "concurrency": 1, "slo": {"ttft": "0s500ms", "itl": "50ms"}}
    asked = run(by_hand(manifest, said, {**chat, "concurrency": 1}))
    written = [workload.get("slo") for workload in run_manifest_spec(asked)["workloads"]]
    assert written == [{"ttft": "500ms", "itl": "50ms"}, None]


def test_what_arrives_at_a_rate_is_measured_once(manifest: dict[str, Any]) -> None:
    chat = {"name": "chat", "source": "configMap://prompts/chat.jsonl", "requests": 200}
    load = [{"concurrency": [1, 8], "datasets": ["code"]}, {"requestRate": "0.5", "datasets": ["chat"]}]
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code"}, chat]}
    manifest["spec"]["pools"] = [manifest["spec"]["pools"][0] | {"load": load}]
    (pool,) = deployment(manifest).pools
    assert [workload.name for workload in pool.workloads] == ["code@1", "code@8", "chat@0.5/s"]
    assert (pool.workloads[2].rate, pool.workloads[2].concurrency) == (0.5, 8)


def test_a_run_made_by_hand_needs_little(manifest: dict[str, Any]) -> None:
    spec = run(by_hand(manifest, {**CODE, "concurrency": 32}))
    assert spec.workloads == (
        core.Workload(
            dataset=core.Dataset(name="code", source="builtin://code", requests=160, max_tokens=512, min_requests=160),
            concurrency=32,
        ),
    )
    assert (spec.gate, spec.purpose) == (core.Gate(), core.Purpose.GATE)
    assert spec.server.max_concurrency == 32


def test_a_spec_that_has_not_changed_is_not_read_again(manifest: dict[str, Any]) -> None:
    """Every reconciliation asks for it: reading takes longer than planning."""
    assert deployment(deepcopy(manifest)) is deployment(manifest)
    asked = by_hand(manifest, {**CODE, "concurrency": 32})
    assert run(deepcopy(asked)) is run(asked)


def test_a_spec_that_is_changed_in_place_is_read_anew(manifest: dict[str, Any]) -> None:
    assert not deployment(manifest).suspend
    manifest["spec"]["suspend"] = True
    assert deployment(manifest).suspend


def test_requests_that_nobody_wrote_may_be_others_after_the_first_round(manifest: dict[str, Any]) -> None:
    """Or more, at 32 simultaneous requests, where the first round sends as few as the steady window allows."""
    latency, throughput = deployment(manifest).pools
    assert {(w.dataset.requests, w.dataset.min_requests) for w in latency.workloads} == {(64, 16)}
    assert {(w.dataset.requests, w.dataset.min_requests) for w in throughput.workloads} == {(160, 160)}
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [8]}]
    assert deployment(manifest).pools[0].workloads[0].dataset.min_requests == 40


def test_requests_that_a_person_wrote_are_sent(manifest: dict[str, Any]) -> None:
    manifest["spec"]["benchmark"] = {"datasets": [{**CODE, "requests": 64}]}
    assert deployment(manifest).pools[0].workloads[0].dataset.min_requests is None
    manifest["spec"]["benchmark"] = {"datasets": [CODE]}
    manifest["spec"]["pools"][0]["load"] = [{"requestRate": "2", "maxConcurrency": 8}]
    assert deployment(manifest).pools[0].workloads[0].dataset.min_requests is None


def test_what_the_operator_wrote_into_a_run_is_read_back(manifest: dict[str, Any]) -> None:
    workloads = ({**CODE, "concurrency": 1, "requests": 64, "minRequests": 16}, {**CODE, "concurrency": 2})
    own, mine = (one.dataset for one in run(by_hand(manifest, *workloads)).workloads)
    assert (own.requests, own.min_requests, mine.requests, mine.min_requests) == (64, 16, 64, 16)
    older = run(by_hand(manifest, {**CODE, "concurrency": 1, "requests": 64})).workloads[0].dataset
    assert older.min_requests is None, "a run that a former release made goes on as it began"


def test_where_devices_are_selected_themselves_the_product_is_a_label_as_any_other(manifest: dict[str, Any]) -> None:
    """Then `spec.accelerator` selects no nodes by it."""
    manifest["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    assert [problem.path for problem in problems(manifest)] == ["spec.nodeSelector.nvidia.com/gpu.product"]
    manifest["spec"]["accelerator"] |= {
        "deviceClassName": "gpu.nvidia.com",
        "deviceSelectors": ["device.driver != 'b'"],
    }
    assert problems(manifest) == []
