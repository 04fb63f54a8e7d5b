"""Estimates a model's decoding speed from its size if none is published, for forecasts and the emulator.

A decode step takes OVERHEAD, and the time to read the active weights once. This gives 93 tokens/s for 70 B in FP8 on
four H100, 100 for 8 B in bfloat16 on one, and 163 for 6 B on one H200, where SGLang 0.5.17 reached 233
(docs/reports/gpu.md). The estimate is too fast for mixtures of experts: 397 for 3 B active on four H200, where 171 is
published. With c concurrent requests, each gets c^-0.25 of that speed: 0.42 at 32, where the H200 of the report reached
0.44 and the published table has 0.28.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.core import Accelerator
from paceline.preflight.accelerators import bandwidth_of

OVERHEAD = 0.002
"""Seconds per step for kernel launches, collectives and sampling."""
SHARE = 0.6
"""Usable share of the data sheet's bandwidth."""

EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
"""Keys for the number of experts."""

SMALLEST, LARGEST = 0.01, 10_000.0
"""Billions of parameters that a size may have; other numbers are not sizes."""
_UNITS = {"m": 1e-3, "b": 1.0, "t": 1e3}
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:([0-9]+)x)?([0-9]{1,9}(?:\.[0-9]+)?)([MBT])(?![A-Za-z0-9])", re.IGNORECASE)
_ACTIVE = re.compile(r"(?<![A-Za-z0-9.])A([0-9]{1,9}(?:\.[0-9]+)?)B(?![A-Za-z0-9])", re.IGNORECASE)
_BYTES = {
    0.5: re.compile(r"fp4|int4|awq|gptq|w4a|4bit", re.IGNORECASE),
    1.0: re.compile(r"fp8|int8|w8a|8bit", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Billions of parameters, in total and active per token, and bytes per parameter."""

    total: float
    active: float
    bytes_each: float = 2.0

    def __str__(self) -> str:
        return f"{self.total:g}B" + (f", {self.active:g}B active" if self.active < self.total else "")


def size_in_name(name: str) -> Size | None:
    """`…-70B-…-FP8`, `…-30B-A3B`, `…-8x7B`, `…-135M`, `…-1T-A32B`; None if it has no size, or an impossible one."""
    found = _SIZE.search(name)
    if found is None:
        return None
    each, experts = float(found[2]) * _UNITS[found[3].lower()], int(found[1] or 1)
    named = _ACTIVE.search(name)
    total, active = experts * each, float(named[1]) if named else min(experts, 2) * each
    if not SMALLEST <= active <= total <= LARGEST:
        return None
    return Size(total=total, active=active, bytes_each=_bytes_in(name))


def size_in_config(config: Mapping[str, Any], name: str = "") -> Size | None:
    """The size by a Transformers config.json and the matrices of a Llama or a mixture of experts; None without them."""
    try:
        text = config.get("text_config", config)
        hidden, layers, heads = text["hidden_size"], text["num_hidden_layers"], text["num_attention_heads"]
        inner, words = text["intermediate_size"], text["vocab_size"]
        head = text.get("head_dim") or hidden // heads
        attention = 2 * hidden * head * (heads + text.get("num_key_value_heads", heads))
        experts = next((text[key] for key in EXPERTS if text.get(key)), 0)
        expert = 3 * hidden * text.get("moe_intermediate_size", inner)
        shared = 3 * hidden * text.get("shared_expert_intermediate_size", 0)
        total, active = (
            (layers * (attention + shared + (count * expert if experts else 3 * hidden * inner)) + 2 * words * hidden)
            / 1e9
            for count in (experts, text.get("num_experts_per_tok", 1))
        )
        quantized = _bytes_in(f"{name} {config.get('quantization_config', '')}")
        size = Size(total=round(total, 1), active=round(active, 1), bytes_each=quantized)
        return size if SMALLEST <= size.active <= size.total <= LARGEST else None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        return None


def alone(size: Size, accelerator: Accelerator) -> float:
    """Output tokens per second of a single request."""
    bandwidth = SHARE * bandwidth_of(accelerator.product) * accelerator.count * accelerator.nodes
    step: float = OVERHEAD + size.active * 1e9 * size.bytes_each / bandwidth
    return 1 / step


def as_one_of(requests: int) -> float:
    """Each request's share of `alone` with this number of requests."""
    return math.pow(max(requests, 1), -0.25)


def _bytes_in(text: str) -> float:
    return next((size for size, pattern in _BYTES.items() if pattern.search(text)), 2.0)
