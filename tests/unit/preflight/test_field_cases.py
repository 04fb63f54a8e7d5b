"""Configurations that people have published, in bug reports and manifests: read rightly, or told why not.

The shapes are theirs, written anew; the numbers name the reports. Everything goes through `paceline validate`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says

from paceline.cli import main

SPEC: dict[str, Any] = {
    "target": {"source": "hf://acme/target", "servedName": "target"},
    "draft": {"algorithm": "EAGLE3", "source": "hf://acme/head"},
    "engine": {"type": "SGLang", "version": "0.5.23", "image": "lmsysorg/sglang:v0.5.23"},
    "accelerator": {"product": "NVIDIA-H100-80GB-HBM3", "count": 8},
    "cache": {"claim": {"name": "models", "size": "400Gi"}},
    "candidates": [{"name": "chain", "tree": {"numSteps": 3}}],
    "pools": [{"name": "chat", "load": [{"concurrency": [1]}]}],
}
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
HEAD = {
    **LLAMA,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]},
}
PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
         "mlp.down_proj")  # fmt: skip
TENSORS: Mapping[str, Sequence[int]] = {
    "fc.weight": (4096, 12288),
    "norm.weight": (4096,),
    "lm_head.weight": (32000, 4096),
    "d2t": (32000,),
    **{f"layers.0.{part}.weight": (1,) for part in PARTS},
}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
NESTED: Mapping[str, Any] = {
    "Qwen3-Omni": {"architectures": ["Q"], "thinker_config": {"text_config": LLAMA}},
    "InternVL": {"architectures": ["I"], "llm_config": LLAMA},
    "DeepSeek-VL2": {"architectures": ["D"], "language_config": LLAMA},
}
KIMI = {**LLAMA, **MLA, "architectures": ["KimiK25ForConditionalGeneration"], "num_attention_heads": 64}
GLM = {**LLAMA, "architectures": ["Glm4MoeForCausalLM"], "num_nextn_predict_layers": 1}
NEXTN = {"model.layers.32.eh_proj.weight": (4096, 8192)}
QWEN3_NEXT = {
    **LLAMA,
    "architectures": ["Qwen3NextForCausalLM"],
    "full_attention_interval": 4,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "num_nextn_predict_layers": 1,
}
MTP_WEIGHTS = {"mtp.fc.weight": (4096, 8192)}
WHOLE: Mapping[str, Sequence[int]] = {"model.norm.weight": (1,)}
SHARE = "--mem-fraction-static=0.8"
SPEC_V2 = [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"}]
B200 = {"product": "NVIDIA-B200", "count": 8}
FIRST = [{"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "0"}]


@dataclass(frozen=True, kw_only=True)
class Case:
    """`refused` or `noted`: the path below spec of what is told; the file is valid unless it is refused."""

    of: str
    spec: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=lambda: LLAMA)
    head: Mapping[str, Any] = field(default_factory=lambda: HEAD)
    weights: Mapping[str, Sequence[int]] = field(default_factory=lambda: TENSORS)
    of_target: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"model.layers.0.x": (1,)})
    refused: str = ""
    noted: str = ""


def sglang(*args: str, version: str = "0.5.23", env: Any = (), **spec: Any) -> dict[str, Any]:
    engine = {"type": "SGLang", "version": version, "image": f"lmsysorg/sglang:v{version}"}
    more = {name: list(value) for name, value in (("args", args), ("env", env)) if value}
    return {"engine": {**engine, **more}, **spec}


def vllm(*args: str, version: str = "0.33.0", env: Any = (), **spec: Any) -> dict[str, Any]:
    engine = {"type": "vLLM", "version": version, "image": f"vllm/vllm-openai:v{version}"}
    more = {name: list(value) for name, value in (("args", args), ("env", env)) if value}
    return {"engine": {**engine, **more}, **spec}


def draft(algorithm: str, source: str | None = "hf://acme/head", name: str = "") -> dict[str, Any]:
    return {"algorithm": algorithm, **({"source": source} if source else {}), **({"name": name} if name else {})}


def candidate(**shape: Any) -> list[dict[str, Any]]:
    return [{"name": "one", **shape}]


def chain(steps: int = 3, *args: str) -> list[dict[str, Any]]:
    tree = {"numSteps": steps, "topK": 1, "numDraftTokens": steps + 1}
    return candidate(tree=tree, **({"args": list(args)} if args else {}))


ASSISTANT = {**LLAMA, "architectures": ["Gemma4AssistantForCausalLM"], "num_hidden_layers": 4}
NOT_FROZEN: Mapping[str, Mapping[str, Any]] = {
    "candidates[0].tree.topK": sglang(
        "--attention-backend=flashinfer",
        draft=draft("MTP"),
        candidates=candidate(tree={"numSteps": 3, "topK": 4, "numDraftTokens": 8}),
    ),
    "candidates[0].args": sglang(draft=draft("MTP"), candidates=chain(3, "--speculative-use-rejection-sampling")),
    "engine.args": sglang("--enable-lora", draft=draft("MTP")),
    "candidates[0].adaptive": sglang(draft=draft("MTP"), candidates=candidate(adaptive={})),
}
CASES: Mapping[str, Sequence[Case]] = {
    "renames": (
        Case(of="sglang#3362: the cure of an OOM", spec=sglang("--cuda-graph-max-bs=32", SHARE, version="0.5.12")),
        Case(of="QwenLM/Qwen3.8#108", spec=sglang("--mamba-scheduler-strategy=extra_buffer", SHARE, version="0.5.12")),
        Case(of="sglang#19169, on a newer image", spec=sglang("--mamba-scheduler-strategy=extra_buffer"),
             refused="engine.args[0]"),
        Case(of="sglang#5873: deprecated, and works", spec=sglang("--dp-size=8", "--enable-dp-attention")),
        Case(of="QwenLM/Qwen3.8#108, its variable", noted="engine.env[0].name",
             spec={"engine": {**sglang()["engine"], "env": [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "1"}]}}),
        Case(of="sglang#5491, as it is written today", spec=sglang("--cuda-graph-max-bs=8"), refused="engine.args[0]"),
        Case(of="sglang#18808: Qwen3-Next on 0.5.9, with its variable", target=QWEN3_NEXT, of_target=MTP_WEIGHTS,
             spec=sglang("--mamba-scheduler-strategy=extra_buffer", SHARE, version="0.5.9", env=SPEC_V2,
                         draft=draft("MTP", None))),
        Case(of="sglang#36478, on a release without the old name", spec=sglang("--disable-piecewise-cuda-graph"),
             refused="engine.args[0]"),
        Case(of="sglang#38375: a switch without a successor", spec=sglang("--enable-piecewise-cuda-graph"),
             refused="engine.args[0]"),
        Case(of="QwenLM/Qwen3.8#108, without the strategy", target=QWEN3_NEXT, of_target=MTP_WEIGHTS,
             spec=sglang(SHARE, version="0.5.12", draft=draft("MTP", None)), refused="engine.args"),
        Case(of="sglang#11398: a shorter head, its variable off", head={**HEAD, "max_position_embeddings": 2048},
             spec=sglang(env=[{"name": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "value": "0"}]),
             refused="engine.env"),
        Case(of="a name that the older release has not", spec=sglang("--cuda-graph-max-bs-decode=32", version="0.5.12"),
             refused="engine.args[0]"),
    ),
    "other names of MTP": (
        Case(of="sglang#30296: the target as its own draft", spec={"draft": draft("EAGLE", "hf://acme/target")},
             target=GLM, of_target=NEXTN, refused="draft.source"),
        Case(of="vllm#42005: an assistant with EAGLE", spec={"draft": draft("EAGLE")}, refused="draft.algorithm",
             head={**HEAD, "architectures": ["Gemma4AssistantForCausalLM"], "hidden_size": 1024}),
        Case(of="vllm#41789: an assistant as a small model", spec=vllm(draft=draft("STANDALONE")),
             head={**HEAD, "architectures": ["Gemma4AssistantForCausalLM"]}, refused="draft.algorithm"),
        Case(of="sglang#6296: a NextN repository", spec={"draft": draft("EAGLE")},
             head={**HEAD, "architectures": ["DeepseekV3ForCausalLMNextN"]}, refused="draft.algorithm"),
        Case(of="sglang#6296, as MTP", spec={"draft": draft("MTP")}, weights=NEXTN,
             head={**LLAMA, "architectures": ["DeepseekV3ForCausalLMNextN"], "num_hidden_layers": 1}),
        Case(of="sglang#24436: an assistant as a small model", spec={"draft": draft("STANDALONE")},
             head={**HEAD, "architectures": ["Gemma4AssistantForCausalLM"]}, refused="draft.algorithm"),
        Case(of="sglang#24436: an assistant with EAGLE3", refused="draft.algorithm",
             head={**HEAD, "architectures": ["Gemma4UnifiedAssistantForCausalLM"]}),
        Case(of="sglang#24436, as its authors start it", spec={"draft": draft("MTP")},
             head=ASSISTANT,
             weights={"pre_projection.weight": (1,)}),
        *(Case(of=f"sglang#24436: what an assistant does not do, {path}", spec=spec, refused=path, head=ASSISTANT,
               weights={"pre_projection.weight": (1,)}) for path, spec in NOT_FROZEN.items()),
        Case(of="sglang#24436, a release before", spec=sglang(SHARE, version="0.5.11", draft=draft("MTP")),
             head=ASSISTANT, weights={"pre_projection.weight": (1,)}, refused="engine.version"),
        Case(of="sglang#5513: DeepSeek-R1-NextN with EAGLE3", refused="draft.algorithm",
             head={**LLAMA, "architectures": ["DeepseekV3ForCausalLMNextN"], "num_hidden_layers": 1}),
        Case(of="sglang#38236: DeepSeek-V4 with NEXTN", target={**GLM, "architectures": ["DeepseekV4ForCausalLM"]},
             spec={"draft": draft("NEXTN", None)}, of_target=NEXTN),
        Case(of="sglang#20809, of a class that came later", target={**GLM, "architectures": ["Glm4MoeLiteForCausalLM"]},
             spec=sglang(SHARE, version="0.5.7", env=SPEC_V2, draft=draft("MTP", None)), of_target=NEXTN,
             refused="draft.algorithm"),
        Case(of="sglang#20809: DeepSeek-V3.2", target={**GLM, "architectures": ["DeepseekV32ForCausalLM"]},
             spec=sglang(SHARE, version="0.5.9", env=SPEC_V2, draft=draft("MTP", None)), of_target=NEXTN),
        Case(of="EAGLE#60: a first head of Qwen2", refused="draft.source",
             target={**LLAMA, "architectures": ["Qwen2ForCausalLM"]}, spec={"draft": draft("EAGLE")},
             head={**LLAMA, "architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": 1}),
        Case(of="EAGLE#60: a first head as a small model", spec={"draft": draft("STANDALONE")},
             head={**LLAMA, "num_hidden_layers": 1}, weights={"fc.weight": (4096, 8192)}, refused="draft.source"),
        Case(of="EAGLE#60: a first head", spec={"draft": draft("EAGLE")}, head={**LLAMA, "num_hidden_layers": 1},
             refused="draft.source"),
    ),
    "weights": (
        Case(of="llm-compressor#1843: acceptance length 1.00", spec={"draft": draft("MTP", None)}, target=GLM,
             refused="draft.algorithm"),
        Case(of="ms-swift#7848", spec=vllm(draft=draft("MTP", None), candidates=chain(1)), target=GLM,
             refused="draft.algorithm"),
        Case(of="vllm#35548, kept", spec=vllm(draft=draft("MTP", None), candidates=chain(1)), target=GLM,
             of_target=NEXTN),
        Case(of="vllm#54526: four layers, counted as three", spec=vllm(), refused="draft.source",
             head={"speculators_model_type": "eagle3", "architectures": ["Eagle3Speculator"],
                   "eagle_aux_hidden_state_layer_ids": [2, 12, 20, 29], "transformer_layer_config": HEAD},
             weights={**TENSORS, "fc.weight": (4096, 16384)}),
        Case(of="vllm#17957: another hidden size", spec=vllm(), weights={**TENSORS, "fc.weight": (4096, 24576)},
             refused="draft.source"),
        Case(of="slime#1177: a vocabulary of another export", weights={**TENSORS, "d2t": (16000,)},
             refused="draft.source"),
        Case(of="a head whose scales nothing announces", refused="draft.source",
             weights={**TENSORS, "layers.0.mlp.up_proj.weight_scale": (1,)}),
        Case(of="a head without a class", head={**HEAD, "architectures": None}, refused="draft.source"),
        Case(of="vllm#50170: no layers named", spec=vllm(), head={**HEAD, "eagle_config": {}}, noted="draft.source"),
    ),
    "attention backends": (
        Case(of="sglang#36352: EAGLE3", spec=sglang("--attention-backend=torch_native"), refused="engine.args[0]"),
        Case(of="sglang#36352: NGRAM", spec=sglang("--attention-backend=torch_native", draft=draft("NGRAM", None),
             candidates=candidate(ngram={"numDraftTokens": 8, "breadth": 1})), refused="engine.args[0]"),
        Case(of="sglang#23490: Kimi K2.6", spec=sglang("--attention-backend=trtllm_mla"), target=KIMI,
             refused="candidates[0].args"),
        Case(of="sglang#23490, on GB300 by itself", target=KIMI, refused="engine.args",
             spec={"accelerator": {"product": "NVIDIA-GB300", "count": 4}}),
        Case(of="sglang#23490, mended", target=KIMI, spec=sglang("--attention-backend=trtllm_mla",
             candidates=chain(3, "--speculative-draft-attention-backend=triton"))),
        Case(of="sglang#14843: Kimi K2 with a backend of its own for the draft", target=KIMI, spec=sglang(
             "--attention-backend=trtllm_mla", accelerator=B200,
             candidates=chain(3, "--speculative-draft-attention-backend=trtllm_mha"))),
        Case(of="sglang#14843, the wrong way round", target=KIMI, spec=sglang(
             "--attention-backend=trtllm_mla", candidates=chain(3, "--speculative-draft-attention-backend=flashmla")),
             refused="candidates[0].args"),
        Case(of="sglang#23490, by the flag of prefill", target=KIMI, refused="candidates[0].args",
             spec=sglang("--prefill-attention-backend=trtllm_mla", "--decode-attention-backend=triton")),
        Case(of="sglang#23490, before drafts had a flag", target=KIMI, refused="candidates[0].args",
             spec=sglang("--attention-backend=trtllm_mla", SHARE, version="0.5.6", env=SPEC_V2)),
        Case(of="sglang#15127: a tree on the backend that Blackwell takes", refused="candidates[0].tree.topK",
             spec=sglang("--attention-backend=trtllm_mha", accelerator=B200,
                         candidates=candidate(tree={"numSteps": 3, "topK": 4, "numDraftTokens": 8}))),
        Case(of="sglang#35080: flashinfer with gated delta networks", target=QWEN3_NEXT, of_target=MTP_WEIGHTS,
             refused="engine.args", spec=sglang(
                 "--attention-backend=flashinfer", version="0.5.17", accelerator=B200, draft=draft("MTP", None))),
        Case(of="sglang#35080, put right", target=QWEN3_NEXT, of_target=MTP_WEIGHTS, spec=sglang(
             "--attention-backend=flashinfer", version="0.5.23", accelerator=B200, draft=draft("MTP", None))),
        Case(of="sglang#21080: fa4 before it drafts", refused="candidates[0].args",
             spec=sglang("--attention-backend=fa4", SHARE, version="0.5.9", env=SPEC_V2)),
        Case(of="sglang#16755: a chain on trtllm_mha", spec=sglang("--attention-backend=trtllm_mha")),
        Case(of="sglang#27942: a tree on trtllm_mha", refused="candidates[0].tree.topK",
             spec=sglang("--attention-backend=trtllm_mha",
                         candidates=candidate(tree={"numSteps": 3, "topK": 4, "numDraftTokens": 16}))),
    ),
    "parallelism": (
        Case(of="two replicas on the GPUs of one", spec=sglang("--dp-size=2"), refused="engine.args[0]"),
        Case(of="sglang#3750: groups that do not divide", spec=sglang("--attn-dp-size=3"), refused="engine.args[0]"),
        Case(of="sglang#19760: tp 8, dp 4", spec=sglang("--dp-size=4", "--enable-dp-attention", version="0.5.17")),
        Case(of="vllm-ascend#11299: tp 4, dp 4 on eight", refused="engine.args[0]", spec=vllm(
             "--data-parallel-size=4",
             accelerator={"product": "NVIDIA-H100-80GB-HBM3", "count": 8, "tensorParallelSize": 4})),
        Case(of="vllm#52688: two layers, three tokens", spec=vllm(draft=draft("MTP", None)), of_target=NEXTN,
             target={**GLM, "num_nextn_predict_layers": 2}, refused="candidates[0].tree.numSteps"),
    ),
    "vLLM's runners": (
        Case(of="vllm#30661: suffix", refused="draft.name",
             spec=vllm(draft=draft("Custom", None, "suffix"), candidates=candidate(custom={}))),
        Case(of="vllm#30661, on the first", spec=vllm(
             env=FIRST, draft=draft("Custom", None, "suffix"), candidates=candidate(custom={}))),
        Case(of="vllm#43010: P-EAGLE", spec=vllm(), refused="draft.source",
             head={"speculators_model_type": "peagle", "architectures": ["PEagleDraftModel"],
                   "transformer_layer_config": HEAD}),
        Case(of="vllm#49986: a schedule on the first", refused="candidates[0].depthByBatchSize", spec=vllm(
             env=FIRST,
             candidates=candidate(
                 depthByBatchSize=[{"fromBatchSize": b, "numSteps": n} for b, n in ((1, 3), (9, 0))]))),
        Case(of="vllm#5203: another vocabulary", spec=vllm(env=FIRST, draft=draft("STANDALONE")), weights=WHOLE,
             head={**LLAMA, "vocab_size": 32000}, refused="draft.source"),
        Case(of="vllm#5203, translated", weights=WHOLE, head={**LLAMA, "vocab_size": 32000},
             spec=vllm(env=FIRST, draft=draft("STANDALONE"),
                       candidates=chain(3, "--speculative-config.use_heterogeneous_vocab=true"))),
        Case(of="vllm#35973: PARD", weights=WHOLE, head=LLAMA, spec=vllm(
             env=FIRST, draft=draft("STANDALONE"), candidates=chain(3, "--speculative-config.parallel_drafting=true"))),
        Case(of="vllm#7859: a draft of 8k", spec=vllm(draft=draft("STANDALONE")), refused="engine.args",
             head={**LLAMA, "max_position_embeddings": 8192}, weights={"model.norm.weight": (1,)}),
    ),
    "vLLM's releases, methods and flags": (
        Case(of="vllm#8849: 0.6.6", spec=vllm(version="0.6.6"), refused="engine.version"),
        Case(of="vllm#31030: 0.11.0", spec=vllm(version="0.11.0"), refused="engine.version"),
        Case(of="0.27.1, which was not read", spec=vllm(version="0.27.1"), noted="engine.version"),
        Case(of="vllm#16971: medusa", refused="draft.name",
             spec=vllm(draft=draft("Custom", None, "medusa"), candidates=candidate(custom={}))),
        Case(of="a class without a name", refused="candidates[0].custom.args",
             spec=vllm(env=FIRST, draft=draft("Custom", None, "custom_class"), candidates=candidate(custom={}))),
        Case(of="a flag of before", spec=vllm("--guided-decoding-backend=xgrammar"), refused="engine.args[0]"),
        Case(of="field W5: a TPU", refused="accelerator.resourceName",
             spec=vllm(accelerator={"product": "tpu-v6e-slice", "count": 4, "resourceName": "google.com/tpu"})),
    ),
    "releases that are not known yet": (
        Case(of="SGLang", spec=sglang("--brand-new=1", "--attention-backend=brand_new", version="0.6.0"),
             noted="engine.version"),
        Case(of="vLLM", spec=vllm("--brand-new=1", version="0.34.0", draft=draft("Custom", None, "brand_new"),
                                  candidates=candidate(custom={})),
             noted="engine.version"),
        Case(of="what is ours", spec=sglang("--tp=8", version="0.6.0"), refused="engine.args[0]"),
    ),
    "settings of a draft": (
        Case(of="vllm/recipes#694",
             spec=vllm(candidates=chain(3, "--speculative-config.attention_backend=FLASH_ATTN"))),
        Case(of="vllm#24322", spec=vllm(candidates=chain(3, "--speculative-config.draft_tensor_parallel_size=1"))),
        Case(of="block verification",
             spec=vllm(candidates=chain(3, "--speculative-config.rejection_sample_method=block"))),
        Case(of="fly, which is lossy", refused="candidates[0].args[0]",
             spec=vllm(candidates=chain(3, "--speculative-config.rejection_sample_method=fly"))),
        Case(of="a key that has a field", refused="candidates[0].args[0]",
             spec=vllm(candidates=chain(3, "--speculative-config.num_speculative_tokens=5"))),
    ),
    "nested configurations": (
        *(Case(of=of, spec=vllm(), target=nested, head={**HEAD, "hidden_size": 5120},
               weights={**TENSORS, "fc.weight": (5120, 15360)}, refused="draft.source")
          for of, nested in NESTED.items()),
        Case(of="Qwen2.5-VL, right", spec=vllm(),
             target={"architectures": ["Qwen2_5_VLForConditionalGeneration"], "text_config": LLAMA}),
        Case(of="one that nothing is known of", target={"architectures": ["LlamaForCausalLM"], "d_model": 4096},
             noted="pools"),
    ),
}  # fmt: skip


def every() -> Iterator[Any]:
    for kind, cases in CASES.items():
        yield from (pytest.param(case, id=f"{kind}: {case.of}") for case in cases)


def model(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Sequence[int]]) -> None:
    """A header with these shapes, and no weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    entries = {
        name: {"dtype": "I64" if name == "d2t" else "BF16", "shape": list(shape), "data_offsets": [0, 0]}
        for name, shape in tensors.items()
    }
    header = json.dumps(entries).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize("case", list(every()))
def test_a_case(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    model(tmp_path / "acme" / "target", case.target, case.of_target)
    model(tmp_path / "acme" / "head", case.head, case.weights)
    kind = {"apiVersion": "paceline.dev/v1alpha1", "kind": "SpeculativeDeployment", "metadata": {"name": "case"}}
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({**kind, "spec": {**deepcopy(SPEC), **case.spec}}))
    code = main(["validate", "--models", str(tmp_path), str(file)])
    refused, told = ([line.partition(": ")[2] for line in text.splitlines()] for text in capsys.readouterr())
    noted = [line for line in told if case.noted and line.startswith(f"note: spec.{case.noted}: ")]
    assert (code, bool(refused), bool(noted)) == (bool(case.refused), bool(case.refused), bool(case.noted))
    assert not refused or any(line.startswith(f"spec.{case.refused}: ") for line in refused)
    says(*refused, *noted)
