"""How an arm becomes a vLLM process, and what that must then say of itself."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.vllm_server import BASE, HEAD, SERVER, chain, server

from paceline.core import CUSTOM, Arm, Draft, Ngram, SecretKey
from paceline.engines import ENGINES
from paceline.engines.vllm.arguments import FLAGS
from paceline.engines.vllm.rules import METHODS

VLLM = ENGINES["vLLM"]
SNAPSHOT = f"/models/hub/models--Qwen--Qwen3-Coder-30B-A3B-Instruct/snapshots/{'1' * 40}"
HEADS = f"/models/hub/models--yuhuili--Eagle3-Qwen3-30B-A3B/snapshots/{'2' * 40}"


def speculation(arm: Arm) -> Any:
    argv = VLLM.argv(SERVER, arm)
    return json.loads(argv[argv.index("--speculative-config") + 1])


def test_the_whole_argv_of_the_baseline() -> None:
    assert VLLM.argv(SERVER, BASE) == (
        "vllm", "serve", SNAPSHOT,
        "--served-model-name", "qwen3-coder-30b",
        "--host", "0.0.0.0",
        "--port", "8000",
        "--tensor-parallel-size", "1",
        "--seed", "0",
        "--max-num-seqs", "48",
        "--override-generation-config", '{"min_p":0}',
        "--shutdown-timeout", "120",
        "--max-model-len=32768",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("version", "args", "given"),
    [
        ("0.33.0", (), "120"),
        ("0.34.1", (), "120"),
        ("0.33.0", ("--shutdown-timeout", "600"), "600"),
        ("0.33.0", ("--shutdown_timeout=600",), None),
        ("0.12.0", (), None),
        ("nightly", (), None),
    ],
)
def test_a_server_that_is_replaced_finishes_its_requests(
    version: str, args: tuple[str, ...], given: str | None
) -> None:
    """By default vLLM aborts them. A release that may not know the option is not given it."""
    asked = replace(SERVER, engine=replace(SERVER.engine, version=version, args=args))
    argv = VLLM.argv(asked, BASE)
    assert argv.count("--shutdown-timeout") == (given is not None)
    assert given is None or argv[argv.index("--shutdown-timeout") + 1] == given


def test_the_serving_card_of_the_published_numbers() -> None:
    """As published for a GB10: method eagle3, this head, num_speculative_tokens 4."""
    assert speculation(chain(4)) == {"method": "eagle3", "model": HEADS, "num_speculative_tokens": 4}


def test_arms_differ_in_their_speculation_alone() -> None:
    base, four = VLLM.argv(SERVER, BASE), VLLM.argv(SERVER, chain(4))
    assert [word for word in four if word not in base][0::2] == ["--speculative-config"]
    assert len(four) == len(base) + 2


@pytest.mark.parametrize(
    ("algorithm", "shape", "said"),
    [
        ("EAGLE", {"tree": chain(3).tree}, {"method": "eagle", "model": HEADS, "num_speculative_tokens": 3}),
        ("MTP", {"tree": chain(1).tree}, {"method": "mtp", "model": HEADS, "num_speculative_tokens": 1}),
        ("NEXTN", {"tree": chain(1).tree}, {"method": "mtp", "model": HEADS, "num_speculative_tokens": 1}),
        ("STANDALONE", {"tree": chain(5).tree}, {"method": "draft_model", "model": HEADS, "num_speculative_tokens": 5}),
        ("DFLASH", {"block_size": 16}, {"method": "dflash", "model": HEADS, "num_speculative_tokens": 15}),
        ("DSPARK", {"block_size": 7}, {"method": "dspark", "model": HEADS, "num_speculative_tokens": 7}),
    ],
)
def test_what_is_said_of_each_algorithm(algorithm: str, shape: dict[str, Any], said: dict[str, Any]) -> None:
    assert speculation(Arm(name="arm", draft=Draft(algorithm=algorithm, model=HEAD), **shape)) == said


def test_a_head_in_the_targets_own_checkpoint_is_not_named() -> None:
    assert speculation(chain(1, algorithm="MTP", model=None)) == {"method": "mtp", "num_speculative_tokens": 1}


def test_ngram_needs_no_head() -> None:
    """Its width counts the token that verifying adds, as a tree's does."""
    asked = Ngram(num_draft_tokens=6, min_match=2, max_match=4)
    arm = Arm(name="ngram", draft=Draft(algorithm="NGRAM"), ngram=asked)
    said = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
    assert speculation(arm) == said
    assert speculation(replace(arm, ngram=Ngram())) == {"method": "ngram", "num_speculative_tokens": 4}


def test_every_option_is_one_of_vllms_own() -> None:
    for arm in (BASE, chain(4)):
        for parsed in FLAGS.parse(VLLM.argv(server(trust_remote_code=True), arm)[3:]):
            assert parsed.flag, parsed


@pytest.mark.parametrize(
    ("args", "seats"),
    [((), "48"), (("--max-num-seqs=16",), None), (("--max_num_seqs", "16"), None)],
)
def test_requests_at_a_time_are_pinned(args: tuple[str, ...], seats: str | None) -> None:
    argv = VLLM.argv(server(*args), BASE)
    assert (argv[argv.index("--max-num-seqs") + 1] if "--max-num-seqs" in argv else None) == seats


def test_room_for_twice_the_largest_concurrency() -> None:
    argv = VLLM.argv(replace(SERVER, max_concurrency=64), BASE)
    assert argv[argv.index("--max-num-seqs") + 1] == "128"


def test_the_environment() -> None:
    said = {one["name"]: one.get("value") for one in VLLM.env(SERVER)}
    assert said["VLLM_USE_V2_MODEL_RUNNER"] == "1"
    assert said["VLLM_CACHE_ROOT"] == VLLM.jit_cache
    assert said["HF_HUB_OFFLINE"] == "1"
    assert "VLLM_SERVER_DEV_MODE" not in said


def test_a_users_variable_wins() -> None:
    mine = {"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"}
    assert [one for one in VLLM.env(server(env=(mine,))) if one["name"] == mine["name"]] == [mine]


def test_a_key_comes_from_its_secret_and_is_in_no_argument() -> None:
    keyed = server(api_key=SecretKey(name="keys", key="api"))
    reference = {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}
    assert reference in VLLM.env(keyed)
    assert VLLM.argv(keyed, BASE) == VLLM.argv(server(), BASE)


def test_what_a_server_must_say_of_itself() -> None:
    assert VLLM.expected(SERVER, chain(4)) == {
        "served_model_name": "qwen3-coder-30b",
        "tensor_parallel_size": 1,
        "seed": 0,
        "method": "eagle3",
        "num_spec_tokens": 4,
        "draft_positions": 4,
    }
    base = VLLM.expected(SERVER, BASE)
    assert (base["method"], base["num_spec_tokens"], base["draft_positions"]) == (None, None, 0)


def test_every_algorithm_that_the_api_lets_pass_has_a_method() -> None:
    assert {*METHODS, CUSTOM} == set(ENGINES["vLLM"].capabilities.algorithms)
