"""Rows of stage preflight: what only the models' files can tell. Run in tests/unit/preflight, with facts by name."""

from dataclasses import replace
from typing import Any

from tests.support.edits import Change, Row, Stage
from tests.support.speculator import speculator

from paceline.core import ModelFacts
from paceline.preflight import model_facts
from paceline_emulator.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3, QWEN3_CODER_NEXT_FP8
from paceline_emulator.hub.published import HEADS, LLAMA_3_3_70B, TARGETS

NEXT, HEAD = "hf://Qwen/Qwen3-Coder-Next", "hf://your-org/Qwen3-Coder-Next-Eagle3"
CODER_30B = "Qwen/Qwen3-Coder-30B-A3B-Instruct"
GB = 10**9
SIZES = {
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8": 9.1,
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": 72.7,
    "Qwen/Qwen3-32B": 65.5,
    "Qwen/Qwen3-8B": 16.4,
    "zai-org/GLM-4.7-FP8": 362,
    "MiniMaxAI/MiniMax-M2.5": 230,
    "zai-org/GLM-4.7-Flash": 62,
}
"""Of the published checkpoints in GB, where 60 would be far off."""

PUBLISHED = replace(model_facts(QWEN3_CODER_NEXT_EAGLE3, 291_000_000), has_d2t=True)
NEXT_HEAD = replace(PUBLISHED, aux_layers=(2, 26, 46))

FACTS: dict[str, ModelFacts] = {
    NEXT: model_facts(QWEN3_CODER_NEXT, 159 * GB, {"model.norm.weight"}),
    HEAD: NEXT_HEAD,
    "hf://thoughtworks/Qwen3-Coder-Next-Eagle3": PUBLISHED,
    **{
        f"hf://{name}": model_facts(config, int(SIZES.get(name, 60) * GB), {"model.norm.weight"})
        for name, config in TARGETS.items()
    },
    **{f"hf://{name}": replace(model_facts(config, GB), has_d2t=True) for name, config in HEADS.items()},
    "hf://Qwen/Qwen3-Coder-Next-FP8": model_facts(QWEN3_CODER_NEXT_FP8, 80 * GB, {"model.norm.weight"}),
    # What nobody publishes.
    "hf://test/llama-70b": model_facts(LLAMA_3_3_70B, 141 * GB),
    "hf://test/code": replace(NEXT_HEAD, architectures=("OwnForCausalLM",), custom_code=True),
    "hf://test/no-d2t": replace(NEXT_HEAD, has_d2t=False),
    "hf://test/renamed": replace(NEXT_HEAD, lacks=("fc", "layers.0.self_attn.q_proj")),
    "hf://test/last": replace(NEXT_HEAD, aux_layers=(3, 23, 47)),
    "hf://test/deeper": replace(NEXT_HEAD, aux_layers=(3, 23, 58)),
    **{
        f"hf://test/{name}": model_facts(config, GB, {"d2t", "fc.weight"}, has_code=True)
        for name, config in {
            "speculator": speculator(),
            "peagle": speculator("peagle", hidden_size=2048),
            "mtp": speculator("mtp", hidden_size=2048),
            "speculator-dflash": speculator("dflash"),
            "speculator-30b": speculator(verifier=CODER_30B, hidden_size=2048, num_key_value_heads=4),
        }.items()
    },
    "hf://test/dspark": replace(NEXT_HEAD, architectures=("DSparkDraftModel",), markov_rank=0),
}

SOURCE = "spec.draft.source"
PARALLEL = "spec.accelerator.tensorParallelSize"


def row(name: str, path: str, *changes: Change, on: str = "qwen3-coder-next-upstream") -> Row:
    return Row(name=name, stage=Stage.PREFLIGHT, changes=changes, path=path, on=on)


def head(name: str, source: str, on: str = "qwen3-coder-next-upstream") -> Row:
    """The good resource with another head."""
    return row(name, SOURCE, (SOURCE, source), on=on)


def version(number: str) -> tuple[Change, ...]:
    return (("spec.engine.version", number), ("spec.engine.image", f"lmsysorg/sglang:v{number}"))


def draft(**fields: Any) -> Change:
    return "spec.draft", fields


PREFLIGHT: tuple[Row, ...] = (
    row("EAGLE for an EAGLE3 head", "spec.draft.algorithm", ("spec.draft.algorithm", "EAGLE")),
    row("the same on one candidate", "spec.candidates[1].draft.algorithm",
        ("spec.candidates.1.draft", {"algorithm": "EAGLE", "source": HEAD})),
    row("the post's head on the post's version", "spec.engine.version", *version("0.4.5"), on="qwen3-coder-30b-a3b"),
    row("the post's algorithm", "spec.draft.algorithm", ("spec.draft.algorithm", "EAGLE"), on="qwen3-coder-30b-a3b"),
    row("a target that hands out nothing on vLLM", "spec.engine.version",
        ("spec.target.source", "hf://zai-org/GLM-4.7-FP8"), (SOURCE, "hf://thoughtworks/GLM-4.7-FP8-Eagle3"),
        ("spec.accelerator", {"product": "NVIDIA-H200", "count": 4}), on="qwen3-coder-30b-vllm"),
    row("a fork's target without the fork", "spec.engine.version", *version("0.5.6"),
        ("spec.engine.args", ["--attention-backend=triton", "--mem-fraction-static=0.85"])),
    head("the target as its own head", NEXT),
    head("a whole model as a head", "hf://Qwen/Qwen3-8B"),
    head("a head of another size", "hf://thoughtworks/Qwen3-8B-Eagle3"),
    head("a head of another vocabulary", "hf://thoughtworks/GLM-4.7-Flash-Eagle3"),
    head("a head without d2t", "hf://test/no-d2t"),
    head("a head with other names", "hf://test/renamed"),
    head("a head that reads what the last layer puts out", "hf://test/last"),
    head("the same on the fork", "hf://test/last", on="qwen3-coder-next"),
    head("a head of a deeper target", "hf://test/deeper"),
    row("a head in half precision", "spec.engine.args",
        ("spec.engine.args", ["--attention-backend=flashinfer"]), on="llama-3.1-8b"),
    row("blocks that cannot be cut", PARALLEL,
        ("spec.target.source", "hf://Qwen/Qwen3-Coder-Next-FP8"), ("spec.accelerator.count", 8)),
    row("heads that cannot be split", PARALLEL, ("spec.accelerator.count", 3)),
    row("a head's heads that cannot be split", PARALLEL, ("spec.accelerator.count", 4), on="gemma-4-31b"),
    row("70B on one card of 80 GB", "spec.accelerator.count",
        ("spec.target.source", "hf://test/llama-70b"), ("spec.accelerator.product", "NVIDIA-H100-80GB-HBM3"),
        on="llama-3.1-8b"),
    row("a tree over a latent cache", "spec.candidates[0].tree.topK",
        ("spec.candidates.0.tree", {"numSteps": 3, "topK": 4, "numDraftTokens": 8}), on="glm-4.7-flash"),
    row("NEXTN on a target without such layers", "spec.draft.algorithm", draft(algorithm="NEXTN"), on="qwen3-8b"),
    row("a small model with other words", SOURCE,
        draft(algorithm="STANDALONE", source="hf://meta-llama/Llama-3.1-8B-Instruct"),
        ("spec.candidates", [{"name": "chain", "tree": {"numSteps": 5, "topK": 1, "numDraftTokens": 6}}]),
        on="qwen3-8b"),
    row("rejection sampling with a part of the words", "spec.candidates[1].args",
        ("spec.candidates.1.args", ["--speculative-use-rejection-sampling"])),
    row("code that is not trusted", "spec.engine.trustRemoteCode",
        (SOURCE, "hf://test/code"), ("spec.engine.trustRemoteCode", False)),
    row("a speculator as the target", "spec.target.source",
        ("spec.target.source", "hf://test/speculator-30b"), on="qwen3-coder-30b-vllm"),
    row("a speculator as the target of SGLang", "spec.target.source",
        ("spec.target.source", "hf://test/speculator"), on="qwen3-8b"),
    head("a speculator on SGLang", "hf://test/speculator", on="qwen3-8b"),
    row("a block drafter of that format on SGLang", SOURCE,
        draft(algorithm="DFLASH", source="hf://test/speculator-dflash"),
        ("spec.candidates", [{"name": "block", "blockSize": 8}]), on="qwen3-8b"),
    head("a speculator of another size", "hf://test/speculator", on="qwen3-coder-30b-vllm"),
    head("a speculator that drafts in parallel", "hf://test/peagle", on="qwen3-coder-30b-vllm"),
    head("a speculator that vLLM has no reader of", "hf://test/mtp", on="qwen3-coder-30b-vllm"),
    row("EAGLE for a speculator of EAGLE3", "spec.draft.algorithm",
        draft(algorithm="EAGLE", source="hf://test/speculator-30b"), on="qwen3-coder-30b-vllm"),
    row("a DSPARK head without its rank", SOURCE,
        draft(algorithm="DSPARK", source="hf://test/dspark"),
        ("spec.candidates", [{"name": "wide", "blockSize": 4}])),
)  # fmt: skip
