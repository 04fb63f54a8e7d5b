"""What nobody writes: what the API server fills in, and what follows from other fields."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from paceline import api, core
from paceline.engines.images import named, release

README = (Path(__file__).parents[3] / "README.md").read_text()


def smallest(**spec: Any) -> dict[str, Any]:
    """README's, with these fields of its spec."""
    text = next(part for part in README.split("```") if part.startswith("yaml"))
    manifest: dict[str, Any] = yaml.safe_load(text.removeprefix("yaml"))
    manifest["spec"] |= spec
    return manifest


def leaves(node: Any) -> int:
    return sum(map(leaves, node.values())) if isinstance(node, dict) else 1


def test_six_values_are_a_resource() -> None:
    assert leaves(smallest()["spec"]) == 6
    spec = api.deployment(smallest())
    (pool,) = spec.pools
    server = spec.server
    assert (server.served_name, server.engine.type, server.engine.version) == ("Qwen/Qwen3-8B", "SGLang", "0.5.23")
    assert (server.accelerator.count, server.accelerator.tensor_parallel_size) == (1, 1)
    assert (server.cache.claim, spec.cache_claim and spec.cache_claim.name) == ("qwen3-8b-models", "qwen3-8b-models")
    assert [arm.name for arm in pool.arms] == ["baseline", "chain"]
    assert pool.arms[1].tree == core.Tree(num_steps=3, top_k=1, num_draft_tokens=4)
    assert {workload.concurrency for workload in pool.workloads} == {1, 16}
    assert {workload.dataset.name for workload in pool.workloads} == {"code", "swe", "terminal", "chat"}


@pytest.mark.parametrize(
    ("image", "engine", "version"),
    [
        ("lmsysorg/sglang:v0.5.23", "SGLang", "0.5.23"),
        ("docker.io/lmsysorg/sglang:v0.5.10.post1-cu129-amd64", "SGLang", "0.5.10.post1"),
        ("mirror.example.com:5000/lmsysorg/sglang:v0.5.23@sha256:" + "0" * 64, "SGLang", "0.5.23"),
        ("vllm/vllm-openai:v0.33.0", "vLLM", "0.33.0"),
        ("vllm/vllm-openai:latest", "vLLM", ""),
        ("lmsysorg/sglang@sha256:" + "0" * 64, "SGLang", ""),
        ("lmsysorg/sglang", "SGLang", ""),
        ("registry.example.com/sglang:0.5.6-tails-mpt", "", ""),
        ("company/xlmsysorg/sglang:v0.5.23", "", ""),
    ],
)
def test_the_desk_and_the_api_server_read_an_image_alike(image: str, engine: str, version: str) -> None:
    assert (named(image), release(image)) == (engine, version)
    missing = [problem.path for problem in api.problems(smallest(engine={"image": image}))]
    assert ("spec.engine.type" in missing, "spec.engine.version" in missing) == (not engine, not version)


def test_what_is_written_stands() -> None:
    engine = {"image": "lmsysorg/sglang:nightly", "version": "0.5.22"}
    target = {"source": "hf://Qwen/Qwen3-8B", "servedName": "mine"}
    claim = {"claim": {"name": "shared", "size": "60Gi"}}
    spec = api.deployment(smallest(engine=engine, target=target, cache=claim))
    found = spec.server
    assert (found.engine.version, found.served_name, found.cache.claim) == ("0.5.22", "mine", "shared")


def test_nothing_tells_the_name_of_a_model_on_a_claim() -> None:
    manifest = smallest(target={"source": "pvc://weights/qwen"}, cache={"claimName": "weights"})
    assert [problem.path for problem in api.problems(manifest)] == ["spec.target.servedName"]


@pytest.mark.parametrize(
    ("draft", "names"),
    [({"algorithm": "NEXTN"}, ["chain"]), ({"algorithm": "EAGLE3", "source": "hf://a/b"}, ["chain"])],
)
def test_a_head_is_measured_as_a_chain(draft: dict[str, str], names: list[str]) -> None:
    (pool,) = api.deployment(smallest(draft=draft)).pools
    assert [arm.name for arm in pool.arms[1:]] == names


def test_two_ways_to_write_a_chain_are_one_candidate() -> None:
    twins = [{"name": "a", "tree": {"numSteps": 3}}, {"name": "b", "tree": {"numSteps": 3, "numDraftTokens": 4}}]
    (problem,) = api.problems(smallest(candidates=twins))
    assert problem.path == "spec.candidates[1]"


def test_the_schema_writes_what_core_has() -> None:
    """For a resource that says nothing of them."""
    spec = api.deployment(smallest())
    assert (spec.promotion, spec.guard) == (core.PromotionSpec(), core.GuardSpec())
    assert spec.cache_claim == core.ClaimTemplate(name="qwen3-8b-models", size="60Gi")
