"""What preflight finds, and what it must not say."""

from dataclasses import replace

import pytest

from paceline.core import Accelerator, Arm, Cache, Draft, Engine, Model, Server, Tree
from paceline.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3
from paceline.preflight import ModelFacts, findings, model_facts

TARGET, HEAD = "hf://Qwen/Qwen3-Coder-Next", "hf://thoughtworks/Qwen3-Coder-Next-Eagle3"
FACTS = {
    TARGET: model_facts(QWEN3_CODER_NEXT, 159_000_000_000),
    HEAD: model_facts(QWEN3_CODER_NEXT_EAGLE3, 278_000_000),
}


def server(tensor_parallel_size: int = 4) -> Server:
    return Server(
        engine=Engine(name="SGLang", version="0.5.23", image="lmsysorg/sglang:v0.5.23"),
        target=Model(source=TARGET),
        served_name="qwen3-coder-next",
        accelerator=Accelerator(
            product="NVIDIA-H200", count=tensor_parallel_size, tensor_parallel_size=tensor_parallel_size
        ),
        cache=Cache(claim="models"),
    )


def arms(algorithm: str = "EAGLE3") -> tuple[Arm, ...]:
    draft = Draft(algorithm=algorithm, model=Model(source=HEAD))
    return (
        Arm(name="baseline"),
        Arm(name="narrow", draft=draft, tree=Tree(num_steps=5, top_k=1, num_draft_tokens=6)),
        Arm(name="wide", draft=draft, tree=Tree(num_steps=3, top_k=4, num_draft_tokens=8)),
    )


def blocking(facts: dict[str, ModelFacts], algorithm: str = "EAGLE3") -> list[str]:
    return [finding.rule for finding in findings(server(), arms(algorithm), facts) if finding.blocks]


def with_head(**changes: object) -> dict[str, ModelFacts]:
    return {**FACTS, HEAD: replace(FACTS[HEAD], **changes)}


def test_the_published_pair_passes_with_a_note_on_positions() -> None:
    (note,) = findings(server(), arms(), FACTS)
    assert (note.rule, note.blocks, note.path) == ("positions-reach", False, "candidates[narrow].draft.source")
    assert note.found == f"{HEAD} has 4096 positions, the target 262144"


def test_a_head_for_another_hidden_size_is_found_once_though_two_arms_share_it() -> None:
    (finding,) = (
        f for f in findings(server(), arms(), with_head(hidden_size=4096, target_hidden_size=None)) if f.blocks
    )
    assert finding.rule == "hidden-sizes-agree"
    assert finding.found == f"{HEAD} reads hidden states of 4096, the target's have 2048"
    assert finding.fix == "name a head that was trained for this target"


def test_a_head_may_be_narrower_than_the_target_it_says_it_reads() -> None:
    assert blocking(with_head(hidden_size=1024, target_hidden_size=2048)) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"vocab_size": 32000}, ["vocabularies-agree"]),
        ({"vocab_size": 152064}, []),  # the same, padded
        ({"draft_vocab_size": 200_000}, ["vocabularies-agree"]),
    ],
)
def test_vocabularies(changes: dict[str, object], expected: list[str]) -> None:
    assert blocking(with_head(**changes)) == expected


@pytest.mark.parametrize(
    ("algorithm", "architecture", "expected"),
    [
        ("EAGLE", "LlamaForCausalLMEagle3", ["algorithm-fits-head"]),
        ("EAGLE3", "Qwen2ForCausalLMEagle", ["algorithm-fits-head"]),
        ("EAGLE3", "LlamaForCausalLMEagle3", []),
        ("EAGLE3", "SomethingNewEagle3", []),  # unknown classes are the measurement's business
    ],
)
def test_the_algorithm_must_fit_the_heads_class(algorithm: str, architecture: str, expected: list[str]) -> None:
    assert blocking(with_head(architectures=(architecture,)), algorithm) == expected


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (4, None),
        (8, None),  # two key-value heads, each on four GPUs
        (3, "16 attention heads on 3 GPUs"),
    ],
)
def test_heads_are_split_evenly_over_the_gpus(size: int, found: str | None) -> None:
    blocks = [finding for finding in findings(server(size), arms(), FACTS) if finding.blocks]
    assert [finding.found for finding in blocks] == ([found] if found else [])
    assert all(finding.path == "accelerator.tensorParallelSize" for finding in blocks)


def test_key_value_heads_count_too() -> None:
    facts = {TARGET: replace(FACTS[TARGET], num_attention_heads=24, num_key_value_heads=6)}
    (finding,) = findings(server(4), arms(), facts)
    assert finding.found == "6 key-value heads on 4 GPUs"


def test_nothing_is_said_about_what_is_not_known() -> None:
    assert findings(server(), arms(), {}) == ()
    assert findings(server(), arms(), {TARGET: FACTS[TARGET]}) == ()
    assert findings(server(), arms(), {TARGET: ModelFacts(), HEAD: ModelFacts()}) == ()
