"""SGLang's attention backends: which attention each computes, and whether it speculates; and the rules that follow.

Sources are below `srt/` of 0.5.23: the registry of backends (layers/attention/attention_registry.py), the backends that
drafts are made on (speculative/draft_utils.py:78 and :128; 0.5.12 and 0.5.17 have the same but for what the rows say).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.core import ModelFacts
from paceline.engines.adapter import Refusal
from paceline.engines.arguments import flag_value
from paceline.engines.model_rules import LAYERS_OF_THE_TARGET, ModelFinding, ModelRule, PairFacts
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import Candidate, candidates

MLA, GQA = "latent attention (MLA)", "heads of its own (GQA)"
BOTH = frozenset({MLA, GQA})
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """`attends` are the kinds of attention that it computes, `branches` those on which it drafts trees. `verifies`: a
    target on it may speculate at all; `drafts`: EAGLE's worker makes drafts on it."""

    attends: frozenset[str] = BOTH
    branches: frozenset[str] = NONE
    verifies: bool = True
    drafts: bool = True
    source: str = "draft_utils.py:78"


BACKENDS: Mapping[str, Backend] = {
    "triton": Backend(branches=BOTH),
    "fa3": Backend(branches=BOTH),
    "fa4": Backend(branches=frozenset({GQA})),
    "flashinfer": Backend(branches=frozenset({GQA}), source="flashinfer_mla_backend.py:1196"),
    "intel_amx": Backend(branches=frozenset({GQA})),
    "intel_xpu": Backend(branches=frozenset({GQA})),
    "ascend": Backend(branches=frozenset({GQA})),
    "aiter": Backend(source="aiter_backend.py:1396"),
    "trtllm_mha": Backend(attends=frozenset({GQA}), source="attention_registry.py:280 and speculative_hook.py:1176"),
    "trtllm_mla": Backend(attends=frozenset({MLA}), source="attention_registry.py:97 and trtllm_mla_backend.py:1768"),
    "cutedsl_mla": Backend(attends=frozenset({MLA}), source="attention_registry.py:121 and trtllm_mla_backend.py:1768"),
    "tokenspeed_mla": Backend(attends=frozenset({MLA}), source="choices.py:86: another name of cutedsl_mla"),
    "cutlass_mla": Backend(attends=frozenset({MLA}), drafts=False, source="0.5.12, trtllm_mla_backend.py"),
    "flashmla": Backend(attends=frozenset({MLA}), source="flashmla_backend.py:608"),
    "dsa": Backend(attends=frozenset({MLA})),
    "nsa": Backend(attends=frozenset({MLA})),
    "dsv4": Backend(attends=frozenset({MLA})),
    "compressed": Backend(attends=frozenset({MLA}), source="choices.py:77: another name of dsv4"),
    "hpc_ops": Backend(attends=frozenset({GQA}), verifies=False, source="attention_registry.py:295"),
    "flex_attention": Backend(verifies=False, source="attention_hook.py:161, tried"),
    "torch_native": Backend(verifies=False, source="draft_utils.py:64 and sglang#36352"),
    "wave": Backend(drafts=False, source="draft_utils.py:64"),
    "dual_chunk_flash_attn": Backend(drafts=False, source="0.5.12, draft_utils.py"),
    "llada2_cfg_flashinfer": Backend(attends=frozenset({GQA}), drafts=False, source="attention_registry.py:83"),
    "minicpm_flashattn": Backend(drafts=False, source="draft_utils.py:64"),
    "minicpm_flashinfer": Backend(drafts=False, source="draft_utils.py:64"),
}
"""All that 0.5.23 has but `qsa`, and two of earlier releases. What is not here is not judged."""
PINNED_BY = (("--attention-backend",), ("--prefill-attention-backend", "--decode-attention-backend"))
"""Either of these leaves SGLang no choice of attention backend."""
FLAGS = tuple(dict.fromkeys(flag for flags in PINNED_BY for flag in flags))
OF_THE_DRAFT = "--speculative-draft-attention-backend"
ON_A_BACKEND = ("EAGLE", "EAGLE3", "STANDALONE")
"""Algorithms whose worker has no backend of its own choice; DFLASH and DSPARK take another by themselves
(speculative_hook.py:886)."""
BLACKWELL = ("B200", "B300", "GB200", "GB300")
ON_BLACKWELL = ("triton", "trtllm_mha", "fa4", "flashinfer")
"""Backends that serve a hybrid of attention and gated delta networks there (attention_registry.py:466)."""


def chains_only(backend: str | None) -> bool:
    known = BACKENDS.get(backend or "")
    return known is not None and known.drafts and known.verifies and not known.branches


def in_force(given: Mapping[str, object]) -> tuple[str, ...]:
    """Of the flags in `given`, those that SGLang follows: of prefill and decode, or the one for both."""
    both, *each = FLAGS
    return tuple(dict.fromkeys(flag if flag in given else both for flag in each if flag in given or both in given))


def _speculates(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration):
        own = BACKENDS.get(candidate.value(OF_THE_DRAFT) or "")
        for parsed in map(candidate.flags.__getitem__, in_force(candidate.flags)):
            backend = BACKENDS.get(parsed.value, Backend())
            if not backend.verifies:
                yield parsed.refused(f"{parsed.value} does not speculate: take triton, or another backend")
            elif own is None and not backend.drafts and candidate.runs_as in ON_A_BACKEND:
                yield _no_drafts(candidate, parsed.value)
        if own is not None and not (own.drafts and own.verifies):
            yield candidate.flags[OF_THE_DRAFT].refused(f"{candidate.value(OF_THE_DRAFT)} makes no drafts: take triton")


def _no_drafts(candidate: Candidate, backend: str) -> Refusal:
    return candidate.refused("args", f"{backend} makes no drafts: add {OF_THE_DRAFT}=triton")


RULES = (
    EngineRule(
        id="backend-speculates",
        check=_speculates,
        reason="ValueError: EAGLE is not supported in decode attention backend …, after the weights are loaded",
        source="; ".join(
            f"{name}: {row.source}" for name, row in BACKENDS.items() if not (row.verifies and row.drafts)
        ),
    ),
)


def kind(facts: ModelFacts) -> str:
    return GQA if facts.kv_lora_rank is None else MLA


def _given(pair: PairFacts) -> dict[str, str]:
    """Flag → backend, of the arguments of all arms."""
    values = {flag: flag_value(pair.server.engine.args, flag) for flag in FLAGS}
    return {flag: value for flag, value in values.items() if value}


def _on_blackwell(pair: PairFacts) -> bool:
    return any(name in pair.server.accelerator.product for name in BLACKWELL)


def target_is_attended(pair: PairFacts) -> Iterator[ModelFinding]:
    """Of all arms; told once."""
    target = pair.target
    if not target.architectures or target.num_attention_heads is None:
        return
    given = _given(pair)
    for flag, backend in ((flag, given[flag]) for flag in in_force(given)):
        known = BACKENDS.get(backend)
        if known and kind(target) not in known.attends:
            problem = f"{flag}={backend} for a target with {kind(target)}"
            yield ModelFinding(path="engine.args", problem=problem, fix="take triton, or another backend")
        elif target.attention_layers and _on_blackwell(pair) and backend not in ON_BLACKWELL:
            problem = f"{flag}={backend} for a target that mixes kinds of layers, on {pair.server.accelerator.product}"
            yield ModelFinding(path="engine.args", problem=problem, fix=f"take {' or '.join(ON_BLACKWELL)}")


def draft_is_attended(pair: PairFacts) -> Iterator[ModelFinding]:
    """A head is drafted on the backend of its target, unless the candidate names another."""
    own_layers = pair.draft.algorithm in LAYERS_OF_THE_TARGET
    if own_layers or pair.draft.algorithm not in ON_A_BACKEND or not pair.head.architectures:
        return
    named, given = flag_value(pair.arm.args, OF_THE_DRAFT), _given(pair)
    target = given.get("--decode-attention-backend") or given.get("--attention-backend")
    if target is None and kind(pair.target) == MLA and _on_blackwell(pair):
        target = "trtllm_mla"  # model_overrides/deepseek_v2.py:185
    backend = named or target or ""
    if backend in BACKENDS and kind(pair.head) not in BACKENDS[backend].attends:
        yield ModelFinding(
            arm=pair.arm.name,
            path="args",
            problem=f"{pair.name} has {kind(pair.head)}, and {backend} computes none"
            + ("" if named else ", which its drafts run on like the target"),
            fix=f"add {OF_THE_DRAFT}=triton here",
        )


def trees_branch(pair: PairFacts) -> Iterator[ModelFinding]:
    tree, given = pair.arm.tree, _given(pair)
    if kind(pair.target) == GQA or tree is None or tree.top_k == 1:
        return
    backend = given.get("--decode-attention-backend") or given.get("--attention-backend")
    if backend is None or (backend in BACKENDS and MLA not in BACKENDS[backend].branches):
        yield ModelFinding(
            arm=pair.arm.name,
            path="tree.topK",
            problem=f"topK {tree.top_k} on a target with {MLA}, backend {backend or 'not chosen'}",
            fix="set topK to 1 and numDraftTokens to numSteps + 1, or add --attention-backend=triton to "
            "spec.engine.args",
        )


MODEL_RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(
        id="mla-drafts-chains",
        why="flashinfer, flashmla and trtllm_mla draft only chains over a latent cache and refuse at start",
        check=trees_branch,
        each_candidate=True,
    ),
    ModelRule(
        id="backend-attends-target",
        why="the engine refuses at start: such a backend can only be used with other models (attention_registry.py)",
        check=target_is_attended,
    ),
    ModelRule(
        id="backend-attends-draft",
        why="the engine loads the weights and refuses: this backend can only be used with other models "
        "(attention_registry.py:97; sglang#23490)",
        check=draft_is_attended,
        each_candidate=True,
    ),
)
