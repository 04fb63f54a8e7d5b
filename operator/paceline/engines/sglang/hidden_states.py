"""The hidden states of a target that SGLang gives to an EAGLE3 head, by release, target class and the head's own names.

A state is numbered by the layer *before* which it is taken: 3 is the output of layer 2. A head names outputs
(`eagle_config.eagle_aux_hidden_state_layer_ids` in its config.json; SGLang looks only in `eagle_config`), so most
classes add one. Sources: the wheels named in the rows and `python/sglang/srt/models/qwen3_next.py` of
github.com/tails-mpt/sglang at db727c03, which is 0.5.6 and six commits; read, never run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.engines.release import Release, release
from paceline.engines.sglang.versions import neighbouring_releases

Layers = tuple[int, ...]

NAMES_READ = (0, 5, 6)
"""The first release that reads the head's names; 0.4.5 uses its own layers and ignores the head's
(model_runner.py:223)."""
GRAPHS_FOLLOW = (0, 5, 11)
"""The first release whose CUDA graphs follow the names. Earlier ones capture a target's CUDA graphs with the class's
own layers, and apply the head's names only afterwards: prefill uses the head's, verification the class's
(cuda_graph_runner.py:339 and model_runner.py:552 of 0.5.6; cuda_graph_runner.py:648 and model_runner.py:668 of 0.5.10;
fixed in model_runner.py:762 of 0.5.11)."""
UPSTREAM = (0, 5, 9)
"""The first release with an upstream hook for Qwen3-Next."""

QWEN3_NEXT = "Qwen3NextForCausalLM"


def _one_more(named: Layers, _: int) -> Layers:
    return tuple(layer + 1 for layer in named)


def _as_named_but_from_one(named: Layers, layers: int) -> Layers:
    return _one_more(named, layers) if named[0] == 1 else named


def _as_named_if_at_the_end(named: Layers, layers: int) -> Layers:
    return named if max(named) == layers else _one_more(named, layers)


def _usual(layers: int, _: Sequence[int]) -> Layers:
    return 2, layers // 2, layers - 3


def _one_after(layers: int, attention: Sequence[int]) -> Layers:
    return _one_more(_usual(layers, attention), layers)


def _of_attention(layers: int, attention: Sequence[int]) -> Layers:
    """The first, middle and last layer with full attention; if these are not known, every fourth layer counts."""
    full = tuple(attention) or tuple(range(3, layers, 4))
    return full[0], full[len(full) // 2], full[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One class's `set_eagle3_layers_to_capture`. If `targets` is empty: every class without a row.

    `marks`: layers are marked individually and marks stay, so a layer beyond the last raises IndexError at once;
    otherwise its state is simply missing. `takes_last`: the output of the last layer is available.
    """

    targets: tuple[str, ...] = ()
    since: Release = ()
    reads: Callable[[Layers, int], Layers] = _one_more
    default: Callable[[int, Sequence[int]], Layers] = _usual
    marks: bool = False
    takes_last: bool = False
    source: str


FORKED = Hook(
    targets=(QWEN3_NEXT,), default=_of_attention, source="qwen3_next.py:844 and :935 of tails-mpt/sglang at db727c03"
)
HOOKS = (
    Hook(
        targets=(QWEN3_NEXT,), marks=True, source="qwen3_next.py:957 and :1301 of 0.5.23, :814 and :1113 of 0.5.10"
    ),
    Hook(
        targets=("Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM"),
        marks=True,
        source="qwen2_moe.py:567 and qwen3_moe.py:843 of 0.5.6, :1156 and :1143 of 0.5.23",
    ),
    Hook(
        targets=("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"),
        since=(0, 5, 23),
        marks=True,
        source="qwen3_5_text.py:150 and qwen3_5.py:1897",
    ),
    Hook(
        targets=(
            "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Glm4MoeLiteForCausalLM",
            "GlmMoeDsaForCausalLM", "KimiK25ForConditionalGeneration", "MistralLarge3ForCausalLM",
        ),
        since=(0, 5, 14),
        reads=_as_named_but_from_one,
        source="deepseek_v2.py:3470, glm4_moe_lite.py:817",
    ),
    Hook(
        targets=("GptOssForCausalLM",),
        since=(0, 5, 17),
        reads=_as_named_if_at_the_end,
        takes_last=True,
        source="gpt_oss.py:736 and :1340 of 0.5.17, :732 and :1349 of 0.5.23",
    ),
    Hook(
        targets=("MiniMaxM3SparseForConditionalGeneration",),
        default=_one_after,
        takes_last=True,
        source="minimax_m3_vl.py:260, minimax_m3.py:1962",
    ),
    Hook(
        targets=(
            "MiniMaxM3SparseForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma4ForCausalLM",
            "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration",
        ),
        takes_last=True,
        source="gemma3_causal.py:671, gemma4_causal.py:1093, minimax_m3.py:1962",
    ),
    Hook(source="llama.py:339 and :730 of 0.5.6, :492 and :929 of 0.5.23, and the same in the other classes"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """`asked` of the class, by the head or (`named` False) by default; CUDA graphs verify with `graphs`.

    `lost` are those in `asked` that are never taken; a prefill adds `extra`, because marks set for the graphs stay. In
    both cases the states do not fit the width of the head's first layer.
    """

    asked: Layers
    named: bool
    graphs: Layers
    lost: Layers
    extra: Layers
    hook: Hook

    @property
    def fails(self) -> bool:
        return bool(self.lost or self.extra)

    @property
    def dies(self) -> str:
        return "at its start" if self.hook.marks and self.lost else "at its first request"


def captured(
    version: str,
    target: str,
    layers: int,
    named: Layers,
    attention: Sequence[int] = (),
    *,
    declared: bool = False,
    graphs: bool = True,
) -> tuple[Captured, ...]:
    """The states for a head that names the outputs `named` (none: the engine chooses); for a version between two known
    ones, the states of either.

    `layers` and `attention` (those with full attention, if others have none) are the target's; `graphs`: it decodes in
    CUDA graphs. `declared`: the image adds the hook; only the fork's for Qwen3-Next is known.
    """
    number = release(version)
    if declared:
        forked = target == QWEN3_NEXT and number is not None and number < UPSTREAM
        return (_taken(FORKED, number or (), layers, named, attention, graphs),) if forked else ()
    known = (release(row.version) or () for row in neighbouring_releases(version))
    return tuple(_taken(_hook(target, at), number or at, layers, named, attention, graphs) for at in known)


def _hook(target: str, at: Release) -> Hook:
    return next(row for row in HOOKS if (not row.targets or target in row.targets) and row.since <= at)


def _taken(hook: Hook, at: Release, layers: int, named: Layers, attention: Sequence[int], graphs: bool) -> Captured:
    default = hook.default(layers, attention)
    read = bool(named) and at >= NAMES_READ
    asked = hook.reads(named, layers) if read else default
    verified = default if graphs and at < GRAPHS_FOLLOW else asked
    within = range(layers + 1 if hook.takes_last else layers)
    return Captured(
        asked=asked,
        named=read,
        graphs=verified,
        lost=tuple(layer for layer in asked if layer not in within),
        extra=tuple(layer for layer in verified if hook.marks and layer not in asked),
        hook=hook,
    )
