"""What vLLM's start log and metrics say of what it runs with, and of its speculation."""

import json

import pytest

from paceline.engines import ENGINES, ProbeError, Scrape, Speculation

PROBE = ENGINES["vLLM"].probe("0.33.0")
CONFIGURED = (
    "(EngineCore pid=41) INFO 11-21 15:35:16 [core.py:140] Initializing a V1 LLM engine (v0.33.0) with config: "
    "model='/models/hub/a, b', speculative_config=SpeculativeConfig(method='eagle3', model='/models/it\\'s', "
    "num_spec_tokens=4), tokenizer='/models/hub/a', dtype=torch.bfloat16, max_seq_len=32768, quantization=None, "
    "quantization_config=FP8(dtype=x, ignore=['a', 'b']), enforce_eager=False, kv_cache_dtype=auto, seed=0, "
    "served_model_name=qwen3-coder-30b, enable_prefix_caching=True, compilation_config={'mode': 3, 'sizes': [1, 2]}"
)
CACHE = 'vllm:cache_config_info{block_size="16",engine="0",gpu_memory_utilization="0.8",num_gpu_blocks="9000"} 1.0\n'


def scrape(metrics: str = "", log: str = CONFIGURED) -> Scrape:
    return Scrape(pages={"/version": json.dumps({"version": "0.33.0"}), "/metrics": metrics}, log=log)


def speculated(drafts: float, accepted: float, preemptions: float = 0, engine: str = "0") -> str:
    labels = f'{{engine="{engine}",model_name="qwen3-coder-30b"}}'
    return (
        f"vllm:spec_decode_num_drafts_total{labels} {drafts}\n"
        f"vllm:spec_decode_num_accepted_tokens_total{labels} {accepted}\n"
        f"vllm:num_preemptions_total{labels} {preemptions}\n"
    )


def test_the_configuration_of_a_start_log() -> None:
    positions = "".join(
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="{engine}",position="{position}"}} 0.0\n'
        for engine in (0, 1)
        for position in range(4)
    )
    assert PROBE.resolved(scrape(CACHE + positions)) == {
        "version": "0.33.0",
        "model": "/models/hub/a, b",
        "tokenizer": "/models/hub/a",
        "dtype": "torch.bfloat16",
        "max_seq_len": 32768,
        "quantization": None,
        "quantization_config": "FP8(dtype=x, ignore=['a', 'b'])",
        "enforce_eager": False,
        "kv_cache_dtype": "auto",
        "seed": 0,
        "served_model_name": "qwen3-coder-30b",
        "enable_prefix_caching": True,
        "compilation_config": {"mode": 3, "sizes": "[1, 2]"},
        "block_size": 16,
        "gpu_memory_utilization": 0.8,
        "method": "eagle3",
        "num_spec_tokens": 4,
        "draft_positions": 4,
        "speculative_depth": "fixed",
    }


ASKED = (
    "(APIServer pid=1) INFO 11-22 02:47:50 [startup.py:96] non-default args: {{'model_tag': 'm', 'speculative_config': "
    "{{'method': 'eagle3', 'num_speculative_tokens': 4, {0}}}}}\n" + CONFIGURED.replace("{", "{{").replace("}", "}}")
).format
SCHEDULE = "'num_speculative_tokens_per_batch_size': [[1, 16, 4], [17, 48, 0]]"
DROPPED = (
    "WARNING [vllm.py:1121] Dynamic speculative decoding is not supported with data parallelism. Disabling "
    "num_speculative_tokens_per_batch_size and falling back to static num_speculative_tokens=4.\n"
)


@pytest.mark.parametrize(
    ("log", "depth"),
    [
        (ASKED("'draft_sample_method': 'greedy'"), "fixed"),
        (ASKED("'enable_adaptive_verification': True"), "adaptive"),
        (ASKED("'enable_adaptive_verification': False"), "fixed"),
        (ASKED(SCHEDULE), "schedule"),
        (DROPPED + ASKED(SCHEDULE), "fixed"),
        ("'enable_adaptive_verification': True\n" + CONFIGURED, "fixed"),
    ],
)
def test_what_decides_how_many_tokens_are_proposed(log: str, depth: str) -> None:
    """The engine's own configuration does not tell; a schedule that vLLM drops is told by a warning alone."""
    assert PROBE.resolved(scrape(CACHE, log))["speculative_depth"] == depth


def test_a_server_that_does_not_speculate() -> None:
    log = "Initializing a V1 LLM engine (v0.33.0) with config: model='m', speculative_config=None, seed=0\nmore"
    said = PROBE.resolved(scrape(log=log))
    assert (said["method"], said["num_spec_tokens"], said["draft_positions"], said["seed"]) == (None, None, 0, 0)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("INFO [kv_cache_utils.py:1717] GPU KV cache size: 655,360 tokens", 655_360),
        ("GPU KV cache size: 900 tokens, Maximum concurrency for 4,096 tokens per request: 0.22x", 900),
        ("GPU KV cache size: 0 tokens", None),
        ("INFO [kv_cache_utils.py:1147] CPU KV cache size: 465,920 tokens, Maximum concurrency for", 465_920),
        ("XPU KV cache size: 900 tokens", 900),
        ("GPU + host KV cache size: 1,900 tokens", 1_900),
        ("nothing of it", None),
    ],
)
def test_what_its_cache_holds_is_in_the_start_log(line: str, tokens: int | None) -> None:
    assert PROBE.kv_tokens(scrape(log=f"{CONFIGURED}\n{line}\nmore")) == tokens


@pytest.mark.parametrize(("said", "tokens"), [("465920", 465_920), ("None", 900), ("0", None)])
def test_what_its_cache_holds_is_in_its_configuration_first(said: str, tokens: int | None) -> None:
    metrics = f'vllm:cache_config_info{{block_size="128",engine="0",kv_cache_size_tokens="{said}"}} 1.0\n'
    assert PROBE.kv_tokens(scrape(metrics, log="GPU KV cache size: 900 tokens")) == tokens


def test_a_log_without_its_configuration_is_no_evidence() -> None:
    with pytest.raises(ProbeError, match="Initializing a V1 LLM engine"):
        PROBE.resolved(scrape(log="INFO: Application startup complete."))


def test_every_draft_adds_a_token_to_what_it_accepts() -> None:
    """1 + A/D (`v1/spec_decode/metrics.py`: mean acceptance length), of the increase alone."""
    before, after = scrape(speculated(100, 100)), scrape(speculated(300, 460, preemptions=2))
    assert PROBE.speculation(before, after) == Speculation(accept_length=2.8, verify_calls=200, retractions=2)


def at(*counts: float, engine: str = "0") -> str:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    return "".join(
        f'{name}{{engine="{engine}",model_name="qwen3-coder-30b",position="{position}"}} {count}\n'
        for position, count in enumerate(counts)
    )


def test_acceptance_by_position_is_of_the_increase_and_of_all_engines() -> None:
    """Of 200 drafts 150 had their first token accepted, 80 their second, 10 their third."""
    before = scrape(speculated(100, 100) + at(60, 30, 10))
    after = scrape(speculated(200, 250) + at(150, 80, 20) + speculated(100, 90, engine="1") + at(60, 30, 0, engine="1"))
    seen = PROBE.speculation(before, after)
    assert seen.accepted_at == (0.75, 0.4, 0.05)
    assert seen.accept_length == pytest.approx(1 + sum(seen.accepted_at))


def test_more_than_ten_positions_stay_in_their_order() -> None:
    counts = tuple(float(12 - position) for position in range(12))
    after = scrape(speculated(100, sum(counts)) + at(*counts))
    assert PROBE.speculation(scrape(), after).accepted_at == tuple(count / 100 for count in counts)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("", "", "no counter by position"),
        ("", at(150, 80, 20), "they do not add up"),
        (at(40, 0, 30), at(150, 80, 20), "one fell"),
        ("", at(150, 50) + at(float("nan")), "one is no number"),
    ],
)
def test_positions_that_cannot_be_believed_are_left_out(before: str, after: str, why: str) -> None:
    seen = PROBE.speculation(scrape(speculated(0, 0) + before), scrape(speculated(200, 200) + after))
    assert (seen.accept_length, seen.accepted_at) == (2.0, ()), why


def test_a_head_that_accepts_nothing_has_a_length_of_one() -> None:
    assert PROBE.speculation(scrape(), scrape(speculated(200, 0))).accept_length == 1.0


def test_a_sample_with_a_timestamp_is_read() -> None:
    stamped = speculated(20, 30).replace("\n", " 1764201600000\n")
    assert PROBE.speculation(scrape(speculated(10, 10)), scrape(stamped)).accept_length == 3.0


def test_engines_are_added_up() -> None:
    after = scrape(speculated(100, 100) + speculated(100, 300, engine="1"))
    assert PROBE.speculation(scrape(), after) == Speculation(accept_length=3.0, verify_calls=200, retractions=0)


def test_a_server_without_speculation_has_neither_length_nor_calls() -> None:
    page = 'vllm:num_preemptions_total{engine="0"} 0.0\n'
    assert PROBE.speculation(scrape(page), scrape(page)) == Speculation(retractions=0)


def test_a_counter_that_fell_is_not_believed() -> None:
    assert PROBE.speculation(scrape(speculated(300, 10)), scrape(speculated(100, 20))).verify_calls is None


def test_every_load_has_a_cache_of_its_own() -> None:
    salts = [PROBE.body(load)["cache_salt"] for load in ("code-1", "code-1-warm-up", "code-8")]
    assert len(set(salts)) == 3
