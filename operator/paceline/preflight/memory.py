"""Do the weights, the head and their caches fit into the accelerators?

What is exact and what is not, for one accelerator:

* weights and head: the safetensors files' bytes over the tensor-parallel size. Exact to about 1 % (norms and embeddings
  of some classes stand on every rank). With an explicit --quantization of an unquantised checkpoint: half, for FP8.
* KV cache: exact a token. How many tokens a server *must* hold is a choice: --max-total-tokens where it is given, else
  `FEWEST_TOKENS` for each request at a time that is measured. An engine takes all that is left for its cache, so more
  than this is used; with less, requests evict one another and nothing measured is valid.
* Running states of layers without attention: one a request, and one a draft token that is verified. Exact a piece; how
  many the engine keeps is an estimate.
* Tree buffers: the verify step's logits in float32, for as many requests as may run. These and everything else that
  is not static (activations, CUDA graphs, NCCL: not estimated) must fit beside the static share.

A finding therefore means "cannot fit": what passes may still be out of memory by what is not estimated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from paceline.core import Arm
from paceline.engines import ENGINES
from paceline.engines.arguments import flag_value
from paceline.preflight.accelerators import memory_of
from paceline.preflight.cases import Pool, Rule, Said
from paceline.preflight.facts import ModelFacts

STATIC_SHARE = 0.85
"""Where --mem-fraction-static is not given. SGLang chooses by product and model; 0.836 on 80 GB."""
FEWEST_TOKENS = 2048
"""Of one request: the prompts and answers of the built-in sets."""
LARGEST_PARALLEL = 64
GB = 10**9

ELEMENT_BYTES = {"fp8_e5m2": 1, "fp8_e4m3": 1, "fp8": 1, "float32": 4}
"""Of the KV cache, by --kv-cache-dtype or the model's own type; 2 for all others."""
SHARE_FLAGS = ("--mem-fraction-static", "--gpu-memory-utilization")
CONTEXT_FLAGS = ("--context-length", "--max-model-len")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Bytes on one accelerator."""

    weights: float
    head: float
    cache: float
    states: float
    buffers: float
    memory: float
    static_share: float

    @property
    def short(self) -> float:
        """What is missing; zero or less: it fits."""
        static = self.weights + self.head + self.cache + self.states
        return max(static - self.memory * self.static_share, static + self.buffers - self.memory)

    def __str__(self) -> str:
        parts = {"weights": self.weights, "head": self.head, "KV cache": self.cache, "states": self.states}
        said = " + ".join(f"{name} {size / GB:.1f}" for name, size in parts.items() if size)
        share = f"{self.static_share:.0%} of {self.memory / GB:.1f} GB"
        return f"{said} GB, tree buffers {self.buffers / GB:.1f} GB on {share}"


def estimate(case: Pool, arm: Arm, parallel: int | None = None) -> Estimate | None:
    """None where the weights or the accelerator are not known. `parallel` takes the place of the spec's."""
    server, target = case.server, case.target
    accelerator, args = server.accelerator, server.engine.args
    split = parallel or accelerator.tensor_parallel_size
    memory = memory_of(accelerator.product, accelerator.memory)
    if memory is None or not target.weight_bytes:
        return None
    head = case.heads.get(arm.draft.model.source, ModelFacts()) if arm.draft and arm.draft.model else ModelFacts()
    tokens, running = _tokens(case), server.largest_concurrency
    verified = ENGINES[server.engine.name].draft_tokens(arm) if arm.draft else 0
    return Estimate(
        weights=target.weight_bytes * _shrinks(case) / split,
        head=(head.weight_bytes or 0) / split,
        cache=tokens * (_token_bytes(case, target, split) + _token_bytes(case, head, split)),
        states=(target.state_bytes or 0) / split * running * (1 + verified),
        buffers=running * verified * (target.vocab_size or 0) * 4,
        memory=memory,
        static_share=_first(args, SHARE_FLAGS, STATIC_SHARE),
    )


def fits(case: Pool) -> Iterator[Said]:
    """The largest arm speaks for all; the baseline first, as its trouble is everyone's."""
    estimates = [(arm, found) for arm in case.arms if (found := estimate(case, arm))]
    if not estimates or all(found.short <= 0 for _, found in estimates):
        return
    arm, found = next(
        (one for one in estimates if one[1].short > 0 and one[0].draft is None),
        max(estimates, key=lambda one: one[1].short),
    )
    accelerator = case.server.accelerator
    enough = next((size for size in _sizes(case) if (e := estimate(case, arm, size)) and e.short <= 0), None)
    wider = (
        f"set accelerator.count and tensorParallelSize to {enough}" if enough else "take accelerators with more memory"
    )
    whose = f"{arm.name} on {accelerator.tensor_parallel_size} x {accelerator.product}"
    yield Said(
        path="accelerator.count",
        found=f"{whose} does not fit, short by {found.short / GB:.1f} GB on each: {found}",
        fix=f"{wider}, name a quantised model, or lower --max-total-tokens or the pool's concurrency",
    )


def is_known(case: Pool) -> Iterator[Said]:
    accelerator = case.server.accelerator
    if memory_of(accelerator.product, accelerator.memory) is None:
        found = f"the memory of {accelerator.product} is not known here"
        yield Said(path="accelerator.memory", found=found, fix="set it, for example to 80Gi", blocks=False)


RULES: tuple[Rule[Pool], ...] = (
    Rule(
        id="memory-fits",
        why="the server would run out of memory while it loads, or have no room to measure in",
        check=fits,
    ),
    Rule(
        id="memory-is-known",
        why="whether the model fits was not checked",
        check=is_known,
    ),
)


def _sizes(case: Pool) -> Iterator[int]:
    """Parallelism that the heads allow, wider than now."""
    size = case.server.accelerator.tensor_parallel_size * 2
    while size <= LARGEST_PARALLEL:
        if not (case.target.num_attention_heads or 0) % size:
            yield size
        size *= 2


def _tokens(case: Pool) -> float:
    args, running = case.server.engine.args, case.server.largest_concurrency
    context = _first(args, CONTEXT_FLAGS, case.target.max_position_embeddings or FEWEST_TOKENS)
    return _first(args, ("--max-total-tokens",), min(context, FEWEST_TOKENS) * running)


def _token_bytes(case: Pool, model: ModelFacts, split: int) -> float:
    """Of one token on one rank: heads are split, or repeated where there are fewer than ranks; a latent is repeated."""
    kept = flag_value(case.server.engine.args, "--kv-cache-dtype")
    element = ELEMENT_BYTES.get((model.dtype if kept in (None, "auto") else kept) or "", 2)
    ranks = 1 if model.kv_lora_rank else min(split, model.num_key_value_heads or split)
    return (model.cache_elements or 0) * element / ranks


def _shrinks(case: Pool) -> float:
    """Quantised while it is loaded: FP8 halves two-byte weights."""
    asked = flag_value(case.server.engine.args, "--quantization")
    return 0.5 if asked and case.target.quantization is None and "fp8" in asked else 1.0


def _first(args: tuple[str, ...], flags: tuple[str, ...], otherwise: float) -> float:
    """A flag's number; `8k` and `8Ki` are what the engine takes beside plain ones."""
    units = {"k": 10**3, "m": 10**6, "ki": 1 << 10, "mi": 1 << 20}
    for flag in flags:
        if text := flag_value(args, flag):
            digits = text.rstrip("kKmMi")
            try:
                return float(digits) * units.get(text[len(digits) :].lower(), 1)
            except ValueError:
                continue
    return otherwise
