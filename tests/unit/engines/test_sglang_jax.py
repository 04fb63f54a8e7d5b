"""How an arm becomes a sglang-jax process on a TPU, what is refused before it does, and what a round reads of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.jax_servers import BASELINE, HEAD, JAX, TARGET, arm, server

from paceline.core import Arm, SecretKey, Server
from paceline.engines.probe import Scrape
from paceline.engines.sglang_jax.rules import LISTED, MANAGED_FLAGS, RULES


def refused(server: Server, *arms: Arm) -> list[str]:
    """`rule path: message` of each; a path below an arm begins with its name."""
    refusals = JAX.refusals(server, (BASELINE, *arms))
    return [f"{one.rule} {f'{one.arm}.' if one.arm else ''}{one.path}: {one.message}" for one in refusals]


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


# refusals: a test for each rule


def test_the_card_is_not_refused() -> None:
    assert refused(server("--dtype=bfloat16", "--page-size", "64"), arm()) == []


@pytest.mark.parametrize(
    "flag", [*(flag for flag in MANAGED_FLAGS if not flag.endswith("*")), "--speculative-num-steps"]
)
def test_owned_flag(flag: str) -> None:
    way_out = MANAGED_FLAGS.get(flag, "write a candidate's draft and shape")
    assert refused(server(f"{flag}=1")) == [
        f"owned-flag engine.args[0]: {flag} is set by Paceline from the resource; {way_out}"
    ]
    assert refused(server("--spec=1"))[0].startswith("owned-flag engine.args[0]: --spec (read as --speculative-) is")


def test_stray_word() -> None:
    assert refused(server("page-size=64"), arm("EAGLE3", "8")) == [
        "stray-word engine.args[0]: page-size=64 belongs to no flag; remove it, or write --flag=VALUE",
        "stray-word chain.args[0]: 8 belongs to no flag; remove it, or write --flag=VALUE",
    ]


def test_known_flag() -> None:
    assert refused(server("--attention-backend=fa", "--prefill-max-tokens"), arm("EAGLE3", "--page-sise=1")) == [
        f"known-flag engine.args[1]: sglang-jax {LISTED} has no flag --prefill-max-tokens; "
        "did you mean --pd-prefill-max-tokens?",
        f"known-flag chain.args[0]: sglang-jax {LISTED} has no flag --page-sise; did you mean --page-size?",
    ]
    assert refused(server("--page-sise=1", version="0.2.0")) == [], "nothing is known of its flags"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ("--attention-backend=triton",),
            "--attention-backend cannot be triton; take dsa_sparse, fa, fa_mha, native",
        ),
        (("--attention-backend", "fa3"), "--attention-backend cannot be fa3; did you mean fa?"),
        (("--log-requests-level=5",), "--log-requests-level cannot be 5; take 0, 1, 2, 3"),
        (("--page-size=big",), "--page-size takes a whole number; got big"),
        (("--page-size", "--enable-mixed-chunk"), "--page-size needs a value; write --page-size=VALUE"),
        (("--enable-mixed-chunk=true",), "--enable-mixed-chunk takes no value; write it alone"),
    ],
)
def test_known_value(args: tuple[str, ...], message: str) -> None:
    """What GPU examples are full of."""
    assert refused(server(*args)) == [f"known-value engine.args[0]: {message}"]


@pytest.mark.parametrize(
    ("short", "message"),
    [
        ("--mem-frac=0.7", "is short for --mem-fraction-static; write it in full"),
        (
            "--max-l=1",
            "may be short for --max-loaded-loras, --max-lora-rank, --max-loras-per-batch; write one of them in full",
        ),
    ],
)
def test_whole_flag(short: str, message: str) -> None:
    name = short.split("=")[0]
    assert refused(server(short)) == [f"whole-flag engine.args[0]: {name} {message}"]


def test_one_value() -> None:
    assert refused(server("--page-size=1", "--page-size", "2")) == [
        "one-value engine.args[1]: --page-size is given twice; keep one"
    ]
    assert refused(server("--stream-interval=1"), arm("EAGLE3", "--stream-interval=2"))[0] == (
        "one-value chain.args[0]: --stream-interval is given twice; keep one"
    )


def test_no_variables() -> None:
    assert refused(server("--tokenizer-path=$(WHERE)")) == [
        "no-variables engine.args[0]: --tokenizer-path=$(WHERE): $(VAR) is not filled in; write the value"
    ]


@pytest.mark.parametrize(
    "args", [("--dtype=float32",), ("--disable-overlap-schedule",), ("--precompile-bs-paddings", "16", "32")]
)
def test_equal_arms(args: tuple[str, ...]) -> None:
    assert refused(server(), arm("EAGLE3", *args)) == [
        f"equal-arms chain.args[0]: {args[0].split('=')[0]} is not a speculation flag, and arms may differ in "
        "speculation only: set it in spec.engine.args, for all arms"
    ]


def test_kv_cache_dtype() -> None:
    assert refused(server("--kv-cache-dtype", "fp8_e4m3")) == [
        "kv-cache-dtype engine.args[0]: --kv-cache-dtype fp8_e4m3 stops the server once the model is loaded; write "
        "bf16 or auto"
    ]
    assert refused(server("--kv-cache-dtype=bf16")) == []


def test_device_indexes() -> None:
    assert refused(server("--device-indexes", "0", "1")) == [
        "device-indexes engine.args[0]: --device-indexes must be left out: a server takes every device of its pod; "
        "set accelerator.count to as many as it needs"
    ]


def test_every_device() -> None:
    assert refused(server(tensor_parallel_size=2)) == [
        "every-device accelerator.tensorParallelSize: tensorParallelSize must be count = 4: sglang-jax counts all "
        "devices, data parallelism included; got 2"
    ]


def test_two_devices_a_chip() -> None:
    (refusals,) = refused(server(product="tpu7x"))
    assert refusals.startswith("two-devices-a-chip accelerator.product: tpu7x has two devices per chip")


@pytest.mark.parametrize(
    ("algorithm", "version", "args", "fits"),
    [
        ("EAGLE3", "0.1.0rc0", (), True),
        ("EAGLE3", "0.1.0", ("--attention-backend=fa",), True),
        ("EAGLE3", "0.1.0", ("--attention-backend=native",), False),
        ("EAGLE3", "0.0.3", (), False),
        ("EAGLE3", "0.0.3", ("--disable-overlap-schedule",), True),
        ("NEXTN", "0.0.3", (), True),
        ("EAGLE", "0.1.0", (), False),
        ("EAGLE", "0.1.0", ("--disable-overlap-schedule",), True),
    ],
)
def test_overlap(algorithm: str, version: str, args: tuple[str, ...], fits: bool) -> None:
    """What one arm needs is asked of all: the flag is in spec.engine.args."""
    refusals = refused(server(*args, version=version), arm(algorithm))
    assert [one.split(" is ")[0] for one in refusals] == (
        [] if fits else ["overlap engine.args: --disable-overlap-schedule"]
    )


def test_dflash_grammar() -> None:
    block = arm("DFLASH", block_size=16)
    assert refused(server(), block) == [
        "dflash-grammar engine.args: --grammar-backend=none is missing: candidate chain (DFLASH) has no constrained "
        "decoding"
    ]
    assert refused(server("--grammar-backend=none"), block) == []


def test_dflash_lora() -> None:
    lora = server("--grammar-backend=none", "--enable-lora")
    assert refused(lora, arm("DFLASH", block_size=16)) == [
        "dflash-lora engine.args[1]: --enable-lora cannot be combined with DFLASH; remove it, or candidate chain"
    ]
    assert refused(lora, arm()) == []


def test_recurrent_buffer() -> None:
    buffered = server("--enable-recurrent-extra-buffer")
    assert refused(buffered, arm()) == [
        "recurrent-buffer engine.args[0]: --enable-recurrent-extra-buffer cannot be combined with speculation; "
        "remove it"
    ]
    assert refused(buffered) == []


@pytest.mark.parametrize(
    ("algorithm", "args", "where"),
    [
        ("EAGLE3", ("--page-size=1",), "engine.args[0]"),
        ("EAGLE3", (), "engine.args"),
        ("NEXTN", (), "engine.args"),
        ("EAGLE", ("--disable-overlap-schedule",), "engine.args"),
        ("EAGLE3", ("--page-size", "64"), None),
        ("EAGLE3", ("--page-size=16",), None),
        ("EAGLE3", ("--disable-radix-cache",), None),
        ("DFLASH", ("--grammar-backend=none",), None),
    ],
)
def test_page_size(algorithm: str, args: tuple[str, ...], where: str | None) -> None:
    configured = replace(server(), engine=replace(server().engine, args=args))
    block = {"block_size": 16} if algorithm == "DFLASH" else {}
    assert refused(configured, arm(algorithm, **block)) == (
        []
        if where is None
        else [
            f"page-size {where}: write --page-size=64: with pages of one token, the default, candidate chain "
            f"({algorithm}) exits when first idle (memory leak detected), and all arms must run alike"
        ]
    )
    assert refused(configured) == [], "a baseline frees every token"


def test_log_lines() -> None:
    assert refused(server("--log-level=warning")) == [
        "log-lines engine.args[0]: --log-level: the log lines with the acceptance length have level info; remove it"
    ]


def test_key_variable() -> None:
    assert refused(server(env=({"name": "PACELINE_API_KEY", "value": "k"},))) == [
        "key-variable engine.env[0].name: PACELINE_API_KEY is set by Paceline; write apiKeySecretRef"
    ]


def test_every_rule_has_its_test() -> None:
    assert {f"test_{rule.id.replace('-', '_')}" for rule in RULES} <= set(globals())


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
