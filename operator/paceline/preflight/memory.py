"""Do the weights, the head and their caches fit into the accelerators?

Exact and estimated values, for one accelerator:

* weights and head: the safetensors files' bytes over the tensor-parallel size. Exact to about 1 % (norms and embeddings
  of some classes stand on every rank). Half, for an unquantised checkpoint that a flag quantises to FP8.
* KV cache: exact per token. How many tokens a server *must* hold is a choice: the number in a flag, else
  `FEWEST_TOKENS` per measured concurrent request. An engine uses all remaining memory for its cache, so more
  than this is used; with less, requests evict one another and no measurement is valid.
* Running states of layers without attention: one per request, and one per verified draft token. Exact per piece; how
  many the engine keeps is an estimate.
* Tree buffers: the verify step's logits in float32, for as many requests as may run. These and everything else that
  is not static (activations, CUDA graphs, NCCL: not estimated) must fit beside the static share.

A finding therefore means "cannot fit"; a configuration that passes may still run out of memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from paceline.core import Arm, ModelFacts
from paceline.engines import ENGINES
from paceline.engines.adapter import MemoryFlags
from paceline.engines.model_rules import ModelFinding, ModelRule, PoolFacts
from paceline.preflight.accelerators import memory_of
from paceline.preflight.servers import argument

STATIC_SHARE = 0.85
"""Default static share. SGLang chooses by product and model; 0.836 on 80 GB."""
FEWEST_TOKENS = 2048
"""Tokens of one request: prompt and answer of the built-in sets."""
LARGEST_PARALLEL = 64
GB = 10**9

ELEMENT_BYTES = {"fp8_e5m2": 1, "fp8_e4m3": 1, "fp8": 1, "float32": 4}
"""Element type of the KV cache, from a flag or the model → bytes; 2 for all others."""


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
        """Missing bytes; it fits if this is zero or less."""
        static = self.weights + self.head + self.cache + self.states
        return max(static - self.memory * self.static_share, static + self.buffers - self.memory)

    def __str__(self) -> str:
        parts = {"weights": self.weights, "head": self.head, "KV cache": self.cache, "states": self.states}
        sizes = " + ".join(f"{name} {size / GB:.1f}" for name, size in parts.items() if size)
        share = f"{self.static_share:.0%} of {self.memory / GB:.1f} GB"
        return f"{sizes} GB, tree buffers {self.buffers / GB:.1f} GB on {share}"


def estimate(pool: PoolFacts, arm: Arm, parallel: int | None = None) -> Estimate | None:
    """The estimate for an arm; None if the weights or the accelerator are unknown. `parallel` replaces the spec's
    tensor-parallel size."""
    server, target = pool.server, pool.target
    accelerator, adapter = server.accelerator, ENGINES[server.engine.type]
    split = parallel or accelerator.tensor_parallel_size
    memory = memory_of(accelerator.product, accelerator.memory)
    if memory is None or not target.weight_bytes:
        return None
    head = pool.heads.get(arm.draft.model.source, ModelFacts()) if arm.draft and arm.draft.model else ModelFacts()
    tokens, running = _tokens(pool), server.max_concurrency
    verified = adapter.verify_tokens(arm) if arm.draft else 0
    return Estimate(
        weights=target.weight_bytes * _shrinks(pool) / split,
        head=(head.weight_bytes or 0) / split,
        cache=tokens * (_token_bytes(pool, target, split) + _token_bytes(pool, head, split)),
        states=(target.state_bytes or 0) / split * running * (1 + verified),
        buffers=running * verified * (target.vocab_size or 0) * 4,
        memory=memory,
        static_share=_number(pool, adapter.memory_flags.static_share, STATIC_SHARE),
    )


def _fits(pool: PoolFacts) -> Iterator[ModelFinding]:
    """At most one finding: for the baseline if it does not fit, else for the arm that lacks most."""
    estimates = [(arm, size) for arm in pool.arms if (size := estimate(pool, arm)) and size.short > 0]
    if not estimates:
        return
    baseline = next((pair for pair in estimates if pair[0].draft is None), None)
    arm, short = baseline or max(estimates, key=lambda pair: pair[1].short)
    accelerator = pool.server.accelerator
    enough = next((size for size in _sizes(pool) if (e := estimate(pool, arm, size)) and e.short <= 0), None)
    wider = (
        f"set accelerator.count and tensorParallelSize to {enough}" if enough else "take accelerators with more memory"
    )
    whose = f"{arm.name} on {accelerator.tensor_parallel_size} x {accelerator.product}"
    tokens = _flags(pool).tokens
    yield ModelFinding(
        path="accelerator.count",
        problem=f"{whose} does not fit, short by {short.short / GB:.1f} GB on each: {short}",
        fix=f"{wider}, name a quantised model, or lower {f'{tokens} or ' if tokens else ''}the pool's concurrency",
    )


def _is_known(pool: PoolFacts) -> Iterator[ModelFinding]:
    accelerator = pool.server.accelerator
    if memory_of(accelerator.product, accelerator.memory) is None:
        problem = f"Paceline does not know the memory of {accelerator.product}"
        yield ModelFinding(path="accelerator.memory", problem=problem, fix="set it, for example to 80Gi", blocks=False)


RULES: tuple[ModelRule[PoolFacts], ...] = (
    ModelRule(
        id="memory-fits",
        why="the server would run out of memory while it loads, or have too little left for the measured load",
        check=_fits,
    ),
    ModelRule(
        id="memory-is-known",
        why="could not check whether the model fits",
        check=_is_known,
    ),
)


def _sizes(pool: PoolFacts) -> Iterator[int]:
    """Tensor-parallel sizes above the current one that the heads allow."""
    size = pool.server.accelerator.tensor_parallel_size * 2
    while size <= LARGEST_PARALLEL:
        if not (pool.target.num_attention_heads or 0) % size:
            yield size
        size *= 2


def _tokens(pool: PoolFacts) -> float:
    flags, running = _flags(pool), pool.server.max_concurrency
    context = _number(pool, flags.context, pool.target.max_position_embeddings or FEWEST_TOKENS)
    return _number(pool, flags.tokens, min(context, FEWEST_TOKENS) * running)


def _token_bytes(pool: PoolFacts, model: ModelFacts, split: int) -> float:
    """Bytes of one token on one rank: heads are split, or repeated if fewer than ranks; a latent is repeated."""
    given = argument(pool.server, _flags(pool).cache_type)
    element = ELEMENT_BYTES.get((model.dtype if given in (None, "auto") else given) or "", 2)
    ranks = 1 if model.kv_lora_rank else min(split, model.num_key_value_heads or split)
    return (model.cache_elements or 0) * element / ranks


def _shrinks(pool: PoolFacts) -> float:
    """Factor for weights that are quantised on loading: FP8 halves two-byte weights."""
    method = argument(pool.server, _flags(pool).quantization)
    return 0.5 if method and pool.target.quantization is None and "fp8" in method else 1.0


def _flags(pool: PoolFacts) -> MemoryFlags:
    return ENGINES[pool.server.engine.type].memory_flags


def _number(pool: PoolFacts, flag: str, otherwise: float) -> float:
    """A flag's number; engines also take `8k` and `8Ki`."""
    units = {"k": 10**3, "m": 10**6, "ki": 1 << 10, "mi": 1 << 20}
    text = argument(pool.server, flag) or ""
    digits = text.rstrip("kKmMi")
    try:
        return float(digits) * units.get(text[len(digits) :].lower(), 1)
    except ValueError:
        return otherwise
