"""Which arm which engine can serve: rules on candidates and arms, said once for both kinds.

Sources: facts of SGLang 0.5.23, vLLM 0.33.0 and sglang-jax cddbf6f, read from their argument checks. What depends on
an engine's version or on its other arguments is refused by `engines`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_snake

from paceline.api.model import Finding, Rule
from paceline.api.words import ALGORITHMS
from paceline.core import CUSTOM

SHAPES: Mapping[str, str] = {
    "EAGLE": "tree",
    "EAGLE3": "tree",
    "NEXTN": "tree",
    "MTP": "tree",
    "STANDALONE": "tree",
    "NGRAM": "ngram",
    "DFLASH": "blockSize",
    "DSPARK": "blockSize",
    CUSTOM: "custom",
}
"""What an arm says of its proposals, by algorithm."""
KINDS_OF_SHAPE = ("tree", "blockSize", "ngram", "adaptive", "schedule", "custom")
FIELDS_OF_SHAPE = tuple(to_snake(kind) for kind in KINDS_OF_SHAPE)
ONE_SHAPE = f"exactly one of {', '.join(KINDS_OF_SHAPE[:-1])} and {KINDS_OF_SHAPE[-1]} must be set"
COUNT_OF_SHAPES = f"[{', '.join(f'has(self.{kind})' for kind in KINDS_OF_SHAPE)}].filter(x, x).size()"
"""CEL, of a candidate or an arm."""

SERVES: Mapping[str, tuple[str, ...]] = {
    "SGLang": ALGORITHMS,
    "VLLM": ALGORITHMS,
    "SGLangJAX": ("EAGLE", "EAGLE3", "NEXTN", "DFLASH"),
}
"""Algorithms by engine. sglang-jax knows the word STANDALONE but builds no draft worker for it."""
WITH_A_HEAD = tuple(algorithm for algorithm in ALGORITHMS if algorithm not in ("NGRAM", CUSTOM))
ADAPTS: Mapping[str, tuple[str, ...]] = {"SGLang": ("EAGLE", "EAGLE3", "NEXTN", "MTP"), "VLLM": WITH_A_HEAD}
"""Algorithms whose depth the engine chooses if it is let: `adaptive_spec_params.py:56` of SGLang 0.5.23; on vLLM 0.33.0
all that draft from logits (`v1/worker/gpu/spec_decode/speculator.py:173`), which a lookup in the text does not."""
SCHEDULES: Mapping[str, tuple[str, ...]] = {"VLLM": WITH_A_HEAD}
"""Algorithms whose depth goes by batch size if it is told to."""


def shape_of(arm: Any) -> str | None:
    """The first shape that a candidate or an arm has, as the manifest calls it."""
    return next(iter(shapes_of(arm)), None)


def shapes_of(arm: Any) -> tuple[str, ...]:
    said = (getattr(arm, field) for field in FIELDS_OF_SHAPE)
    return tuple(kind for kind, value in zip(KINDS_OF_SHAPE, said, strict=True) if value is not None)


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
    if not algorithm or not shape or shape == (own := SHAPES[algorithm]):
        return
    if shape in ("adaptive", "schedule") and algorithm in WITH_A_HEAD:
        return  # of the engine: `_adapts`, `_scheduled`
    yield f"{placed.path}.{shape}", f"{algorithm} takes {own}, not {shape}"


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
    adapts = ADAPTS.get(placed.engine, ())
    if placed.arm.adaptive is None or placed.algorithm in adapts or (adapts and not placed.algorithm):
        return
    whose = f"{placed.engine} adapts {', '.join(adapts)} alone" if adapts else f"{placed.engine} does not adapt"
    yield f"{placed.path}.adaptive", f"adaptive must be left out: {whose}; {OTHERWISE}"


def _scheduled(placed: Placed) -> Iterator[Finding]:
    if placed.arm.schedule is not None and placed.engine not in SCHEDULES:
        yield f"{placed.path}.schedule", NO_SCHEDULE


def _spreads(placed: Placed) -> Iterator[Finding]:
    if placed.engine != "SGLang" and placed.arm.ngram and placed.arm.ngram.breadth is not None:
        yield (
            f"{placed.path}.ngram.breadth",
            f"breadth must be left out: SGLang alone keeps several continuations, not {placed.engine}",
        )


OTHERWISE = "name chains of several depths"
NO_SCHEDULE = (
    "schedule must be left out on SGLang and SGLangJAX: VLLM alone takes one; SGLang reads its own from a file, which a"
    " candidate with adaptive names in args: --speculative-adaptive-config"
)
_ADAPTED = ", ".join(f"'{name}'" for name in ADAPTS["SGLang"])
_JAX = ", ".join(f"'{name}'" for name in SERVES["SGLangJAX"])
FITS = (
    Fit(
        cel=f"a == '' || (a == 'NGRAM' ? has(c.ngram) : a == '{CUSTOM}' ? has(c.custom) : has(c.adaptive) ||"
        " has(c.schedule) || (a in ['DFLASH', 'DSPARK'] ? has(c.blockSize) : has(c.tree)))",
        message="tree goes with EAGLE, EAGLE3, NEXTN, MTP and STANDALONE, blockSize with DFLASH and DSPARK, ngram with"
        f" NGRAM, custom with {CUSTOM}, adaptive and schedule with all but these two",
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
        cel=f"!has(c.adaptive) || e == 'VLLM' || (e == 'SGLang' && a in ['', {_ADAPTED}])",
        message=f"adaptive goes with {', '.join(ADAPTS['SGLang'])} on SGLang and with whatever has a head on VLLM, and"
        f" must be left out elsewhere: {OTHERWISE}",
        broken=_adapts,
    ),
    Fit(
        cel="!has(c.schedule) || e == 'VLLM'",
        message=NO_SCHEDULE,
        broken=_scheduled,
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
