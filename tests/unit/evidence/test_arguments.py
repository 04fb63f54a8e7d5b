"""What servers say they run with: what is told of it, and where an arm's is not the baseline's."""

from typing import Any

from paceline.evidence.arguments import (
    LONGEST_VALUE_SHOWN,
    Difference,
    arguments_digest,
    comparable,
    differences,
    in_common,
    pick,
    publishable,
)

PLAIN = {"attention_backend": "triton", "speculative_num_draft_tokens": 8, "dtype": "auto"}
SECRETS = {
    "api_key": "s3cret",
    "admin_api_key": "s3cret",
    "hf_token": "s3cret",
    "ssl_keyfile_password": "s3cret",
    "keys": ["s3cret"],
    "launch_command": "serve --api-key s3cret",
    "internal_states": [{"api_key": "s3cret"}],
    "nested": {"api_key": "s3cret"},
}


def test_secrets_are_neither_kept_nor_hashed() -> None:
    watched = ("attention_backend", "speculative_num_draft_tokens", "api_key", "admin_api_key")
    assert pick(PLAIN | SECRETS, watched) == {"attention_backend": "triton", "speculative_num_draft_tokens": 8}
    assert "s3cret" not in str(comparable(PLAIN | SECRETS, ()))
    flat = {key: value for key, value in SECRETS.items() if key != "nested"}
    assert "s3cret" not in str(publishable(PLAIN | flat))
    assert arguments_digest(comparable(PLAIN | flat, ())) == arguments_digest(comparable(PLAIN, ()))


def test_numbers_are_compared_whatever_their_name_and_so_are_tokenizers() -> None:
    said = {"max_prefill_tokens": 16384, "tokenizer_path": "/models/a", "skip_tokenizer_init": False, "api_key": None}
    assert comparable(said, ()) == {
        "api_key": "null",
        "max_prefill_tokens": "16384",
        "skip_tokenizer_init": "false",
        "tokenizer_path": '"/models/a"',
    }


def test_the_digest_tells_other_arguments_apart_but_not_processes() -> None:
    def of(**said: Any) -> str:
        return arguments_digest(comparable(said, ()))

    one = of(dtype="auto", startup_time={"load": 1.5})
    assert one == of(startup_time={"load": 2.5}, dtype="auto")
    assert one != of(dtype="bfloat16")


def test_what_speculation_moves_is_left_out_by_name_by_branch_and_by_beginning() -> None:
    said = {
        "cuda_graph_config": {"decode": {"bs": [1, 2], "max_bs": 2}, "prefill": {"bs": [4]}},
        "speculative_num_steps": 3,
        "speculative": 1,
        "memory_usage": {"graph": 1.5},
        "memory": 2,
    }
    assert comparable(said, ("speculative_*", "cuda_graph_config.decode.bs", "memory_usage")) == {
        "cuda_graph_config.decode.max_bs": "2",
        "cuda_graph_config.prefill.bs": "[4]",
        "memory": "2",
        "speculative": "1",
    }


def test_differences_are_told_by_name_with_both_values_and_in_few_words() -> None:
    assert differences({"a": "1", "b": '"x"'}, {"a": "1", "b": '"y"', "c": "null"}) == (
        Difference("b", "x", "y"),
        Difference("c", "—", "null"),
    )
    assert str(Difference("stream_interval", "8", "1")) == "stream_interval is 8, but 1 on the baseline"
    (long,) = differences({"a": "x" * 99}, {"a": "y"})
    assert len(long.value) == LONGEST_VALUE_SHOWN
    assert [one.name for one in differences({"a": "1", "b": "1"}, {}, held=("b",))] == ["b", "a"]
    assert differences({"a": "1"}, {"a": "1"}) == ()


def test_what_an_engine_leaves_unset_is_not_compared_with_another_engine() -> None:
    """vLLM names the method of a quantised checkpoint, where SGLang has null."""
    assert in_common("SGLang", {"quantization": "null", "kv_cache_dtype": '"auto"', "tp_size": "1"}) == {
        "kv_cache_dtype": '"auto"'
    }
    assert in_common("vLLM", {"quantization": '"fp8"'}) == {"quantization": '"fp8"'}
