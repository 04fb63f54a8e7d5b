"""What a Deployment speculates with, as a candidate that renders the same flags."""

import json
from typing import Any

import pytest
from tests.support.messages import Says

from paceline.cli.importing.arguments import carried_arguments
from paceline.cli.importing.speculation import read_speculation

EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path a/head"


def of(engine: str, version: str, *args: str) -> tuple[Any, Any, list[str]]:
    said = carried_arguments(engine, version, ["--model", "a/b", *args])
    found = read_speculation(engine, version, said.speculative, lambda named: f"hf://{named}", "a/b")
    return found.draft, found.candidates[0] if found.candidates else None, [str(note) for note in found.notes]


HEAD = {"algorithm": "EAGLE3", "source": "hf://a/head"}


@pytest.mark.parametrize(
    ("flags", "draft", "shape"),
    [
        (
            f"{EAGLE3} --speculative-num-steps 5 --speculative-eagle-topk 8 --speculative-num-draft-tokens 32",
            HEAD,
            {"tree": {"numSteps": 5, "topK": 8, "numDraftTokens": 32}},
        ),
        (
            f"{EAGLE3} --speculative-num-steps 3 --speculative-eagle-topk 1",
            HEAD,
            {"tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}},
        ),
        (f"{EAGLE3} --speculative-adaptive --speculative-num-steps 4", HEAD, {"adaptive": {"numSteps": 4}}),
        (
            f"{EAGLE3} --speculative-draft-model-revision v1 --speculative-num-steps 3 --speculative-eagle-topk 1"
            " --speculative-attention-mode decode",
            {**HEAD, "revision": "v1"},
            {
                "tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4},
                "args": ["--speculative-attention-mode", "decode"],
            },
        ),
        (
            "--speculative-algorithm ngram --speculative-num-draft-tokens 8 --speculative-ngram-max-bfs-breadth 1",
            {"algorithm": "NGRAM"},
            {"ngram": {"numDraftTokens": 8, "breadth": 1}},
        ),
        (
            "--speculative-algorithm DFLASH --speculative-draft-model-path a/head --speculative-dflash-block-size 16",
            {"algorithm": "DFLASH", "source": "hf://a/head"},
            {"blockSize": 16},
        ),
        (
            "--speculative-algorithm UNO --speculative-num-draft-tokens 5",
            {"algorithm": "Custom", "name": "UNO"},
            {"custom": {"args": ["--speculative-num-draft-tokens", "5"]}},
        ),
    ],
)
def test_sglang(flags: str, draft: Any, shape: Any) -> None:
    found, candidate, notes = of("SGLang", "0.5.23", *flags.split())
    assert (found, candidate) == (draft, {"name": "current", **shape})
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("algorithm", "path", "draft"),
    [
        ("EAGLE", "", {"algorithm": "MTP"}),
        ("EAGLE", "a/b", {"algorithm": "MTP"}),
        ("NEXTN", "", {"algorithm": "MTP"}),
        ("FROZEN_KV_MTP", "", {"algorithm": "MTP"}),
        ("EAGLE", "lmsys/DeepSeek-V3-0324-NextN", {"algorithm": "MTP", "source": "hf://lmsys/DeepSeek-V3-0324-NextN"}),
        ("EAGLE", "google/gemma-4-31B-it-assistant", {"algorithm": "MTP",
         "source": "hf://google/gemma-4-31B-it-assistant"}),
        ("NEXTN", "lmsys/DeepSeek-V3-NextN", {"algorithm": "NEXTN", "source": "hf://lmsys/DeepSeek-V3-NextN"}),
        ("EAGLE", "lmsys/sglang-EAGLE-llama2-chat-7B", {"algorithm": "EAGLE",
         "source": "hf://lmsys/sglang-EAGLE-llama2-chat-7B"}),
    ],
)  # fmt: skip
def test_other_names_of_mtp(algorithm: str, path: str, draft: Any, says: Says) -> None:
    """What SGLang's own pages write for DeepSeek, GLM and Kimi (sglang#30296, #6296, PR 24436)."""
    head = ["--speculative-draft-model-path", path] if path else []
    shape = ["--speculative-num-steps", "1", "--speculative-eagle-topk", "1"]
    found, candidate, notes = of("SGLang", "0.5.23", "--speculative-algorithm", algorithm, *head, *shape)
    assert found == draft
    assert candidate == {"name": "current", "tree": {"numSteps": 1, "topK": 1, "numDraftTokens": 2}}
    says(*notes)


def test_sglang_jax_has_one_word_for_it() -> None:
    flags = ["--speculative-algorithm", "NEXTN", "--speculative-num-steps", "1", "--speculative-eagle-topk", "1"]
    assert of("SGLangJAX", "0.1.0", *flags)[0] == {"algorithm": "NEXTN"}


def test_what_sglang_chooses_by_itself_is_a_guess_and_said(says: Says) -> None:
    _, candidate, notes = of("SGLang", "0.5.23", *EAGLE3.split())
    assert candidate == {"name": "current", "tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}}
    assert len(notes) == 2
    says(*notes)


def test_flags_without_an_algorithm_do_nothing(says: Says) -> None:
    draft, candidate, notes = of("SGLang", "0.5.23", "--speculative-num-steps", "3")
    assert (draft, candidate) == (None, None)
    says(*notes)


@pytest.mark.parametrize(
    ("said", "draft", "shape"),
    [
        (
            {"method": "eagle3", "model": "a/head", "num_speculative_tokens": 4},
            HEAD,
            {"tree": {"numSteps": 4, "topK": 1, "numDraftTokens": 5}},
        ),
        (
            {"method": "deepseek_mtp", "num_speculative_tokens": 1},
            {"algorithm": "MTP"},
            {"tree": {"numSteps": 1, "topK": 1, "numDraftTokens": 2}},
        ),
        (
            {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4},
            {"algorithm": "NGRAM"},
            {"ngram": {"maxMatch": 4, "numDraftTokens": 6}},
        ),
        (
            {"method": "dflash", "model": "a/head", "num_speculative_tokens": 15},
            {"algorithm": "DFLASH", "source": "hf://a/head"},
            {"blockSize": 16},
        ),
        (
            {"method": "eagle3", "model": "a/head", "num_speculative_tokens": 7, "enable_adaptive_verification": True},
            HEAD,
            {"adaptive": {"numSteps": 7}},
        ),
        (
            {"method": "suffix", "num_speculative_tokens": 8},
            {"algorithm": "Custom", "name": "suffix"},
            {"custom": {"args": ["--speculative-config.num_speculative_tokens=8"]}},
        ),
    ],
)
def test_vllm(said: Any, draft: Any, shape: Any) -> None:
    found, candidate, notes = of("vLLM", "0.33.0", "--speculative-config", json.dumps(said))
    assert (found, candidate) == (draft, {"name": "current", **shape})
    assert len(notes) == 1


def test_vllm_key_by_key() -> None:
    keys = ("method=draft_model", "model=a/small", "num_speculative_tokens=3")
    draft, candidate, _ = of("vLLM", "0.33.0", *(f"--speculative-config.{key}" for key in keys))
    assert draft == {"algorithm": "STANDALONE", "source": "hf://a/small"}
    assert candidate["tree"]["numSteps"] == 3


def test_what_vllm_guesses_is_said_and_what_has_no_field_is_an_argument(says: Says) -> None:
    said = {"model": "a/Eagle3-x", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1}
    draft, candidate, notes = of("vLLM", "0.33.0", "--speculative-config", json.dumps(said))
    assert draft == {"algorithm": "EAGLE3", "source": "hf://a/Eagle3-x"}
    assert candidate["args"] == ["--speculative-config.draft_tensor_parallel_size=1"]
    assert len(notes) == 2
    says(*notes)
