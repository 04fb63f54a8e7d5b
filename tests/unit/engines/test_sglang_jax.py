"""How an arm becomes a sglang-jax process on a TPU, what is refused before it does, and what a round reads of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.jax_servers import BASELINE, HEAD, JAX, TARGET, arm, server
from tests.support.messages import Says

from paceline.core import Arm, SecretKey, Server
from paceline.engines.probe import Scrape
from paceline.engines.sglang_jax.rules import MANAGED_FLAGS, RULES


def refused(server: Server, arm: Arm = BASELINE, says: Says = lambda *_: None) -> list[str]:
    """`rule path` of each; a path below an arm begins with its name."""
    refusals = JAX.refusals(server, (BASELINE,) if arm is BASELINE else (BASELINE, arm))
    says(*(one.message for one in refusals))
    return [f"{one.rule} {f'{one.arm}.' if one.arm else ''}{one.path}" for one in refusals]


# argv


def test_the_flags_of_the_model_card_are_all_there() -> None:
    """The card of the EAGLE3 head for Qwen3-8B: EAGLE3, topk 1, 3 steps, 4 tokens, tp 4, bfloat16."""
    assert JAX.argv(server(), arm()) == (
        "python3", "-u", "-m", "sgl_jax.launch_server",
        "--model-path", TARGET,
        "--served-model-name", "qwen3-8b",
        "--host", "0.0.0.0",
        "--port", "30000",
        "--tp-size", "4",
        "--random-seed", "0",
        "--decode-log-interval", "1",
        "--max-running-requests", "64",
        "--dtype", "bfloat16",
        "--mem-fraction-static", "0.8",
        "--watchdog-timeout", "1200",
        "--speculative-algorithm", "EAGLE3",
        "--speculative-draft-model-path", HEAD,
        "--speculative-num-steps", "3",
        "--speculative-eagle-topk", "1",
        "--speculative-num-draft-tokens", "4",
        "--page-size=64",
    )  # fmt: skip


def test_an_arm_adds_its_speculation_and_nothing_else() -> None:
    baseline, chain = JAX.argv(server("--page-size=64"), BASELINE), JAX.argv(server("--page-size=64"), arm())
    added = chain[len(baseline) - 1 : -1]
    assert (*baseline[:-1], *added, "--page-size=64") == chain
    assert all(flag.startswith("--speculative-") for flag in added[::2])


def test_a_block_is_one_step() -> None:
    argv = JAX.argv(server("--grammar-backend=none"), arm("DFLASH", block_size=16))
    shape = argv[argv.index("--speculative-num-steps") : argv.index("--grammar-backend=none")]
    assert shape == (
        "--speculative-num-steps", "1", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "16",
    )  # fmt: skip


@pytest.mark.parametrize(
    "pasted", ["--dtype=float32", "--mem-fraction-static=0.7", "--watchdog-timeout=600", "--max-running-requests=96"]
)
def test_what_a_user_pins_is_left_alone(pasted: str) -> None:
    argv = JAX.argv(server(pasted), arm())
    assert [one for one in argv if one.split("=")[0] == pasted.split("=")[0]] == [pasted]


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 64), (32, 64), (100, 200)])
def test_every_arm_runs_as_many_requests(concurrency: int, requests: int) -> None:
    busy = replace(server(), max_concurrency=concurrency)
    for one in (BASELINE, arm()):
        assert JAX.expected(busy, one)["max_running_requests"] == requests


def test_a_slice_of_two_hosts_has_ranks_and_counts_the_devices_of_both() -> None:
    argv = JAX.argv(server(nodes=2, tensor_parallel_size=8), arm())
    assert argv[argv.index("--tp-size") + 1] == "8"
    assert argv[argv.index("--nnodes") + 1 : argv.index("--dist-init-addr")] == (
        "2", "--node-rank", "$(LWS_WORKER_INDEX)",
    )  # fmt: skip
    assert refused(server(nodes=2, tensor_parallel_size=8), arm()) == []


def test_a_key_is_named_and_never_known() -> None:
    keyed = replace(server(), engine=replace(server().engine, api_key=SecretKey(name="keys", key="serve")))
    argv = JAX.argv(keyed, BASELINE)
    assert argv[argv.index("--api-key") + 1] == "$(PACELINE_API_KEY)"
    (key,) = (variable for variable in JAX.env(keyed) if variable["name"] == "PACELINE_API_KEY")
    assert key["valueFrom"] == {"secretKeyRef": {"name": "keys", "key": "serve"}}


def test_compiled_programs_outlive_the_pod() -> None:
    env = {variable["name"]: variable["value"] for variable in JAX.env(server())}
    assert env["JAX_COMPILATION_CACHE_DIR"] == JAX.jit_cache
    assert (env["HF_HUB_OFFLINE"], env["HF_HUB_CACHE"]) == ("1", "/models/hub")


# what the server must say of itself


def test_a_candidate_must_say_that_it_speculates_as_asked() -> None:
    assert JAX.expected(server(), arm()) == {
        "served_model_name": "qwen3-8b",
        "tp_size": 4,
        "random_seed": 0,
        "decode_log_interval": 1,
        "max_running_requests": 64,
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
    }


def test_a_baseline_must_say_that_it_does_not_but_shows_unused_defaults() -> None:
    expected = JAX.expected(server(), BASELINE)
    assert expected["speculative_algorithm"] is None
    assert "speculative_num_steps" not in expected


# refusals

BLOCKS = arm("DFLASH", block_size=16)
BUFFERED = server("--enable-recurrent-extra-buffer")
BY_TOKEN = replace(server(), engine=replace(server().engine, args=()))
FORMLESS = server("--grammar-backend=none")
LORA = server("--grammar-backend=none", "--enable-lora")
UNMIXED = "--disable-overlap-schedule"
ROWS: list[tuple[str, Server, Arm, str]] = [
    ("owned-flag", server("--spec=1"), BASELINE, "engine.args[0]"),
    ("owned-flag", server("--speculative-num-steps=1"), BASELINE, "engine.args[0]"),
    ("stray-word", server("page-size=64"), BASELINE, "engine.args[0]"),
    ("stray-word", server(), arm("EAGLE3", "8"), "chain.args[0]"),
    ("known-flag", server("--attention-backend=fa", "--prefill-max-tokens"), BASELINE, "engine.args[1]"),
    ("known-flag", server(), arm("EAGLE3", "--page-sise=1"), "chain.args[0]"),
    # What GPU examples are full of.
    ("known-value", server("--attention-backend=triton"), BASELINE, "engine.args[0]"),
    ("known-value", server("--attention-backend", "fa3"), BASELINE, "engine.args[0]"),
    ("known-value", server("--log-requests-level=5"), BASELINE, "engine.args[0]"),
    ("known-value", server("--page-size=big"), BASELINE, "engine.args[0]"),
    ("known-value", server("--page-size", "--enable-mixed-chunk"), BASELINE, "engine.args[0]"),
    ("known-value", server("--enable-mixed-chunk=true"), BASELINE, "engine.args[0]"),
    ("whole-flag", server("--mem-frac=0.7"), BASELINE, "engine.args[0]"),
    ("whole-flag", server("--max-l=1"), BASELINE, "engine.args[0]"),
    ("one-value", server("--page-size=1", "--page-size", "2"), BASELINE, "engine.args[1]"),
    ("no-variables", server("--tokenizer-path=$(WHERE)"), BASELINE, "engine.args[0]"),
    ("equal-arms", server(), arm("EAGLE3", "--dtype=float32"), "chain.args[0]"),
    ("equal-arms", server(), arm("EAGLE3", UNMIXED), "chain.args[0]"),
    ("equal-arms", server(), arm("EAGLE3", "--precompile-bs-paddings", "16", "32"), "chain.args[0]"),
    ("kv-cache-dtype", server("--kv-cache-dtype", "fp8_e4m3"), BASELINE, "engine.args[0]"),
    ("device-indexes", server("--device-indexes", "0", "1"), BASELINE, "engine.args[0]"),
    ("every-device", server(tensor_parallel_size=2), BASELINE, "accelerator.tensorParallelSize"),
    ("two-devices-a-chip", server(product="tpu7x"), BASELINE, "accelerator.product"),
    # What one arm needs is asked of all.
    ("overlap", server("--attention-backend=native"), arm(), "engine.args"),
    ("overlap", server(version="0.0.3"), arm(), "engine.args"),
    ("overlap", server(), arm("EAGLE"), "engine.args"),
    ("dflash-grammar", server(), BLOCKS, "engine.args"),
    ("dflash-lora", LORA, BLOCKS, "engine.args[1]"),
    ("recurrent-buffer", BUFFERED, arm(), "engine.args[0]"),
    ("page-size", server("--page-size=1"), arm(), "engine.args[0]"),
    ("page-size", BY_TOKEN, arm(), "engine.args"),
    ("page-size", BY_TOKEN, arm("NEXTN"), "engine.args"),
    ("log-lines", server("--log-level=warning"), BASELINE, "engine.args[0]"),
    ("key-variable", server(env=({"name": "PACELINE_API_KEY", "value": "k"},)), BASELINE, "engine.env[0].name"),
]
GOOD: list[tuple[Server, Arm]] = [
    (server("--dtype=bfloat16", "--page-size", "64"), arm()),  # the card
    (server("--page-sise=1", version="0.2.0"), BASELINE),  # nothing is known of its flags
    (server("--kv-cache-dtype=bf16"), BASELINE),
    (server(version="0.1.0rc0"), arm()),
    (server("--attention-backend=fa"), arm()),
    (server(UNMIXED, version="0.0.3"), arm()),
    (server(version="0.0.3"), arm("NEXTN")),
    (server(UNMIXED), arm("EAGLE")),
    (FORMLESS, BLOCKS),
    (LORA, arm()),
    (BUFFERED, BASELINE),
    (server("--page-size=16"), arm()),
    (replace(BY_TOKEN, engine=replace(BY_TOKEN.engine, args=("--disable-radix-cache",))), arm()),
    (replace(BY_TOKEN, engine=replace(BY_TOKEN.engine, args=("--grammar-backend=none",))), BLOCKS),
    (BY_TOKEN, BASELINE),  # which frees every token
    (server("--page-size=1"), BASELINE),
]


@pytest.mark.parametrize(("rule", "server", "arm", "path"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule(rule: str, server: Server, arm: Arm, path: str, says: Says) -> None:
    assert refused(server, arm, says=says) == [f"{rule} {path}"]


@pytest.mark.parametrize("flag", [flag for flag in MANAGED_FLAGS if not flag.endswith("*")])
def test_what_paceline_sets_is_not_set_by_hand(flag: str, says: Says) -> None:
    assert refused(server(f"{flag}=1"), says=says) == ["owned-flag engine.args[0]"]


def test_what_an_arm_says_again_is_also_said_twice() -> None:
    found = refused(server("--stream-interval=1"), arm("EAGLE3", "--stream-interval=2"))
    assert found == ["one-value chain.args[0]", "equal-arms chain.args[0]"]


@pytest.mark.parametrize(("server", "arm"), GOOD)
def test_what_goes_is_let_go(server: Server, arm: Arm) -> None:
    assert refused(server, arm) == []


def test_every_rule_has_a_row() -> None:
    assert {row[0] for row in ROWS} == {rule.id for rule in RULES}


def test_targets_that_can_carry_an_eagle3_head() -> None:
    assert JAX.eagle3_targets("0.1.0rc0") == {"LlamaForCausalLM", "Qwen3ForCausalLM"}
    assert JAX.eagle3_targets("0.2.0") is None


# what a round reads

STEP = (
    "[2026-08-29 12:00:01] Decode batch. #running-req: {}, #token: 913, token usage: 0.01, {}gen throughput (token/s): "
)
PROBE = JAX.probe("0.1.0")


def scrape(*lines: str, **info: Any) -> Scrape:
    return Scrape(pages={"/get_server_info": json.dumps(info)}, log="\n".join(lines))


def decode(requests: int, length: float) -> str:
    return STEP.format(requests, f"accept-len {length:.2f}, accept-ratio {length / 4:.2f}, ")


PREFILL = "[2026-08-29 12:00:01] Prefill batch. #new-seq: 1, #new-token: 64, #cached-token: 0, token usage: 0.01, "


def test_the_acceptance_length_is_that_of_all_requests_since_the_look_before() -> None:
    """A step of four requests counts four times: (9 + 2) tokens in (4 + 1) verify calls. Without overlap, that is."""
    before = (decode(1, 1.0), "[…] Cache flushed successfully!")
    during = (decode(4, 2.25), decode(1, 2.0))
    seen = PROBE.speculation(scrape(*before), scrape(*before, *during, disable_overlap_schedule=True))
    assert (seen.accept_length, seen.verify_calls, seen.retractions) == (11 / 5, 5, 0)


@pytest.mark.parametrize(
    ("lines", "verified"),
    [
        ((decode(4, 2), decode(4, 3), decode(1, 1)), 4 + 1 + 1),
        ((decode(3, 2), decode(3, 2), decode(1, 2), STEP.format(1, "")), 3 + 1 + 1),
        ((decode(2, 2), STEP.format(2, "")), 2),
        ((PREFILL, decode(2, 2), PREFILL, decode(2, 2), decode(1, 2), decode(3, 2), decode(3, 2)), 2 + 2 + 1 + 3 + 3),
        ((PREFILL, decode(1, 2), decode(2, 2), decode(1, 2), decode(3, 2), decode(3, 2)), 1 + 2 + 1 + 3 + 3),
        ((PREFILL, "[…] Prefill batch. #bid: 2, #cache_miss: 1", decode(2, 2), decode(1, 2)), 2 + 1),
    ],
    ids=[
        "three ended",
        "one after the other",
        "all at once",
        "new ones run by themselves first",
        "by themselves two steps after their prefill",
        "a compile",
    ],
)
def test_of_overlapping_steps_those_that_had_ended_are_left_out(lines: tuple[str, ...], verified: int) -> None:
    """They are in the step that was launched before that was known, and no more in the one after."""
    assert PROBE.speculation(scrape(), scrape(*lines)).verify_calls == verified


def test_thirds_are_whole_tokens_again() -> None:
    seen = PROBE.speculation(scrape(), scrape(*[STEP.format(3, "accept-len 2.33, accept-ratio 0.58, ")] * 1000))
    assert seen.accept_length == pytest.approx(7 / 3, rel=1e-12)


def test_a_baseline_has_steps_and_no_acceptance() -> None:
    seen = PROBE.speculation(scrape(), scrape(STEP.format(2, "")))
    assert (seen.accept_length, seen.verify_calls, seen.retractions) == (None, None, 0)


def test_requests_that_lost_their_place_are_counted() -> None:
    full = "[…] KV cache pool is full. Retract requests. #retracted_reqs: 3, #aborted_reqs: 0, #new_token_ratio: 0.7"
    assert PROBE.speculation(scrape(), scrape(STEP.format(2, ""), full, full)).retractions == 6


def test_a_log_without_steps_says_nothing_rather_than_nothing_happened() -> None:
    seen = PROBE.speculation(
        scrape("booting"), scrape("booting", "INFO:     127.0.0.1 - POST /v1/chat/completions 200")
    )
    assert (seen.accept_length, seen.verify_calls, seen.retractions) == (None, None, None)


def test_resolved_arguments_are_in_the_server_info() -> None:
    assert PROBE.resolved(scrape(tp_size=4, version="0.1.0"))["tp_size"] == 4
