"""What vLLM is not asked for: one row a rule, with a message that names the way out."""

from dataclasses import replace

import pytest
from tests.support.messages import Says
from tests.support.one_refusal import refusal_message
from tests.support.vllm_server import BASE, HEAD, SERVER, chain, server

from paceline.core import CUSTOM, Adaptive, Arm, Custom, Depth, Draft, Ngram, Server, Tree
from paceline.engines import ENGINES
from paceline.engines.vllm.rules import RULES

VLLM = ENGINES["vLLM"]
Row = tuple[str, Server, Arm, str]


def named(algorithm: str, **shape: object) -> Arm:
    return Arm(name="four", draft=Draft(algorithm=algorithm, model=HEAD), **shape)  # type: ignore[arg-type]


def custom(*args: str, name: str = "ngram_gpu") -> Arm:
    tokens = () if any("num_spec" in arg for arg in args) else ("--speculative-config.num_speculative_tokens=8",)
    return Arm(name="four", draft=Draft(algorithm=CUSTOM, name=name), custom=Custom(args=(*args, *tokens)))


def newer(*args: str) -> Server:
    """Of a release whose options are not known."""
    known = server(*args)
    return replace(known, engine=replace(known.engine, version="0.33.1"))


OTHER_VOCABULARY = "--speculative-config.use_heterogeneous_vocab=true"
OF_A_KEY = "--speculative-config.draft_load_config.a=1"
CHAIN = Tree(num_steps=4, top_k=1, num_draft_tokens=5)
FIRST = server(env=({"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"},))
ADAPTS = named("EAGLE3", adaptive=Adaptive())
SCHEDULED = named(
    "EAGLE3", depth_by_batch_size=(Depth(from_batch_size=1, num_steps=4), Depth(from_batch_size=9, num_steps=0))
)
ROWS: list[Row] = [
    ("vllm-owned", server("--port=9000"), BASE, "engine.args[0]"),
    ("vllm-owned", server("-tp", "2"), BASE, "engine.args[0]"),
    ("vllm-owned", server(), chain(4, "--served_model_name", "x"), "args[0]"),
    ("vllm-shortened", server("--speculative-conf", "{}"), BASE, "engine.args[0]"),
    ("vllm-gone", server("--guided-decoding-backend=xgrammar"), BASE, "engine.args[0]"),
    ("vllm-unknown", server("--max-model-length=4096"), BASE, "engine.args[0]"),
    ("vllm-unknown", server("--mem-fraction-static", "0.8"), BASE, "engine.args[0]"),
    ("vllm-unknown", server("--generation_config=auto", "-8k"), BASE, "engine.args[1]"),
    ("vllm-shortened", newer("--max-num-seq=4"), BASE, "engine.args[0]"),
    ("vllm-shortened", server("--max-num-seq=4"), BASE, "engine.args[0]"),
    ("vllm-owned", newer("--tensor-paral=2"), BASE, "engine.args[0]"),
    ("vllm-stray", server("--hf-overrides '{\"a\": \"b=c\"}'"), BASE, "engine.args[0]"),
    ("vllm-stray", server("max-model-len=4096"), BASE, "engine.args[0]"),
    ("vllm-value", server("--enforce-eager", "true"), BASE, "engine.args[0]"),
    ("vllm-value", server("--max-num-seqs=many"), BASE, "engine.args[0]"),
    ("vllm-value", server("--max-model-len", "2Ki"), BASE, "engine.args[0]"),
    ("vllm-value", server("--gpu-memory-utilization=high"), BASE, "engine.args[0]"),
    ("vllm-value", server("--dtype=fp16"), BASE, "engine.args[0]"),
    ("vllm-value", server("--compilation-config={mode"), BASE, "engine.args[0]"),
    ("vllm-value", server("--compilation-config.mode", "3", "4"), BASE, "engine.args[0]"),
    ("vllm-value", newer("--max-num-seqs=many"), BASE, "engine.args[0]"),
    ("vllm-twice", server("--block-size=16", "--block_size", "32"), BASE, "engine.args[1]"),
    ("vllm-twice", server("--enable-expert-parallel", "-ep"), chain(4), "engine.args[1]"),
    ("vllm-variable", server("--max-model-len", "$(LEN)"), BASE, "engine.args[1]"),
    ("vllm-blind", server("--disable-log-stats"), BASE, "engine.args[0]"),
    ("vllm-quiet", server(env=({"name": "VLLM_LOGGING_LEVEL", "value": "error"},)), BASE, "engine.env[0]"),
    ("vllm-different", server(), chain(4, "--max-num-batched-tokens=8192"), "args[0]"),
    ("vllm-different", server(), chain(4, "--no-enable-prefix-caching"), "args[0]"),
    ("vllm-block", server(), named("DFLASH", block_size=1), "blockSize"),
    ("vllm-shared-kv", server("--kv-sharing-fast-prefill"), chain(4), "engine.args[0]"),
    ("vllm-lora-budget", server("--enable-lora", "--max-num-batched-tokens=128"), chain(4), "engine.args"),
    ("vllm-tools", server("--enable-auto-tool-choice"), BASE, "engine.args[0]"),
    ("vllm-enforcer", server("--structured-outputs-config.backend", "lm-format-enforcer"), chain(4), "engine.args[0]"),
    ("vllm-enforcer", server('--structured_outputs_config={"backend": "lm-format-enforcer"}'), chain(4),
     "engine.args[0]"),
    ("vllm-adaptive", server("--enable-lora"), ADAPTS, "adaptive"),
    ("vllm-adaptive", server("--enforce-eager"), ADAPTS, "adaptive"),
    ("vllm-adaptive", server("-pp", "2"), ADAPTS, "adaptive"),
    ("vllm-adaptive", server("-O1"), ADAPTS, "adaptive"),
    ("vllm-adaptive", server("-cc", '{"cudagraph_mode": "PIECEWISE"}'), ADAPTS, "adaptive"),
    ("vllm-adaptive", server("--compilation-config.cudagraph_mode=NONE"), ADAPTS, "adaptive"),
    ("vllm-runner", FIRST, ADAPTS, "adaptive"),
    ("vllm-runner", FIRST, SCHEDULED, "depthByBatchSize"),  # vllm#49986
    ("vllm-runner", FIRST, named("DSPARK", block_size=4), "draft.algorithm"),
    ("vllm-runner", FIRST, chain(4, "--speculative-config.draft_lm_head_quantization=fp8"), "args"),
    ("vllm-runner", server(), custom(name="suffix"), "draft.name"),  # vllm#30661
    ("vllm-runner", server(), custom("--speculative-config.model=a.B", name="custom_class"), "draft.name"),
    ("vllm-runner", server(), chain(4, "--speculative-config.parallel_drafting=true"), "args"),
    ("vllm-runner", server(), named("STANDALONE", tree=CHAIN, args=(OTHER_VOCABULARY,)), "args"),
    # intel-xpu-backend-for-triton#7166
    ("vllm-runner", server(version="0.31.0"), named("NGRAM", ngram=Ngram(num_draft_tokens=5)), "draft.algorithm"),
    ("vllm-runner", server(version="0.24.0"), SCHEDULED, "depthByBatchSize"),
    ("vllm-runner", server(version="0.27.1"), ADAPTS, "adaptive"),
    ("vllm-runner", server("--enable-dbo"), chain(4), "engine.args[0]"),
    ("vllm-runner", server("--enable-dbo", "--enable-lora"), BASE, "engine.args[0]"),
    ("vllm-runner", server("-pcp", "2", env=FIRST.engine.env), BASE, "engine.args[0]"),
    ("vllm-version", server(version="0.11.0"), BASE, "engine.version"),  # vllm#31030 was 0.11
    ("vllm-version", server(version="0.6.6"), BASE, "engine.version"),
    ("vllm-version", server(version="nightly"), BASE, "engine.version"),
    ("vllm-keys", server("--speculative-config.rejection_sample_method=block"), BASE, "engine.args[0]"),
    ("vllm-keys", server(), chain(4, "-sc", '{"method":"ngram"}'), "args[0]"),
    ("vllm-keys", server(), chain(4, "--speculative-config.num_speculative_tokens=3"), "args[0]"),
    ("vllm-keys", server(), chain(4, "--speculative-config.rejection_sample_method=fly"), "args[0]"),
    ("vllm-schedule", server("--data-parallel-size=2"), SCHEDULED, "depthByBatchSize"),
    ("vllm-keys", server(), custom("--speculative-config.method=eagle3"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--speculative-config.rejection_sample_method=fly"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--speculative-config.synthetic_acceptance_length=3"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--max-num-seqs=8"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--speculative-config.suffix_decoding_max_spec_factor"), "custom.args[0]"),
    ("vllm-keys", server(), custom(*["--speculative-config.num_speculative_tokens=8"] * 2), "custom.args[1]"),
    ("vllm-keys", server(), custom("--speculative-config.model=$(PLUGIN)"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--speculative-config.draft_load_config={}", OF_A_KEY), "custom.args[1]"),
    ("vllm-keys", server(), custom(OF_A_KEY, "--speculative-config.draft_load_config={}"), "custom.args[1]"),
    ("vllm-keys", server(), custom("--speculative-config.method.x=1"), "custom.args[0]"),
    ("vllm-keys", server(), custom("--speculative-config.a..b=1"), "custom.args[0]"),
    ("vllm-keys", server(), custom(f"--speculative-config.a={'[' * 101}"), "custom.args[0]"),
    ("vllm-custom-known", server(), custom(name="deepseek_mtp"), "draft.name"),
    ("vllm-custom-known", server(), custom(name="Sufix"), "draft.name"),
    ("vllm-custom-known", server(), custom(name="medusa"), "draft.name"),
    ("vllm-custom-known", FIRST, custom(name="custom_class"), "custom.args"),
    ("vllm-custom-known", server(), replace(custom(), custom=Custom()), "custom.args"),
    ("vllm-keys", server(), chain(4, "--speculative-config.draft_pipeline_parallel_size=1"), "args[0]"),  # vllm#15173
    ("vllm-keys", server(), chain(4, "--speculative-config.tensor_parallel_size=1"), "args[0]"),  # vllm#24322
    ("vllm-keys", server(), chain(4, "--speculative-config.draft_tensor_parallel_size=2"), "args[0]"),
    ("vllm-keys", server(), chain(4, "--speculative-config.attention-backend=FLASH_ATTENTION"), "args[0]"),
    ("vllm-keys", server(), chain(4, "--speculative-config.disable_padded_drafter_batch=maybe"), "args[0]"),
    ("vllm-keys", server(), chain(4, "--speculative-config.dspark_draft_topk=4"), "args[0]"),
    # vllm#54788
    ("vllm-runner", server(version="0.29.0"), chain(4, "--speculative-config.moe_backend=triton"), "args"),
    ("vllm-runner", server(),
     named("STANDALONE", tree=CHAIN, args=("--speculative-config.attention_backend=FLASH_ATTN",)), "args"),
    ("vllm-runner", FIRST, chain(4, "--speculative-config.rejection_sample_method=block"), "args"),
    ("vllm-runner", server("--ubatch-size=2"), chain(4), "engine.args[0]"),
    ("vllm-runner", server("--async-scheduling", "-pp=2", env=FIRST.engine.env), BASE, "engine.args[0]"),
    ("vllm-keys-stray", server(), custom("8"), "custom.args[0]"),
    ("vllm-key", server(env=({"name": "VLLM_API_KEY", "value": "sk-1"},)), BASE, "engine.env[0].name"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "server", "arm", "path"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule(rule: str, server: Server, arm: Arm, path: str, says: Says) -> None:
    says(refusal_message(VLLM, server, arm, rule, path))


def test_every_rule_has_a_row() -> None:
    assert {row[0] for row in ROWS} == {rule.id for rule in RULES}


@pytest.mark.parametrize(
    "args",
    [
        ("--enable-prefix-caching", "--max_model_len", "32k", "-O3", "--gpu-memory-utilization", "0.8"),
        ("--compilation-config.mode", "3", "--compilation-config.level=3"),
        ("--kv-cache-dtype=fp8", "-dp", "2", "--limit-mm-per-prompt", '{"image":0}'),
        ("--cudagraph-capture-sizes", "1", "2", "4"),
        ("--max-model-len=auto", "--max-num-batched-tokens=8k", "--max-logprobs=-1", "--max-num-seqs=8"),
        ("--kv-cache-memory-bytes=None", "--kv-cache-dtype=of_a_plugin"),
        ("--structured-outputs-config.backend=xgrammar",),
        ('--structured-outputs-config={"disable_any_whitespace": true}',),
    ],
)
def test_arguments_as_people_write_them(args: tuple[str, ...]) -> None:
    assert VLLM.refusals(server(*args), (BASE, chain(4))) == ()


def test_of_another_version_no_option_is_unknown() -> None:
    assert VLLM.refusals(server("--new-thing", version="0.40.0"), (BASE, chain(4))) == ()


def test_the_examples_arms_stand() -> None:
    arms = (BASE, chain(4), replace(chain(7), name="seven"))
    assert VLLM.refusals(SERVER, arms) == ()


def test_what_drafts_nothing_may_have_any_backend() -> None:
    assert VLLM.refusals(server("--structured-outputs-config.backend=lm-format-enforcer"), (BASE,)) == ()
