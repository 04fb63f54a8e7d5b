"""What SGLang is not asked for: at least one row a rule, with the field and a message that names the way out."""

from dataclasses import replace

import pytest
from tests.support.messages import Says
from tests.support.one_refusal import refusal_message
from tests.unit.engines.sglang.servers import (
    BASE,
    PINNED,
    adaptive,
    arm,
    block,
    chain,
    custom,
    ngram,
    scheduled,
    secret,
    server,
    wide,
)

from paceline.core import Arm, Server
from paceline.engines import ENGINES
from paceline.engines.sglang.rules import RULES

SGLANG = ENGINES["SGLang"]
Row = tuple[str, Server, Arm, str]
OLD, OLDEST, BETWEEN, LATER, NEWER = "0.5.6", "0.4.5", "0.5.10", "0.5.16", "0.6.0"
OVERLAPS = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"},)}
OVERLAPS_NOT = ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"},)


def older(name: str, value: str) -> dict[str, tuple[dict[str, str]]]:
    """By the name that SGLang read it by before, and lets win."""
    return {"env": ({"name": f"SGL_{name}", "value": value},)}


PP_SPEC = {"env": ({"name": "SGLANG_ENABLE_PP_SPEC", "value": "1"},)}

DECODES = "--speculative-attention-mode=decode"

ROWS: list[Row] = [
    ("engine-version", server(version="nightly"), BASE, "engine.version"),
    ("engine-version", server(version="0.3.6"), BASE, "engine.version"),

    ("algorithm-version", server(version=OLDEST), chain(algorithm="STANDALONE"), "draft.algorithm"),
    ("algorithm-version", server(version=OLD), block("DFLASH"), "draft.algorithm"),
    ("algorithm-version", server(), chain(algorithm="MEDUSA"), "draft.algorithm"),
    ("adaptive-version", server(version=OLD), adaptive(), "adaptive"),
    ("adaptive-steps", server(), adaptive(steps=4), "adaptive.numSteps"),
    ("schedule-version", server(version="0.5.12.post1"), scheduled(), "depthByBatchSize"),
    ("schedule-version", server(version="0.5.13.post1"), scheduled(), "depthByBatchSize[2].numSteps"),
    ("schedule-twice", server(), scheduled("--speculative-adaptive-config=/models/own.json"), "args[0]"),
    ("ngram-window", server(), ngram(breadth=1, min_match=2), "ngram.minMatch"),
    ("ngram-window", server("--mem-fraction-static=0.8", version=BETWEEN), ngram(breadth=1, max_match=8),
     "ngram.maxMatch"),
    ("ngram-window", server(), ngram(breadth=1, max_match=8), "ngram.maxMatch"),

    ("tree-backend-moves", server(), wide(), "engine.args"),
    ("tree-backend-moves", server(), ngram(), "engine.args"),
    ("tree-backend-moves", server("--decode-attention-backend=fa3"), wide(), "engine.args"),
    ("algorithm-version", server(version="0.5.10"), block("DFLASH"), "draft.algorithm"),
    ("algorithm-version", server(version="0.5.15"), block("DSPARK"), "draft.algorithm"),
    ("adaptive-version", server(version="0.5.10"), adaptive(), "adaptive"),

    ("memory-moves", server(version=OLD, pinned=False, **OVERLAPS), chain(), "engine.args"),
    ("memory-moves", server(PINNED, version="0.5.6.post2", pinned=False), wide(), "engine.args"),
    ("memory-moves", server(version=OLD, pinned=False), chain(algorithm="STANDALONE"), "engine.args"),
    ("memory-moves", server(PINNED, version="0.5.10", pinned=False), ngram(), "engine.args"),
    ("memory-moves", server(version="0.4.7", pinned=False), chain(), "engine.args"),
    ("memory-moves", server(version="0.5.13.post1", pinned=False), block("DFLASH"), "engine.args"),
    ("memory-moves", server(version="0.5.12", pinned=False), chain(algorithm="MTP"), "engine.args"),
    ("backend-moves", server(version="0.5.13", product="NVIDIA-B200"), block("DFLASH"), "engine.args"),
    ("backend-moves", server(product="NVIDIA-GB200"), chain(), "engine.args"),
    ("backend-moves", server(product="NVIDIA-B300"), adaptive(), "engine.args"),
    ("backend-moves", server(product="NVIDIA-B300"), scheduled(), "engine.args"),
    ("tree-backend", server("--attention-backend=trtllm_mha"), wide(), "tree.topK"),
    ("tree-backend", server("--attention-backend", "trtllm_mla"), wide(), "tree.topK"),
    ("tree-backend", server("--attention-backend=flashmla", version=OLD), wide(), "tree.topK"),
    ("tree-pages", server("--attention-backend=triton", "--page-size=64", version=OLD), wide(), "tree.topK"),
    ("tree-pages", server("--attention-backend=fa4", "--page-size=64"), wide(), "tree.topK"),
    ("tree-pages", server("--attention-backend=fa3", "--page-size", "16", version=OLDEST), wide(), "tree.topK"),
    ("tree-pages", server("--attention-backend=fa3", "--page-size=16"), ngram(), "ngram.breadth"),
    ("draft-backend", server(), chain("--speculative-draft-attention-backend=bogus"), "args[0]"),
    ("rejection-sampling", server(PINNED), wide("--speculative-use-rejection-sampling"), "args[0]"),
    ("rejection-sampling", server(), chain("--speculative-use-rejection-sampling", algorithm="STANDALONE"), "args[0]"),

    ("overlap-said", server(version=OLD), chain(), "engine.env"),
    ("overlap-said", server(version=BETWEEN), chain(algorithm="STANDALONE"), "engine.env"),
    ("overlap-of-trees", server(PINNED, version=BETWEEN, **OVERLAPS), wide(), "tree.topK"),
    ("overlap-of-trees", server(PINNED, version=OLD, **older("ENABLE_SPEC_V2", "1")), wide(), "tree.topK"),
    ("overlap-of-trees", server(PINNED, version=OLD, env=older("ENABLE_SPEC_V2", "1")["env"] + OVERLAPS_NOT), wide(),
     "tree.topK"),
    ("token-map", server(), chain("--speculative-token-map=/models/hot.pt"), "args[0]"),
    ("token-map", server(), arm("DFLASH", "--speculative-token-map", "a/b/hot.pt", block_size=8), "args[0]"),
    ("token-map", server(PINNED, version=OLDEST), wide("--speculative-token-map=/models/hot.pt"), "args[0]"),
    ("custom-others", server(), custom("--speculative-accept-threshold-acc=0.9"), "custom.args[0]"),
    ("custom-others", server(), custom("--speculative-algorithm=EAGLE3"), "custom.args[0]"),
    ("custom-others", server(), custom("--speculative-draft-model-path=/x"), "custom.args[0]"),
    ("custom-others", server(), custom("--attention-backend=fa3"), "custom.args[0]"),
    ("custom-others", server(), custom("--dos-size=8"), "custom.args[0]"),
    ("custom-others", server(), custom("--uno-lora-path=$(PATH)"), "custom.args[0]"),
    ("custom-others", server(), custom("8"), "custom.args[0]"),
    ("custom-others", server(), custom("--speculative-accept-threshold-s=0.5"), "custom.args[0]"),
    ("custom-others", server(), custom("--speculative-algo=EAGLE3"), "custom.args[0]"),
    ("custom-others", server(), custom("--load-format=dummy", name="LOAD"), "custom.args[0]"),
    ("custom-others", server(), custom(f"--uno-layers={'[' * 101}"), "custom.args[0]"),
    ("custom-twice", server(), custom(*["--speculative-num-steps=2"] * 2), "custom.args[1]"),
    ("custom-twice", server(), replace(custom(DECODES), args=(DECODES,)), "custom.args[0]"),

    ("args-stray", server("attention-backend=triton"), BASE, "engine.args[0]"),
    ("args-stray", server(), chain("8"), "args[0]"),
    ("args-stray", server("--attention-backend flashinfer"), BASE, "engine.args[0]"),
    ("args-variable", server("--log-level=$(LEVEL)"), BASE, "engine.args[0]"),
    ("args-variable", server("--context-length", "$(LENGTH)"), BASE, "engine.args[1]"),
    ("args-owned", server("--api-key=sk-1"), BASE, "engine.args[0]"),
    ("args-owned", server("--trust-remote"), BASE, "engine.args[0]"),
    ("args-owned", server("--tp", "8"), BASE, "engine.args[0]"),
    ("args-owned", server("--tensor-parallel-size=8", version=OLD), BASE, "engine.args[0]"),
    ("args-owned", server(), chain("--speculative-num-steps=5"), "args[0]"),
    ("args-owned", server("--spec=x"), BASE, "engine.args[0]"),
    ("args-owned", server("--speculative-ngram-max-bfs-breadth=2"), BASE, "engine.args[0]"),
    ("args-misplaced", server("--speculative-attention-mode=decode"), BASE, "engine.args[0]"),
    ("args-lossy", server(), chain("--speculative-accept-threshold-single=0.8"), "args[0]"),
    ("args-abbreviated", server("--context-len=8192"), BASE, "engine.args[0]"),
    ("args-abbreviated", server("--chunked", "8192"), BASE, "engine.args[0]"),
    ("args-abbreviated", server("--disable-cuda"), BASE, "engine.args[0]"),
    ("args-gone", server("--cuda-graph-max-bs=64"), BASE, "engine.args[0]"),
    ("args-gone", server("--mamba-scheduler-strategy=extra_buffer"), BASE, "engine.args[0]"),
    ("args-gone", server("--nsa-decode-backend", "fa3"), BASE, "engine.args[0]"),
    ("args-unknown", server("--mem-fraction-statik=0.8"), BASE, "engine.args[0]"),
    ("args-unknown", server("--gpu-memory-utilization", "0.9"), BASE, "engine.args[0]"),
    ("args-unknown", server("--attn-dp-size=2", version=OLD), BASE, "engine.args[0]"),
    ("args-unknown", server("--bogus", version="0.4.11"), BASE, "engine.args[0]"),
    ("args-unknown", server(), chain("--page-sice=1"), "args[0]"),
    ("args-unknown", server(), chain("--speculative-atention-mode=decode"), "args[0]"),
    ("args-owned", server("--speculative-num-st=5"), BASE, "engine.args[0]"),
    ("args-value", server("--context-length"), BASE, "engine.args[0]"),
    ("args-value", server("--context-length", "8k", "4k"), BASE, "engine.args[0]"),
    ("args-value", server("--context-length=long"), BASE, "engine.args[0]"),
    ("args-value", server("--mem-fraction-static=80%"), BASE, "engine.args[0]"),
    ("args-value", server("--enable-mixed-chunk=true"), BASE, "engine.args[0]"),
    ("args-value", server("--enable-mixed-chunk", "true"), BASE, "engine.args[0]"),
    ("args-value", server("--cuda-graph-bs-decode=1", "2"), BASE, "engine.args[0]"),
    ("args-value", server("--attention-backend=tritn"), BASE, "engine.args[0]"),
    ("args-value", server("--cuda-graph-config={"), BASE, "engine.args[0]"),
    ("args-twice", server("--page-size=1", "--page-size", "1"), BASE, "engine.args[1]"),
    ("args-twice", server("--ep-size=2", "--expert-parallel-size=2"), BASE, "engine.args[1]"),
    ("args-twice", server("--lora-strict-loading", "--no-lora-strict-loading"), BASE, "engine.args[1]"),
    ("args-different", server(), chain("--mem-fraction-static=0.7"), "args[0]"),

    ("variable-lossy", server("--mem-fraction-static=0.8", version="0.5.12", **older("NGRAM_FORCE_GREEDY_VERIFY", "1")),
     ngram(breadth=1), "engine.env[0]"),
    ("key-variables", server(env=({"name": "PACELINE_API_KEY", "value": "sk-1"},)), BASE, "engine.env[0].name"),
    ("key-admin", server(version=OLD, admin_key=secret("admin")), BASE, "engine.adminKeySecretRef"),
    ("key-tokenizers", server("--tokenizer-worker-num=2", api_key=secret("api")), BASE, "engine.args[0]"),
    ("key-grpc", server("--grpc-port=9000", admin_key=secret("admin")), BASE, "engine.args[0]"),

    ("pipeline-parallel-before", server("--pp-size=2", version=OLD, **OVERLAPS), chain(algorithm="EAGLE"),
     "engine.args[0]"),
    ("pipeline-parallel", server("--pp-size=2", **PP_SPEC), chain(), "engine.args[0]"),
    ("pipeline-parallel", server("--pp-size=2", **PP_SPEC), adaptive(algorithm="EAGLE"), "adaptive"),
    ("pipeline-parallel-switch", server("--pipeline-parallel-size=2"), chain(algorithm="MTP"), "engine.args[0]"),
    ("lora-before", server("--enable-lora", version=OLD, **OVERLAPS), chain(), "engine.args[0]"),
    ("lora", server("--lora-paths", "a=b"), chain(algorithm="STANDALONE"), "engine.args[0]"),
    ("lora", server("--enable-lora"), adaptive(), "adaptive"),
    ("weight-cache", server("--weight-cache-mode=client"), chain(), "engine.args[0]"),
    ("backend-speculates", server("--attention-backend=flex_attention"), chain(), "engine.args[0]"),
    ("backend-speculates", server("--attention-backend=torch_native"), ngram(breadth=1), "engine.args[0]"),
    ("backend-speculates", server("--attention-backend=wave"), chain(), "args"),
    ("backend-speculates", server("--attention-backend=fa4", "--mem-fraction-static=0.8", version="0.5.9", **OVERLAPS),
     chain(), "args"),
    ("multi-layer", server("--enable-multi-layer-eagle"), chain(), "engine.args[0]"),
    ("multi-layer", server("--enable-multi-layer-eagle", PINNED), wide(algorithm="MTP"), "tree.topK"),
    ("attention-dp-before", server("--attn-dp-size=2", "--enable-dp-lm-head", version="0.5.22"), block("DFLASH"),
     "engine.args[0]"),
    ("attention-dp", server("--attn-dp-size=2"), ngram(breadth=1), "engine.args[0]"),
    ("attention-dp", server("--enable-dp-attention", version=OLD), chain(algorithm="STANDALONE"), "engine.args[0]"),
    ("attention-dp", server("--attn-dp-size=2"), adaptive(), "adaptive"),
    ("attention-dp", server("--attn-dp-size=2"), scheduled(), "depthByBatchSize"),
    ("attention-dp-head", server("--attn-dp-size=2"), block("DFLASH"), "engine.args[0]"),
    ("two-batch-overlap", server("--enable-two-batch-overlap"), adaptive(), "adaptive"),
    ("pdmux", server("--enable-pdmux"), adaptive(), "adaptive"),
    ("hisparse", server("--enable-hisparse", PINNED), wide(), "tree.topK"),
    ("unified-memory", server("--enable-unified-memory"), ngram(breadth=1), "engine.args[0]"),
    ("unified-memory", server("--enable-unified-memory", PINNED), wide(), "tree.topK"),
    ("context-parallel-cache", server("--dcp-size=2", "--enable-hicache"), chain(), "engine.args[0]"),
    ("watermark", server("--enable-watermark"), block("DFLASH"), "engine.args[0]"),
    ("dwdp", server("--dwdp-size=2"), chain(), "engine.args[0]"),
    ("disaggregation", server("--disaggregation-mode=decode"), BASE, "engine.args[0]"),
    ("mamba-track-interval", server("--mamba-track-interval=4"), block("DSPARK", 8), "engine.args[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "server", "arm", "path"), ROWS, ids=[row[0] for row in ROWS])
def test_a_rule(rule: str, server: Server, arm: Arm, path: str, says: Says) -> None:
    says(refusal_message(SGLANG, server, arm, rule, path))


def test_two_candidates_that_are_served_alike(says: Says) -> None:
    """NEXTN and MTP are other words for EAGLE; what is left out of an n-gram is filled in."""
    pairs = [
        (chain(algorithm="EAGLE", name="a"), chain(algorithm="MTP", name="b")),
        (
            chain("--speculative-attention-mode=decode", name="a"),
            chain("--speculative-attention-mode", "decode", name="b"),
        ),
        (arm("NGRAM", name="a", ngram=ngram().ngram), arm("NGRAM", name="b", ngram=ngram(breadth=10).ngram)),
    ]
    for first, second in pairs:
        (refusals,) = SGLANG.refusals(server(PINNED), (BASE, first, second))
        assert (refusals.rule, refusals.arm, refusals.path) == ("candidates-same", "b", "name")
        says(refusals.message)
    assert SGLANG.refusals(server(), (BASE, chain(steps=3, name="a"), chain(steps=4, name="b"))) == ()


def test_every_rule_has_a_row_and_says_why() -> None:
    assert {rule.id for rule in RULES} == {row[0] for row in ROWS} | {"candidates-same"}
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.reason and rule.source for rule in RULES)


def test_what_all_arms_share_is_told_once() -> None:
    arms = (BASE, chain(name="a", steps=3), chain(name="b", steps=4))
    assert len(SGLANG.refusals(server("--bogus"), arms)) == 1


GOOD: list[tuple[Server, Arm]] = [
    (server(version="0.5.14", pinned=False), chain()),
    (server(version="0.4.5", pinned=False), chain(algorithm="EAGLE")),
    (server(PINNED, version="0.5.13", pinned=False), ngram(breadth=1)),
    (server(version="0.5.13", product="NVIDIA-B200"), chain()),
    (server(PINNED, product="NVIDIA-B200"), chain()),
    (server(product="NVIDIA-A100-SXM4-80GB"), block("DFLASH")),
    (server(PINNED), wide()),
    (server("--prefill-attention-backend=fa3", "--decode-attention-backend=triton"), wide()),
    (server("--attention-backend=triton", "--page-size=64"), wide()),
    (server("--attention-backend=trtllm_mha", "--page-size=64"), chain()),
    (server(PINNED, "--page-size=16"), ngram()),
    (server(PINNED, version=OLD), arm("NGRAM", ngram=ngram(min_match=2, max_match=8).ngram)),
    (server("--cuda-graph-max-bs=64", "--enable-dp-attention", version=OLD, **OVERLAPS), chain()),
    (server(version="0.5.11"), chain()),
    (server(version=OLD, **older("ENABLE_SPEC_V2", "1")), chain()),
    (server(PINNED, version=BETWEEN, **older("ENABLE_SPEC_V2", "0")), wide()),
    (server("--pp-size=2", **older("ENABLE_PP_SPEC", "1")), chain(algorithm="EAGLE")),
    (server("--disable-overlap-schedule", version=OLD), chain()),
    (server(PINNED, version=OLD), wide()),
    (server(version=BETWEEN, env=OVERLAPS_NOT), chain()),
    (server(), chain("--speculative-token-map=/models/hot.pt", algorithm="EAGLE")),
    (server("--context-length=8Ki", "--chunked-prefill-size", "-1"), chain()),
    (server("--cuda-graph-bs-decode", "1", "2", "4", '--json-model-override-args={"a": 1}'), chain()),
    (server("--enable-lora", "--lora-paths"), chain()),
    (server("--attn-dp-size=2", "--enable-dp-lm-head"), block("DFLASH")),
    (server("--pp-size=2", **PP_SPEC), chain(algorithm="EAGLE")),
    (server(), adaptive(steps=5)),
    (server(), scheduled()),
    (server(), scheduled(algorithm="NEXTN")),
    (server(version="0.5.13"), scheduled(falling=((1, 5), (8, 1)))),
    (server(version="0.6.0"), scheduled()),
    (server(), adaptive("--speculative-adaptive-config=/models/adaptive.json", steps=4)),
    (server(), chain("--speculative-use-rejection-sampling", "--speculative-draft-attention-backend=fa3")),
    (server("--tp-size-of-something=1", "--bogus", version=NEWER), block("DFLASH")),
    (server(version=NEWER), chain("--speculative-dsa-topk-backend=new", "--speculative-tuning-to-come=1")),
    # A fork's own flag of speculation, which no known release has: an image may be of any fork.
    (server(), chain("--speculative-fork-depth=3")),
    (server(PINNED, version=OLD), wide("--speculative-fork-depth=3")),
    (server("--speculative-fork-depth=3"), chain()),
    (server("--attn-dp-size=2", version="0.5.22"), BASE),
    (server("--enable-lora", version="0.5.19"), chain()),
    (server(**older("NGRAM_FORCE_GREEDY_VERIFY", "1")), ngram(breadth=1)),  # read no more
    (server("--pp-size=2", version="0.5.21", **PP_SPEC), chain(algorithm="EAGLE")),
    (server("--attention-backend=fa4", "--mem-fraction-static=0.8", version="0.5.10.post1", **OVERLAPS), chain()),
    (server("--disable-cuda-graph"), BASE),  # deprecated, and it works
    (server("--cuda-graph-max-bs=32", "--mamba-scheduler-strategy=extra_buffer", version="0.5.12"), BASE),
    (server("--attention-backend=brand_new", version="0.4.11"), BASE),
    (server("--tokenizer-worker-num=1", api_key=secret("api"), admin_key=secret("admin")), chain()),
]


@pytest.mark.parametrize(("server", "arm"), GOOD)
def test_what_goes_is_let_go(server: Server, arm: Arm) -> None:
    assert SGLANG.refusals(server, (BASE, arm)) == ()
