"""The commands of the documents that the examples are made from stand in what is rendered, word for word but for what
the example changes; and what it changes is said here once more."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from tests.support.rendered import argv, flags

ALIASES = {
    "--model": "--model-path",
    "--tp": "--tp-size",
    "--speculative-draft-model": "--speculative-draft-model-path",
}
"""Other spellings of a flag, and what SGLang's argument parser takes beginnings for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`changed`: flag → what is rendered in its place, None if nothing is. `added`: what the document leaves out."""

    source: str
    example: str
    pool: str
    arm: str
    line: str
    changed: Mapping[str, str | None] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)


CODER_NEXT = """
    --model-path Qwen/Qwen3-Coder-Next --speculative-algorithm EAGLE3
    --speculative-draft-model-path thoughtworks/Qwen3-Coder-Next-Eagle3 --speculative-num-steps 3
    --speculative-num-draft-tokens 8 --speculative-eagle-topk 4 --tp 4 --trust-remote-code
    --attention-backend triton --port 30000
"""
CODER_30B = """
    --model Qwen/Qwen3-Coder-30B-A3B --tp 1 --max-total-tokens 65536 --mem-fraction-static 0.85 --enable-torch-compile
    --port 30000
"""
CODER_30B_HEAD = """
    --speculative-algorithm EAGLE --speculative-draft-model-path Qwen/Qwen3-Coder-30B-A3B-EAGLE3
    --speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 32
"""
QWEN3_8B = """
    --model Qwen/Qwen3-8B --speculative-algorithm EAGLE3 --speculative-draft-model-path thoughtworks/Qwen3-8B-Eagle3
    --speculative-num-steps 5 --speculative-eagle-topk 4 --dtype bfloat16
"""
ARTICLE = "the article on Qwen3-Coder-Next's EAGLE3 head, its section on use"
POST = "the post on Qwen3-Coder-30B-A3B with EAGLE3, section 2.3"
CARD = "the model card of thoughtworks/Qwen3-8B-Eagle3"
TOKENS = {"--speculative-num-draft-tokens": "8"}  # a tree without a width dies at the first draft
EAGLE3 = {"--speculative-algorithm": "EAGLE3"}  # for an EAGLE3 head

COMMANDS = (
    Published(
        source=ARTICLE,
        example="qwen3-coder-next",
        pool="latency",
        arm="wide",
        line=CODER_NEXT,
        added={"--mem-fraction-static": "0.85"},  # or the arms would have other caches
    ),
    Published(
        source=ARTICLE,
        example="qwen3-coder-next-upstream",
        pool="latency",
        arm="wide",
        line=CODER_NEXT.replace("thoughtworks/", "your-org/"),  # the same weights, with layers named
    ),
    Published(source=POST, example="qwen3-coder-30b-a3b", pool="codegen", arm="baseline", line=CODER_30B),
    Published(
        source=POST,
        example="qwen3-coder-30b-a3b",
        pool="codegen",
        arm="wide",
        line=CODER_30B + CODER_30B_HEAD,
        changed=EAGLE3,
    ),
    Published(source=CARD, example="qwen3-8b", pool="chat", arm="wide", line=QWEN3_8B, added=TOKENS),
    Published(
        source=CARD,
        example="qwen3-8b-no-thinking",
        pool="chat",
        arm="wide",
        line=f"{QWEN3_8B} --chat-template qwen3-instruct-no-thinking",
        changed={"--chat-template": None},  # there is none of that name
        added={**TOKENS, "--default-chat-template-kwargs": '{"enable_thinking": false}'},
    ),
    Published(
        source=CARD,
        example="qwen3-8b-tpu",
        pool="chat",
        arm="chain",
        line="""
            --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE3
            --speculative-draft-model-path thoughtworks/Qwen3-8B-Eagle3 --speculative-eagle-topk 1
            --speculative-num-steps 3 --speculative-num-draft-tokens 4 --tp-size 4 --dtype bfloat16
        """,
    ),
    Published(
        source="the model card of thoughtworks/GLM-4.7-FP8-Eagle3",
        example="glm-4.7-fp8",
        pool="latency",
        arm="wide",
        line="""
            --model-path zai-org/GLM-4.7-FP8 --speculative-algorithm EAGLE3
            --speculative-draft-model-path thoughtworks/GLM-4.7-FP8-Eagle3 --speculative-num-steps 3
            --speculative-num-draft-tokens 6 --speculative-eagle-topk 4 --tp 8 --trust-remote-code --port 30000
        """,
    ),
    Published(
        source="the model card of thoughtworks/MiniMax-M2.5-Eagle3",
        example="minimax-m2.5",
        pool="throughput",
        arm="narrow",
        line="""
            --model-path MiniMaxAI/MiniMax-M2.5 --speculative-algorithm EAGLE3
            --speculative-draft-model-path thoughtworks/MiniMax-M2.5-Eagle3 --speculative-num-steps 5
            --speculative-num-draft-tokens 6 --speculative-eagle-topk 1 --quantization fp8 --tp 4
        """,
        changed={"--quantization": None},  # the checkpoint is FP8; said, it quantises the head as well
    ),
)


@pytest.mark.parametrize("published", COMMANDS, ids=lambda one: f"{one.example}-{one.arm}")
def test_a_published_command_is_rendered(published: Published) -> None:
    found = flags(argv(published.example, published.pool, published.arm))
    asked = {ALIASES.get(flag, flag): value for flag, value in flags(published.line.split()).items()}
    kept = {flag: value for flag, value in asked.items() if flag not in published.changed}
    replaced = {flag: value for flag, value in published.changed.items() if value is not None}
    assert (kept | replaced | published.added).items() <= found.items(), published.source
    assert not [flag for flag, value in published.changed.items() if value is None and flag in found]


@pytest.mark.parametrize("published", COMMANDS, ids=lambda one: f"{one.example}-{one.arm}")
def test_what_is_changed_was_otherwise(published: Published) -> None:
    """A change that changes nothing would hide what the document says."""
    asked = {ALIASES.get(flag, flag): value for flag, value in flags(published.line.split()).items()}
    assert all(asked[flag] != value for flag, value in published.changed.items())
    assert not published.added.keys() & asked.keys()


def test_the_serving_card_for_vllm() -> None:
    """`method: eagle3 model: yuhuili/Eagle3-Qwen3-30B-A3B num_speculative_tokens: 4`."""
    found = flags(argv("qwen3-coder-30b-vllm", "single", "four"))
    said = json.loads(found["--speculative-config"])
    assert (said["method"], said["num_speculative_tokens"]) == ("eagle3", 4)
    assert said["model"] == "yuhuili/Eagle3-Qwen3-30B-A3B"
    assert "--speculative-config" not in flags(argv("qwen3-coder-30b-vllm", "single", "baseline"))
