"""Which arm which engine can serve: rules on candidates and arms, said once for both kinds.

Sources: facts of SGLang 0.5.23, vLLM 0.33.0 and sglang-jax cddbf6f, read from their argument checks. What depends on
an engine's version or on its other arguments is refused by `engines`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.api.model import Finding, Rule
from paceline.api.words import ALGORITHMS

SHAPES: Mapping[str, tuple[str, ...]] = {
    "EAGLE": ("tree", "adaptive"),
    "EAGLE3": ("tree", "adaptive"),
    "NEXTN": ("tree", "adaptive"),
    "MTP": ("tree", "adaptive"),
    "STANDALONE": ("tree",),
    "NGRAM": ("ngram",),
    "DFLASH": ("blockSize",),
    "DSPARK": ("blockSize",),
}
"""What an arm says of its proposals, by algorithm; exactly one of them."""
KINDS_OF_SHAPE = ("tree", "blockSize", "ngram", "adaptive")
ONE_SHAPE = "exactly one of tree, blockSize, ngram and adaptive must be set"

SERVES: Mapping[str, tuple[str, ...]] = {
    "SGLang": ALGORITHMS,
    "VLLM": ALGORITHMS,
    "SGLangJAX": ("EAGLE", "EAGLE3", "NEXTN", "DFLASH"),
}
"""Algorithms by engine. sglang-jax knows the word STANDALONE but builds no draft worker for it."""


def shape_of(arm: Any) -> str | None:
    """The first shape that a candidate or an arm has, as the manifest calls it."""
    return next(iter(shapes_of(arm)), None)


def shapes_of(arm: Any) -> tuple[str, ...]:
    said = (arm.tree, arm.block_size, arm.ngram, arm.adaptive)
    return tuple(name for name, value in zip(KINDS_OF_SHAPE, said, strict=True) if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A candidate or an arm where it stands: the paths of it and of its draft, which may be another's."""

    path: str
    draft_path: str
    engine: str
    algorithm: str
    """Empty where no draft is named."""
    arm: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A rule on an arm `c`, its algorithm `a` and the engine `e`."""

    cel: str
    message: str
    broken: Callable[[Placed], Iterator[Finding]]


def _misshapen(placed: Placed) -> Iterator[Finding]:
    algorithm, shape = placed.algorithm, shape_of(placed.arm)
    if algorithm and shape and shape not in (fit := SHAPES[algorithm]):
        yield f"{placed.path}.{shape}", f"{algorithm} takes {' or '.join(fit)}, not {shape}"


def _not_served(placed: Placed) -> Iterator[Finding]:
    served = SERVES[placed.engine]
    if placed.algorithm and placed.algorithm not in served:
        nearest = "; write NEXTN" if placed.algorithm == "MTP" else ""
        yield (
            f"{placed.draft_path}.algorithm",
            f"{placed.algorithm} is not served by {placed.engine}: {', '.join(served)}{nearest}",
        )


def _branches(placed: Placed) -> Iterator[Finding]:
    tree = placed.arm.tree
    if placed.engine != "SGLang" and tree and tree.top_k != 1:
        yield f"{placed.path}.tree.topK", f"topK must be 1: {placed.engine} has chains alone; got {tree.top_k}"


def _single_step(placed: Placed) -> Iterator[Finding]:
    tree = placed.arm.tree
    if placed.engine == "SGLangJAX" and tree and tree.num_steps < 2:
        yield f"{placed.path}.tree.numSteps", "numSteps must be at least 2: SGLangJAX fails with one step; got 1"


def _adapts(placed: Placed) -> Iterator[Finding]:
    if placed.engine != "SGLang" and placed.arm.adaptive:
        yield (
            f"{placed.path}.adaptive",
            f"adaptive must be left out: SGLang alone adapts, not {placed.engine}; name chains of several depths",
        )


def _spreads(placed: Placed) -> Iterator[Finding]:
    if placed.engine != "SGLang" and placed.arm.ngram and placed.arm.ngram.breadth is not None:
        yield (
            f"{placed.path}.ngram.breadth",
            f"breadth must be left out: SGLang alone keeps several continuations, not {placed.engine}",
        )


_JAX = ", ".join(f"'{name}'" for name in SERVES["SGLangJAX"])
FITS = (
    Fit(
        cel="a == '' || (a == 'NGRAM' ? has(c.ngram) : a in ['DFLASH', 'DSPARK'] ? has(c.blockSize) :"
        " has(c.tree) || (has(c.adaptive) && a != 'STANDALONE'))",
        message="tree goes with EAGLE, EAGLE3, NEXTN, MTP and STANDALONE, adaptive with these but STANDALONE,"
        " blockSize with DFLASH and DSPARK, ngram with NGRAM",
        broken=_misshapen,
    ),
    Fit(
        cel=f"a == '' || e != 'SGLangJAX' || a in [{_JAX}]",
        message=f"SGLangJAX serves {', '.join(SERVES['SGLangJAX'])} alone (MTP is NEXTN)",
        broken=_not_served,
    ),
    Fit(
        cel="e == 'SGLang' || !has(c.tree) || c.tree.topK == 1",
        message="topK must be 1 on VLLM and SGLangJAX, which have chains alone",
        broken=_branches,
    ),
    Fit(
        cel="e != 'SGLangJAX' || !has(c.tree) || c.tree.numSteps >= 2",
        message="numSteps must be at least 2 on SGLangJAX, which fails with one step",
        broken=_single_step,
    ),
    Fit(
        cel="e == 'SGLang' || !has(c.adaptive)",
        message="adaptive must be left out on VLLM and SGLangJAX: SGLang alone adapts; name chains of several depths",
        broken=_adapts,
    ),
    Fit(
        cel="e == 'SGLang' || !has(c.ngram) || !has(c.ngram.breadth)",
        message="ngram.breadth must be left out on VLLM: SGLang alone keeps several continuations",
        broken=_spreads,
    ),
)


def fits(over: str, field: str, arms: Callable[[Any], Iterator[Placed]]) -> tuple[Rule, ...]:
    """The rules for a spec: `over` is CEL with %s in the place of what must hold for every `e`, `a` and `c`, and
    `arms` finds the same in Python."""

    def rule(fit: Fit) -> Rule:
        def broken(spec: Any) -> Iterator[Finding]:
            return (finding for placed in arms(spec) for finding in fit.broken(placed))

        return Rule(cel=over % fit.cel, message=fit.message, field=field, broken=broken)

    return tuple(rule(fit) for fit in FITS)
