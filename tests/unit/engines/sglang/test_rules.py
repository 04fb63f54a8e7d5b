"""What SGLang is not asked for: at least one row a rule, with the field and a message that names the way out."""

from dataclasses import replace

import pytest
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
Row = tuple[str, Server, Arm, str, str]
OLD, OLDEST, BETWEEN, LATER, NEWER = "0.5.6", "0.4.5", "0.5.10", "0.5.16", "0.6.0"
OVERLAPS = {"env": ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"},)}
OVERLAPS_NOT = ({"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"},)


def older(name: str, value: str) -> dict[str, tuple[dict[str, str]]]:
    """By the name that SGLang read it by before, and lets win."""
    return {"env": ({"name": f"SGL_{name}", "value": value},)}


PP_SPEC = {"env": ({"name": "SGLANG_ENABLE_PP_SPEC", "value": "1"},)}

DECODES = "--speculative-attention-mode=decode"

ROWS: list[Row] = [
    ("engine-version", server(version="nightly"), BASE, "engine.version",
     "nightly is not a version; write the image's version, such as 0.5.23"),
    ("engine-version", server(version="0.3.6"), BASE, "engine.version", "older than 0.4.5, the oldest known version"),

    ("algorithm-version", server(version=OLDEST), chain(algorithm="STANDALONE"), "draft.algorithm",
     "SGLang 0.4.5 has no STANDALONE; 0.5.2 has it"),
    ("algorithm-version", server(version=OLD), block("DFLASH"), "draft.algorithm",
     "SGLang 0.5.6 has no DFLASH; 0.5.11 has it"),
    ("algorithm-version", server(), chain(algorithm="MEDUSA"), "draft.algorithm",
     "SGLang 0.5.23 has no MEDUSA; it has DFLASH, DSPARK, EAGLE, EAGLE3, MTP, NEXTN, NGRAM, STANDALONE"),
    ("adaptive-version", server(version=OLD), adaptive(), "adaptive", "take 0.5.11, or name a tree"),
    ("adaptive-steps", server(), adaptive(steps=4), "adaptive.numSteps",
     "4 is not a depth of the adaptive configuration; take 1, 3, 5, 7"),
    ("schedule-version", server(version="0.5.12.post1"), scheduled(), "depthByBatchSize",
     "SGLang 0.5.12.post1 has no depth by batch size; take 0.5.13, or name a tree"),
    ("schedule-version", server(version="0.5.13.post1"), scheduled(), "depthByBatchSize[2].numSteps",
     "SGLang 0.5.13.post1 has no depth 0; take 0.5.14, or write 1"),
    ("schedule-twice", server(), scheduled("--speculative-adaptive-config=/models/own.json"), "args[0]",
     "--speculative-adaptive-config is written from depthByBatchSize; remove it, or take adaptive instead"),
    ("ngram-window", server(), ngram(breadth=1, min_match=2), "ngram.minMatch", "remove minMatch"),
    ("ngram-window", server("--mem-fraction-static=0.8", version=BETWEEN), ngram(breadth=1, max_match=8),
     "ngram.maxMatch", "SGLang 0.5.10 has no match window"),
    ("ngram-window", server(), ngram(breadth=1, max_match=8), "ngram.maxMatch", "--speculative-ngram-max-trie-depth"),

    ("tree-backend-moves", server(), wide(), "engine.args",
     "candidate one has topK 4: SGLang would change the attention backend for it; add "
     "--attention-backend=flashinfer (or fa3, triton)"),
    ("tree-backend-moves", server(), ngram(), "engine.args", "candidate one has breadth 10"),
    ("tree-backend-moves", server("--decode-attention-backend=fa3"), wide(), "engine.args", "add --attention-backend"),
    ("algorithm-version", server(version="0.5.10"), block("DFLASH"), "draft.algorithm",
     "SGLang 0.5.10 has no DFLASH; 0.5.11 has it"),
    ("algorithm-version", server(version="0.5.15"), block("DSPARK"), "draft.algorithm", "0.5.16 has it"),
    ("adaptive-version", server(version="0.5.10"), adaptive(), "adaptive", "take 0.5.11, or name a tree"),

    ("memory-moves", server(version=OLD, pinned=False, **OVERLAPS), chain(), "engine.args",
     "SGLang 0.5.6 reserves another share of the memory when speculating (on four H200 mem_fraction_static is "
     "0.900, and 0.886 with EAGLE3, which one has), but arms must be equal; add --mem-fraction-static=0.85"),
    ("memory-moves", server(PINNED, version="0.5.6.post2", pinned=False), wide(), "engine.args", "0.886 with EAGLE3"),
    ("memory-moves", server(version=OLD, pinned=False), chain(algorithm="STANDALONE"), "engine.args",
     "0.858 with STANDALONE"),
    ("memory-moves", server(PINNED, version="0.5.10", pinned=False), ngram(), "engine.args",
     "0.900 with NGRAM"),
    ("memory-moves", server(version="0.4.7", pinned=False), chain(), "engine.args",
     "mem_fraction_static is 0.872, and 0.858 with EAGLE3"),
    ("memory-moves", server(version="0.5.13.post1", pinned=False), block("DFLASH"), "engine.args", "0.869 with DFLASH"),
    ("memory-moves", server(version="0.5.12", pinned=False), chain(algorithm="MTP"), "engine.args", "0.869 with MTP"),
    ("backend-moves", server(version="0.5.13", product="NVIDIA-B200"), block("DFLASH"), "engine.args",
     "candidate one (DFLASH): on NVIDIA-B200 SGLang 0.5.13 switches the attention backend when speculating"),
    ("backend-moves", server(product="NVIDIA-GB200"), chain(), "engine.args",
     "and arms must be equal; add --attention-backend=triton, or another one that can draft"),
    ("backend-moves", server(product="NVIDIA-B300"), adaptive(), "engine.args", "candidate one (EAGLE3)"),
    ("backend-moves", server(product="NVIDIA-B300"), scheduled(), "engine.args", "candidate one (EAGLE3)"),
    ("tree-backend", server("--attention-backend=trtllm_mha"), wide(), "tree.topK",
     "topK 4 cannot be drafted on trtllm_mha: write 1 (a chain) or --attention-backend=flashinfer (or fa3, triton)"),
    ("tree-backend", server("--attention-backend", "trtllm_mla"), wide(), "tree.topK", "on trtllm_mla"),
    ("tree-backend", server("--attention-backend=flashmla", version=OLD), wide(), "tree.topK", "on flashmla"),
    ("tree-pages", server("--attention-backend=triton", "--page-size=64", version=OLD), wide(), "tree.topK",
     "topK 4 with --page-size=64 is not verified on triton by SGLang 0.5.6: write 1 (a chain), or --page-size=1, or "
     "--attention-backend=flashinfer (or fa3)"),
    ("tree-pages", server("--attention-backend=fa4", "--page-size=64"), wide(), "tree.topK", "not verified on fa4"),
    ("tree-pages", server("--attention-backend=fa3", "--page-size", "16", version=OLDEST), wide(), "tree.topK",
     "write 1 (a chain), or --page-size=1"),
    ("tree-pages", server("--attention-backend=fa3", "--page-size=16"), ngram(), "ngram.breadth",
     "breadth 10 with --page-size=16 is not verified on fa3"),
    ("draft-backend", server(), chain("--speculative-draft-attention-backend=bogus"), "args[0]", "cannot be bogus"),
    ("rejection-sampling", server(PINNED), wide("--speculative-use-rejection-sampling"), "args[0]",
     "verifies chains only, but topK 4"),
    ("rejection-sampling", server(), chain("--speculative-use-rejection-sampling", algorithm="STANDALONE"), "args[0]",
     "is not for STANDALONE"),

    ("overlap-said", server(version=OLD), chain(), "engine.env",
     'SGLang 0.5.6 turns off overlap scheduling for a chain (one) but not for the baseline, unless '
     'SGLANG_ENABLE_SPEC_V2 is "1"; set this variable: "1" keeps it'),
    ("overlap-said", server(version=BETWEEN), chain(algorithm="STANDALONE"), "engine.env", '"0" measures and serves'),
    ("overlap-of-trees", server(PINNED, version=BETWEEN, **OVERLAPS), wide(), "tree.topK",
     'topK 4 cannot be combined with SGLANG_ENABLE_SPEC_V2=1: write 1 (a chain), or "0" in spec.engine.env'),
    ("overlap-of-trees", server(PINNED, version=OLD, **older("ENABLE_SPEC_V2", "1")), wide(), "tree.topK",
     'topK 4 cannot be combined with SGL_ENABLE_SPEC_V2=1: write 1 (a chain), or "0" in spec.engine.env'),
    ("overlap-of-trees", server(PINNED, version=OLD, env=older("ENABLE_SPEC_V2", "1")["env"] + OVERLAPS_NOT), wide(),
     "tree.topK", "topK 4 cannot be combined with SGL_ENABLE_SPEC_V2=1"),
    ("token-map", server(), chain("--speculative-token-map=/models/hot.pt"), "args[0]",
     "--speculative-token-map is ignored by EAGLE3, which brings one in its head (d2t); remove it"),
    ("token-map", server(), arm("DFLASH", "--speculative-token-map", "a/b/hot.pt", block_size=8), "args[0]",
     "is ignored by DFLASH, which reads none; remove it"),
    ("token-map", server(PINNED, version=OLDEST), wide("--speculative-token-map=/models/hot.pt"), "args[0]", "EAGLE3"),
    ("custom-others", server(), custom("--speculative-accept-threshold-acc=0.9"), "custom.args[0]",
     "accepts tokens that the target would not have written; remove it"),
    ("custom-others", server(), custom("--speculative-algorithm=EAGLE3"), "custom.args[0]", "write draft.name"),
    ("custom-others", server(), custom("--speculative-draft-model-path=/x"), "custom.args[0]", "write draft.source"),
    ("custom-others", server(), custom("--attention-backend=fa3"), "custom.args[0]",
     "--attention-backend is a flag of the server and not of UNO; move it to spec.engine.args"),
    ("custom-others", server(), custom("--dos-size=8"), "custom.args[0]",
     "--dos-size is not a flag of UNO: those begin with --speculative- or --uno-; move it to spec.engine.args"),
    ("custom-others", server(), custom("--uno-lora-path=$(PATH)"), "custom.args[0]", "$(VAR) is not filled in"),
    ("custom-others", server(), custom("8"), "custom.args[0]", "8 belongs to no flag"),
    ("custom-others", server(), custom("--speculative-accept-threshold-s=0.5"), "custom.args[0]",
     "is short for --speculative-accept-threshold-single; write it in full"),
    ("custom-others", server(), custom("--speculative-algo=EAGLE3"), "custom.args[0]",
     "is short for --speculative-algorithm; write it in full"),
    ("custom-others", server(), custom("--load-format=dummy", name="LOAD"), "custom.args[0]",
     "--load-format is a flag of the server and not of LOAD; move it to spec.engine.args"),
    ("custom-others", server(), custom(f"--uno-layers={'[' * 101}"), "custom.args[0]",
     "--uno-layers has more than 100 brackets; write fewer"),
    ("custom-twice", server(), custom(*["--speculative-num-steps=2"] * 2), "custom.args[1]", "given twice; keep one"),
    ("custom-twice", server(), replace(custom(DECODES), args=(DECODES,)), "custom.args[0]",
     "given twice; keep one"),

    ("args-stray", server("attention-backend=triton"), BASE, "engine.args[0]",
     "attention-backend=triton belongs to no flag; remove it, or write --flag=VALUE"),
    ("args-stray", server(), chain("8"), "args[0]", "8 belongs to no flag"),
    ("args-stray", server("--attention-backend flashinfer"), BASE, "engine.args[0]",
     "--attention-backend flashinfer is one argument with a space; split it: --attention-backend=flashinfer"),
    ("args-variable", server("--log-level=$(LEVEL)"), BASE, "engine.args[0]",
     "$(LEVEL): $(VAR) is not filled in; write the value"),
    ("args-variable", server("--context-length", "$(LENGTH)"), BASE, "engine.args[1]", "write the value"),
    ("args-owned", server("--api-key=sk-1"), BASE, "engine.args[0]", "name a Secret in spec.engine.apiKeySecretRef"),
    ("args-owned", server("--trust-remote"), BASE, "engine.args[0]", "--trust-remote (read as --trust-remote-code) is"),
    ("args-owned", server("--tp", "8"), BASE, "engine.args[0]", "write spec.accelerator.tensorParallelSize"),
    ("args-owned", server("--tensor-parallel-size=8", version=OLD), BASE, "engine.args[0]", "tensorParallelSize"),
    ("args-owned", server(), chain("--speculative-num-steps=5"), "args[0]",
     "is set by Paceline from the resource; write a candidate's draft and shape"),
    ("args-owned", server("--spec=x"), BASE, "engine.args[0]", "(read as --speculative-) is set by Paceline"),
    ("args-owned", server("--speculative-ngram-max-bfs-breadth=2"), BASE, "engine.args[0]", "draft and shape"),
    ("args-misplaced", server("--speculative-attention-mode=decode"), BASE, "engine.args[0]",
     "belongs to candidates; move it to the candidates' args"),
    ("args-lossy", server(), chain("--speculative-accept-threshold-single=0.8"), "args[0]",
     "accepts tokens that the target would not have written; remove it"),
    ("args-abbreviated", server("--context-len=8192"), BASE, "engine.args[0]",
     "--context-len is short for --context-length; write it in full"),
    ("args-abbreviated", server("--chunked", "8192"), BASE, "engine.args[0]", "--chunked-prefill-size"),
    ("args-abbreviated", server("--disable-cuda"), BASE, "engine.args[0]",
     "--disable-cuda may be short for --disable-cuda-graph, --disable-cuda-graph-padding; write one of them in full"),
    ("args-gone", server("--cuda-graph-max-bs=64"), BASE, "engine.args[0]",
     "--cuda-graph-max-bs is no longer a flag of SGLang 0.5.23; write --cuda-graph-max-bs-decode"),
    ("args-gone", server("--mamba-scheduler-strategy=extra_buffer"), BASE, "engine.args[0]",
     "write --mamba-radix-cache-strategy"),
    ("args-gone", server("--nsa-decode-backend", "fa3"), BASE, "engine.args[0]", "write --dsa-decode-backend"),
    ("args-unknown", server("--mem-fraction-statik=0.8"), BASE, "engine.args[0]",
     "SGLang 0.5.23 has no flag --mem-fraction-statik; did you mean --mem-fraction-static?"),
    ("args-unknown", server("--gpu-memory-utilization", "0.9"), BASE, "engine.args[0]", "0.5.23 has no flag --gpu-mem"),
    ("args-unknown", server("--attn-dp-size=2", version=OLD), BASE, "engine.args[0]",
     "SGLang 0.5.6 has no flag --attn-dp-size; 0.5.22 has it"),
    ("args-unknown", server("--bogus", version="0.4.11"), BASE, "engine.args[0]",
     "SGLang 0.4.11 (judged by 0.4.10.post2) has no flag --bogus; remove it"),
    ("args-unknown", server(), chain("--page-sice=1"), "args[0]", "did you mean --page-size?"),
    ("args-unknown", server(), chain("--speculative-atention-mode=decode"), "args[0]", "--speculative-attention-mode?"),
    ("args-owned", server("--speculative-num-st=5"), BASE, "engine.args[0]", "(read as --speculative-num-steps) is"),
    ("args-value", server("--context-length"), BASE, "engine.args[0]", "needs a value; write --context-length=VALUE"),
    ("args-value", server("--context-length", "8k", "4k"), BASE, "engine.args[0]", "takes one value; got 8k 4k"),
    ("args-value", server("--context-length=long"), BASE, "engine.args[0]", "takes a whole number such as 8192"),
    ("args-value", server("--mem-fraction-static=80%"), BASE, "engine.args[0]", "takes a number; got 80%"),
    ("args-value", server("--enable-mixed-chunk=true"), BASE, "engine.args[0]", "takes no value; write it alone"),
    ("args-value", server("--enable-mixed-chunk", "true"), BASE, "engine.args[0]", "takes no value"),
    ("args-value", server("--cuda-graph-bs-decode=1", "2"), BASE, "engine.args[0]",
     "takes its values after a space: --cuda-graph-bs-decode 1 2"),
    ("args-value", server("--attention-backend=tritn"), BASE, "engine.args[0]",
     "cannot be tritn; did you mean triton?"),
    ("args-value", server("--cuda-graph-config={"), BASE, "engine.args[0]", "takes JSON; got {"),
    ("args-twice", server("--page-size=1", "--page-size", "1"), BASE, "engine.args[1]", "is given twice; keep one"),
    ("args-twice", server("--ep-size=2", "--expert-parallel-size=2"), BASE, "engine.args[1]", "given twice"),
    ("args-twice", server("--lora-strict-loading", "--no-lora-strict-loading"), BASE, "engine.args[1]", "given twice"),
    ("args-different", server(), chain("--mem-fraction-static=0.7"), "args[0]",
     "is not a speculation flag, and arms may differ in speculation only: set it in spec.engine.args, for all arms"),

    ("variable-lossy", server("--mem-fraction-static=0.8", version="0.5.12", **older("NGRAM_FORCE_GREEDY_VERIFY", "1")),
     ngram(breadth=1), "engine.env[0]", "SGL_NGRAM_FORCE_GREEDY_VERIFY: it takes the likeliest token"),
    ("key-variables", server(env=({"name": "PACELINE_API_KEY", "value": "sk-1"},)), BASE, "engine.env[0].name",
     "PACELINE_API_KEY is set by Paceline; write apiKeySecretRef"),
    ("key-admin", server(version=OLD, admin_key=secret("admin")), BASE, "engine.adminKeySecretRef",
     "SGLang 0.5.6 has no admin key; take 0.5.8, or remove it"),
    ("key-tokenizers", server("--tokenizer-worker-num=2", api_key=secret("api")), BASE, "engine.args[0]",
     "cannot be combined with apiKeySecretRef; remove one of them"),
    ("key-grpc", server("--grpc-port=9000", admin_key=secret("admin")), BASE, "engine.args[0]",
     "opens a port that needs no key; remove it, or the keys"),

    ("pipeline-parallel-before", server("--pp-size=2", version=OLD, **OVERLAPS), chain(algorithm="EAGLE"),
     "engine.args[0]", "--pp-size cannot be combined with EAGLE: remove it"),
    ("pipeline-parallel", server("--pp-size=2", **PP_SPEC), chain(), "engine.args[0]", "take EAGLE"),
    ("pipeline-parallel", server("--pp-size=2", **PP_SPEC), adaptive(algorithm="EAGLE"), "adaptive", "name a tree"),
    ("pipeline-parallel-switch", server("--pipeline-parallel-size=2"), chain(algorithm="MTP"), "engine.args[0]",
     "set SGLANG_ENABLE_PP_SPEC=1 in spec.engine.env"),
    ("lora-before", server("--enable-lora", version=OLD, **OVERLAPS), chain(), "engine.args[0]", "take NGRAM"),
    ("lora", server("--lora-paths", "a=b"), chain(algorithm="STANDALONE"), "engine.args[0]",
     "--lora-paths cannot be combined with STANDALONE: take DFLASH, DSPARK, EAGLE, EAGLE3, NGRAM"),
    ("lora", server("--enable-lora"), adaptive(), "adaptive", "--enable-lora cannot be combined with adaptive depth"),
    ("weight-cache", server("--weight-cache-mode=client"), chain(), "engine.args[0]",
     "--weight-cache-mode cannot be combined with EAGLE3: remove it"),
    ("backend-speculates", server("--attention-backend=flex_attention"), chain(), "engine.args[0]",
     "flex_attention does not speculate: take triton"),
    ("backend-speculates", server("--attention-backend=torch_native"), ngram(breadth=1), "engine.args[0]",
     "torch_native does not speculate: take triton"),
    ("backend-speculates", server("--attention-backend=wave"), chain(), "args",
     "wave cannot draft in SGLang 0.5.23: add --speculative-draft-attention-backend=triton"),
    ("backend-speculates", server("--attention-backend=fa4", "--mem-fraction-static=0.8", version="0.5.9", **OVERLAPS),
     chain(), "args", "fa4 cannot draft in SGLang 0.5.9"),
    ("multi-layer", server("--enable-multi-layer-eagle"), chain(), "engine.args[0]", "take EAGLE"),
    ("multi-layer", server("--enable-multi-layer-eagle", PINNED), wide(algorithm="MTP"), "tree.topK", "write 1"),
    ("attention-dp-before", server("--attn-dp-size=2", "--enable-dp-lm-head", version="0.5.22"), block("DFLASH"),
     "engine.args[0]", "--attn-dp-size cannot be combined with DFLASH"),
    ("attention-dp", server("--attn-dp-size=2"), ngram(breadth=1), "engine.args[0]", "cannot be combined with NGRAM"),
    ("attention-dp", server("--enable-dp-attention", version=OLD), chain(algorithm="STANDALONE"), "engine.args[0]",
     "cannot be combined with STANDALONE"),
    ("attention-dp", server("--attn-dp-size=2"), adaptive(), "adaptive", "name a tree"),
    ("attention-dp", server("--attn-dp-size=2"), scheduled(), "depthByBatchSize",
     "--attn-dp-size cannot be combined with a schedule: name a tree"),
    ("attention-dp-head", server("--attn-dp-size=2"), block("DFLASH"), "engine.args[0]",
     "add --enable-dp-lm-head, or take"),
    ("two-batch-overlap", server("--enable-two-batch-overlap"), adaptive(), "adaptive", "name a tree"),
    ("pdmux", server("--enable-pdmux"), adaptive(), "adaptive", "name a tree"),
    ("hisparse", server("--enable-hisparse", PINNED), wide(), "tree.topK", "speculates with chains only: write 1"),
    ("unified-memory", server("--enable-unified-memory"), ngram(breadth=1), "engine.args[0]", "be combined with NGRAM"),
    ("unified-memory", server("--enable-unified-memory", PINNED), wide(), "tree.topK", "write 1"),
    ("context-parallel-cache", server("--dcp-size=2", "--enable-hicache"), chain(), "engine.args[0]", "take DSPARK"),
    ("watermark", server("--enable-watermark"), block("DFLASH"), "engine.args[0]", "take EAGLE, EAGLE3, NGRAM"),
    ("dwdp", server("--dwdp-size=2"), chain(), "engine.args[0]", "cannot be combined with EAGLE3: remove it"),
    ("disaggregation", server("--disaggregation-mode=decode"), BASE, "engine.args[0]", "starts half of a server"),
    ("mamba-track-interval", server("--mamba-track-interval=4"), block("DSPARK", 8), "engine.args[0]",
     "must be at least the 9 draft tokens of one"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "server", "arm", "path", "message"), ROWS)
def test_a_rule(rule: str, server: Server, arm: Arm, path: str, message: str) -> None:
    refusals = SGLANG.refusals(server, (arm,))
    assert [(refusal.rule, refusal.path) for refusal in refusals] == [(rule, path)]
    assert message in refusals[0].message
    assert refusals[0].arm == (None if path.startswith("engine.") else arm.name)


def test_two_candidates_that_are_served_alike() -> None:
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
        assert refusals.message == "b and a are served alike; keep one"
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
