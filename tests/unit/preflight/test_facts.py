"""config.json → facts → the termination message → facts."""

import json
from dataclasses import replace

import pytest

from paceline.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3
from paceline.preflight import Fetched, FetchedModel, ModelFacts, model_facts, read_message, write_message


def fetched(count: int) -> Fetched:
    sources = [f"hf://owner/model-{number}" for number in range(count)]
    commit = "a" * 40
    return Fetched(
        models=tuple(
            FetchedModel(
                source=source,
                revision="main",
                commit=commit,
                bytes=159_483_924_480,
                path=f"/models/hub/models--{source[5:].replace('/', '--')}/snapshots/{commit}",
            )
            for source in sources
        ),
        facts={source: model_facts(QWEN3_CODER_NEXT, 159_000_000_000) for source in sources},
    )


def test_facts_of_a_target_that_mixes_layers() -> None:
    facts = model_facts(QWEN3_CODER_NEXT, 159)
    assert facts.architectures == ("Qwen3NextForCausalLM",)
    assert facts.layer_types == {"full_attention": 12, "linear_attention": 36}
    assert (facts.num_attention_heads, facts.num_key_value_heads, facts.head_dim) == (16, 2, 256)
    assert (facts.dtype, facts.weight_bytes, facts.quantization) == ("bfloat16", 159, None)


def test_facts_of_a_head() -> None:
    facts = model_facts(QWEN3_CODER_NEXT_EAGLE3, 278)
    assert (facts.hidden_size, facts.vocab_size, facts.draft_vocab_size) == (2048, 151936, 32000)
    assert (facts.num_hidden_layers, facts.max_position_embeddings) == (1, 4096)


def test_facts_of_a_model_with_more_than_text_and_a_quantization() -> None:
    facts = model_facts(
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "text_config": {"hidden_size": 5120, "dtype": "bfloat16", "layer_types": ["a", "b", "a"]},
            "quantization_config": {"quant_method": "fp8"},
        },
        1,
    )
    assert (facts.hidden_size, facts.dtype, facts.quantization) == (5120, "bfloat16", "fp8")
    assert facts.layer_types == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    "config",
    [{}, {"hidden_size": None}, {"hidden_size": "2048"}, {"architectures": None, "layer_types": 3, "text_config": []}],
)
def test_a_strange_configuration_gives_no_facts(config: dict[str, object]) -> None:
    assert model_facts(config, 1) == ModelFacts(weight_bytes=1)


def test_the_message_comes_back_as_it_was() -> None:
    sent = fetched(2)
    text = write_message(sent)
    assert read_message(text) == sent
    assert len(text) < 1500


def test_a_message_that_would_be_too_long_loses_facts_but_no_commit() -> None:
    sent = fetched(9)
    text = write_message(sent)
    assert len(text.encode()) <= 4096
    assert read_message(text) == replace(sent, facts=dict(list(sent.facts.items())[: len(read_message(text).facts)]))
    assert 0 < len(read_message(text).facts) < 9


def test_more_commits_than_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="30 models do not fit"):
        write_message(fetched(30))


def test_what_a_newer_release_adds_is_ignored() -> None:
    value = json.loads(write_message(fetched(1)))
    value["models"][0]["license"] = "apache-2.0"
    value["facts"]["hf://owner/model-0"]["colour"] = "blue"
    assert read_message(json.dumps(value)) == fetched(1)


@pytest.mark.parametrize(
    "text",
    ["", "hf://a/b: gated; accept its terms", "[]", "3", '{"version":2,"models":[],"facts":{}}', '{"version":1}'],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the message of a finished fetch"):
        read_message(text)
