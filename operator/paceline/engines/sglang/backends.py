"""SGLang's attention backends: which attention each computes, and whether it speculates; rules about them.

Sources are below `srt/` of 0.5.23 unless they say otherwise: the registry of backends
(layers/attention/attention_registry.py) and the drafts' backends (speculative/draft_utils.py:96 and :126).
dev/sglang/extract_backends.py reads both in the wheels from 0.5.5 on, and tests compare the table with them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.core import ModelFacts
from paceline.engines.arguments import flag_value
from paceline.engines.model_rules import LAYERS_OF_THE_TARGET, ModelFinding, ModelRule, PairFacts
from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import candidates
from paceline.engines.sglang.flags_by_release import Spans, flags, is_in

MLA, GQA = "latent attention (MLA)", "multi-head attention (MHA or GQA)"
BOTH = frozenset({MLA, GQA})
_NONE: frozenset[str] = frozenset()
FIRST_READ = "0.5.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """`attends` are the kinds of attention that it computes, `branches` those for which it drafts trees; `hybrids` are
    releases in which it serves hybrids of attention and gated delta networks on Blackwell (attention_registry.py:44 and
    :464; :401 of 0.5.17, :252 of 0.5.12, :201 of 0.5.7). `verifies`: whether its targets may speculate at all;
    `drafts`: the first release whose EAGLE worker drafts on it, "" if none does."""

    attends: frozenset[str] = BOTH
    branches: frozenset[str] = _NONE
    hybrids: Spans = ()
    verifies: bool = True
    drafts: str = FIRST_READ
    source: str = "draft_utils.py:96"

    def drafts_in(self, version: str) -> bool:
        """Whether the release's EAGLE worker drafts on this backend. For releases that were not read, False only if no
        release's does."""
        number, since = release(version) or (), release(self.drafts)
        return since is not None and (number >= since or number < (release(FIRST_READ) or ()))


BACKENDS: Mapping[str, Backend] = {
    "triton": Backend(branches=BOTH, hybrids=[["0.5.5"]]),
    "fa3": Backend(branches=BOTH),
    "fa4": Backend(branches=frozenset({GQA}), hybrids=[["0.5.10"]], drafts="0.5.10"),
    "flashinfer": Backend(
        branches=frozenset({GQA}),
        hybrids=[["0.5.10", "0.5.15.post1"], ["0.5.21"]],
        source="flashinfer_mla_backend.py:1196; sglang#35080",
    ),
    "intel_amx": Backend(branches=frozenset({GQA}), drafts="0.5.16"),
    "intel_xpu": Backend(branches=frozenset({GQA}), drafts="0.5.20"),
    "ascend": Backend(branches=frozenset({GQA})),
    "aiter": Backend(source="aiter_backend.py:1396"),
    "trtllm_mha": Backend(
        attends=frozenset({GQA}), hybrids=[["0.5.6"]], source="attention_registry.py:280 and speculative_hook.py:1176"
    ),
    "trtllm_mla": Backend(attends=frozenset({MLA}), source="attention_registry.py:97 and trtllm_mla_backend.py:1768"),
    "cutedsl_mla": Backend(
        attends=frozenset({MLA}), drafts="0.5.13", source="attention_registry.py:121 and trtllm_mla_backend.py:1768"
    ),
    "tokenspeed_mla": Backend(
        attends=frozenset({MLA}), drafts="0.5.12", source="choices.py:86: another name of cutedsl_mla"
    ),
    "cutlass_mla": Backend(attends=frozenset({MLA}), drafts="", source="cutlass_mla_backend.py:48 of 0.5.12"),
    "flashmla": Backend(attends=frozenset({MLA}), source="flashmla_backend.py:608"),
    "dsa": Backend(attends=frozenset({MLA}), drafts="0.5.13"),
    "nsa": Backend(attends=frozenset({MLA})),
    "dsv4": Backend(attends=frozenset({MLA}), drafts="0.5.12"),
    "compressed": Backend(attends=frozenset({MLA}), drafts="0.5.12", source="choices.py:77: another name of dsv4"),
    "hpc_ops": Backend(attends=frozenset({GQA}), verifies=False, source="attention_registry.py:295"),
    "flex_attention": Backend(verifies=False, source="attention_hook.py:161, tried"),
    "torch_native": Backend(verifies=False, source="draft_utils.py:63, tried on a CPU; sglang#36352"),
    "minicpm_flashattn": Backend(verifies=False, source="minicpm/backend.py:380"),
    "minicpm_flashinfer": Backend(verifies=False, source="minicpm/backend.py:380"),
    "wave": Backend(drafts="", source="draft_utils.py:63"),
    "dual_chunk_flash_attn": Backend(drafts="", source="draft_utils.py:34 of 0.5.12"),
    "llada2_cfg_flashinfer": Backend(attends=frozenset({GQA}), drafts="", source="attention_registry.py:83"),
}
"""All backends of the releases except `qsa`, which only the model chooses. Other backends are not judged."""
PINNED_BY = (("--attention-backend",), ("--prefill-attention-backend", "--decode-attention-backend"))
"""Each of these pins SGLang's attention backend."""
_FLAGS = tuple(dict.fromkeys(flag for flags in PINNED_BY for flag in flags))
OF_THE_DRAFT = "--speculative-draft-attention-backend"
ON_A_BACKEND = ("EAGLE", "EAGLE3", "STANDALONE")
"""Algorithms whose worker does not choose a backend itself; DFLASH and DSPARK do (speculative_hook.py:886)."""
BLACKWELL = ("B200", "B300", "GB200", "GB300")


def chains_only(backend: str | None) -> bool:
    known = BACKENDS.get(backend or "")
    return known is not None and bool(known.drafts) and known.verifies and not known.branches


def in_force(given: Mapping[str, object]) -> tuple[str, ...]:
    """The flags in `given` that SGLang follows: prefill and decode, or the one for both."""
    both, *each = _FLAGS
    return tuple(dict.fromkeys(flag if flag in given else both for flag in each if flag in given or both in given))


def _speculates(configuration: Configuration) -> Iterator[Refusal]:
    version = configuration.version
    for candidate in candidates(configuration):
        named = candidate.flags.get(OF_THE_DRAFT)
        for parsed in map(candidate.flags.__getitem__, in_force(candidate.flags)):
            backend = BACKENDS.get(parsed.value, Backend())
            if not backend.verifies:
                yield parsed.refused(f"{parsed.value} does not speculate: take triton, or another backend")
            elif named is None and candidate.runs_as in ON_A_BACKEND and not backend.drafts_in(version):
                message = f"{parsed.value} cannot draft in {configuration.engine}: {_on_triton(version)}"
                yield candidate.refused("args", message)
        own = BACKENDS.get(named.value, Backend()) if named else Backend()
        if named and not (own.verifies and own.drafts_in(version)):
            yield named.refused(f"{named.value} cannot draft in {configuration.engine}: take triton")


def _on_triton(version: str) -> str:
    """A way out that the release supports."""
    return f"add {OF_THE_DRAFT}=triton" if OF_THE_DRAFT in flags(version) else "take --attention-backend=triton"


RULES = (
    EngineRule(
        id="backend-speculates",
        check=_speculates,
        reason="ValueError: EAGLE is not supported in decode attention backend …, after the weights are loaded",
        source="; ".join(
            f"{name}: {row.source}" for name, row in BACKENDS.items() if not (row.verifies and row.drafts == FIRST_READ)
        ),
    ),
)


def _kind(facts: ModelFacts) -> str:
    return GQA if facts.kv_lora_rank is None else MLA


def _given(pair: PairFacts) -> dict[str, str]:
    """Flag → backend, from the arguments of all arms."""
    values = {flag: flag_value(pair.server.engine.args, flag) for flag in _FLAGS}
    return {flag: value for flag, value in values.items() if value}


def _on_blackwell(pair: PairFacts) -> bool:
    return any(name in pair.server.accelerator.product for name in BLACKWELL)


def target_is_attended(pair: PairFacts) -> Iterator[ModelFinding]:
    """Finds a backend that cannot compute the target's attention; it concerns all arms and is reported once."""
    target = pair.target
    if not target.architectures or target.num_attention_heads is None:
        return
    given, version = _given(pair), pair.server.engine.version
    for flag, backend in ((flag, given[flag]) for flag in in_force(given)):
        known = BACKENDS.get(backend)
        if known and _kind(target) not in known.attends:
            problem = f"{flag}={backend} for a target with {_kind(target)}"
            yield ModelFinding(path="engine.args", problem=problem, fix="take triton, or another backend")
        elif target.state_bytes is not None and _on_blackwell(pair) and known and not is_in(version, known.hybrids):
            problem = f"{flag}={backend} for a target with gated delta networks, on {pair.server.accelerator.product}"
            able = [name for name, row in BACKENDS.items() if is_in(version, row.hybrids)]
            yield ModelFinding(path="engine.args", problem=problem, fix=f"take {' or '.join(able)}")


def draft_is_attended(pair: PairFacts) -> Iterator[ModelFinding]:
    """A head uses its target's backend, unless the candidate names another."""
    own_layers = pair.draft.algorithm in LAYERS_OF_THE_TARGET
    if own_layers or pair.draft.algorithm not in ON_A_BACKEND or not pair.head.architectures:
        return
    named, given = flag_value(pair.arm.args, OF_THE_DRAFT), _given(pair)
    shared = [given[flag] for flag in in_force(given)]
    if not shared and _kind(pair.target) == MLA and _on_blackwell(pair):
        shared = ["trtllm_mla"]  # model_overrides/deepseek_v2.py:185
    for backend in [named] if named else dict.fromkeys(shared):
        if backend in BACKENDS and _kind(pair.head) not in BACKENDS[backend].attends:
            yield ModelFinding(
                arm=pair.arm.name,
                path="args",
                problem=f"{pair.name} has {_kind(pair.head)}, which {backend} cannot compute"
                + ("" if named else "; its drafts run on the target's backend"),
                fix=f"take {OF_THE_DRAFT}=triton" if named else _on_triton(pair.server.engine.version),
            )


def trees_branch(pair: PairFacts) -> Iterator[ModelFinding]:
    tree, given = pair.arm.tree, _given(pair)
    if _kind(pair.target) == GQA or tree is None or tree.top_k == 1:
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
