"""Which arm, accelerator and key go with which engine: rules rendered from the engines' capabilities.

No engine is named here. A rule that only some engines need names them in its CEL and in its message, in the order of
the table `ENGINES`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_snake
from pydantic_core import core_schema

from paceline.api.model import Finding, Rule
from paceline.core import ALGORITHMS, CUSTOM, SHAPES, WITH_A_HEAD
from paceline.engines import ENGINES, Capabilities, engines_with

KINDS_OF_SHAPE = ("tree", "blockSize", "ngram", "adaptive", "schedule", "custom")
FIELDS_OF_SHAPE = tuple(to_snake(kind) for kind in KINDS_OF_SHAPE)
ONE_SHAPE = f"exactly one of {', '.join(KINDS_OF_SHAPE[:-1])} and {KINDS_OF_SHAPE[-1]} must be set"
COUNT_OF_SHAPES = f"[{', '.join(f'has(self.{kind})' for kind in KINDS_OF_SHAPE)}].filter(x, x).size()"
"""CEL, of a candidate or an arm."""


def shape_of(arm: Any) -> str | None:
    """The first shape that a candidate or an arm has, as the manifest calls it."""
    return next(iter(shapes_of(arm)), None)


def shapes_of(arm: Any) -> tuple[str, ...]:
    values = (getattr(arm, field) for field in FIELDS_OF_SHAPE)
    return tuple(kind for kind, value in zip(KINDS_OF_SHAPE, values, strict=True) if value is not None)


@dataclass(frozen=True, slots=True)
class EngineName:
    """A string type: the name of an engine in the table."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema(list(ENGINES))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedArm:
    """A candidate or an arm, with the path of it and of its draft, which may be another's."""

    path: str
    draft_path: str
    engine: str
    algorithm: str
    """Empty where no draft is named."""
    arm: Any

    @property
    def capabilities(self) -> Capabilities:
        return ENGINES[self.engine].capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRule:
    """A rule on an arm `c`, its algorithm `a` and the engine `e`."""

    cel: str
    message: str
    broken: Callable[[PlacedArm], Iterator[Finding]]


def _misshapen(placed: PlacedArm) -> Iterator[Finding]:
    algorithm, shape = placed.algorithm, shape_of(placed.arm)
    if not algorithm or not shape or shape == (own := SHAPES[algorithm]):
        return
    if shape in ("adaptive", "schedule") and algorithm in WITH_A_HEAD:
        return  # a matter of the engine: `_adaptive`, `_scheduled`
    yield f"{placed.path}.{shape}", f"{algorithm} takes {own}, not {shape}"


def _not_served(placed: PlacedArm) -> Iterator[Finding]:
    served = placed.capabilities.algorithms
    if placed.algorithm and placed.algorithm not in served:
        nearest = "; write NEXTN" if placed.algorithm == "MTP" and "NEXTN" in served else ""
        yield (
            f"{placed.draft_path}.algorithm",
            f"{placed.algorithm} is not served by {placed.engine}: {', '.join(served)}{nearest}",
        )


def _branching(placed: PlacedArm) -> Iterator[Finding]:
    tree = placed.arm.tree
    if not placed.capabilities.trees and tree and tree.top_k != 1:
        yield f"{placed.path}.tree.topK", f"topK must be 1: {placed.engine} drafts only chains; got {tree.top_k}"


def _shallow(placed: PlacedArm) -> Iterator[Finding]:
    tree, fewest = placed.arm.tree, placed.capabilities.fewest_steps
    if tree and tree.num_steps < fewest:
        yield (
            f"{placed.path}.tree.numSteps",
            f"numSteps must be at least {fewest}: {placed.engine} fails with fewer steps; got {tree.num_steps}",
        )


def _adaptive(placed: PlacedArm) -> Iterator[Finding]:
    adaptive = placed.capabilities.adaptive
    if placed.arm.adaptive is not None and not _goes_with(adaptive, placed.algorithm):
        whose = f"adapts only {', '.join(adaptive)}" if adaptive else "does not adapt"
        yield f"{placed.path}.adaptive", f"adaptive must be left out: {placed.engine} {whose}; {INSTEAD_OF_ADAPTIVE}"


def _scheduled(placed: PlacedArm) -> Iterator[Finding]:
    if placed.arm.schedule is not None and not _goes_with(placed.capabilities.schedule, placed.algorithm):
        yield f"{placed.path}.schedule", SCHEDULE


def _goes_with(algorithms: Sequence[str], algorithm: str) -> bool:
    return bool(algorithms) and algorithm in ("", *algorithms)


def _broad(placed: PlacedArm) -> Iterator[Finding]:
    if not placed.capabilities.ngram_breadth and placed.arm.ngram and placed.arm.ngram.breadth is not None:
        yield f"{placed.path}.ngram.breadth", f"breadth must be left out: {placed.engine} keeps one continuation"


def _some(engines: Iterable[str]) -> str:
    return " or ".join(engines) or "no engine"


def _quoted(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(name) for name in names)}]"


def _every(conditions: Iterable[str]) -> str:
    return " && ".join(conditions) or "true"


def _values(ability: Callable[[Capabilities], Any]) -> Mapping[str, Any]:
    """Engine → what it has of the ability, where it has any."""
    return {name: ability(ENGINES[name].capabilities) for name in engines_with(ability)}


def _offered(field: str, offered: Mapping[str, Sequence[str]]) -> str:
    """CEL: the arm has no such field, or its engine offers it for its algorithm."""
    engines = (f"(e == '{name}' && a in {_quoted(('', *algorithms))})" for name, algorithms in offered.items())
    return " || ".join((f"!has(c.{field})", *engines))


def _where(offered: Mapping[str, Sequence[str]]) -> str:
    return " and with ".join(f"{', '.join(algorithms)} on {name}" for name, algorithms in offered.items())


TREES = engines_with(lambda capabilities: capabilities.trees)
CHAINS = engines_with(lambda capabilities: not capabilities.trees)
BROAD = engines_with(lambda capabilities: capabilities.ngram_breadth)
FEWEST_STEPS = {name: least for name, least in _values(lambda row: row.fewest_steps).items() if least > 1}
SERVES = {name: served for name, served in _values(lambda row: row.algorithms).items() if {*served} != {*ALGORITHMS}}
"""Engines that do not serve every algorithm."""
ADAPTS = _values(lambda row: row.adaptive)
SCHEDULES = _values(lambda row: row.schedule)
INSTEAD_OF_ADAPTIVE = "name chains of several depths"
SCHEDULE = "; ".join((
    f"schedule goes with {_where(SCHEDULES)}, and must be left out elsewhere",
    *(f"{name} {way}" for name, way in _values(lambda row: row.instead_of_schedule).items()),
))  # fmt: skip


def _serves(name: str, algorithms: Sequence[str]) -> str:
    nextn = " (MTP is NEXTN)" if "NEXTN" in algorithms and "MTP" not in algorithms else ""
    return f"{name} serves only {', '.join(algorithms)}{nextn}"


ARM_RULES = (
    ArmRule(
        cel=f"a == '' || (a == 'NGRAM' ? has(c.ngram) : a == '{CUSTOM}' ? has(c.custom) : has(c.adaptive) ||"
        " has(c.schedule) || (a in ['DFLASH', 'DSPARK'] ? has(c.blockSize) : has(c.tree)))",
        message="tree goes with EAGLE, EAGLE3, NEXTN, MTP and STANDALONE, blockSize with DFLASH and DSPARK, ngram with"
        f" NGRAM, custom with {CUSTOM}, adaptive and schedule with all but these two",
        broken=_misshapen,
    ),
    ArmRule(
        cel="a == '' || " + _every(f"(e != '{name}' || a in {_quoted(served)})" for name, served in SERVES.items()),
        message="; ".join(_serves(name, served) for name, served in SERVES.items()),
        broken=_not_served,
    ),
    ArmRule(
        cel=f"e in {_quoted(TREES)} || !has(c.tree) || c.tree.topK == 1",
        message=f"topK must be 1 on {' and '.join(CHAINS)}, which draft only chains",
        broken=_branching,
    ),
    ArmRule(
        cel="!has(c.tree) || "
        + _every(f"(e != '{name}' || c.tree.numSteps >= {fewest})" for name, fewest in FEWEST_STEPS.items()),
        message="; ".join(
            f"numSteps must be at least {fewest} on {name}, which fails with fewer steps"
            for name, fewest in FEWEST_STEPS.items()
        ),
        broken=_shallow,
    ),
    ArmRule(
        cel=_offered("adaptive", ADAPTS),
        message=f"adaptive goes with {_where(ADAPTS)}, and must be left out elsewhere: {INSTEAD_OF_ADAPTIVE}",
        broken=_adaptive,
    ),
    ArmRule(cel=_offered("schedule", SCHEDULES), message=SCHEDULE, broken=_scheduled),
    ArmRule(
        cel=f"e in {_quoted(BROAD)} || !has(c.ngram) || !has(c.ngram.breadth)",
        message=f"ngram.breadth must be left out except on {_some(BROAD)}: other engines keep one continuation",
        broken=_broad,
    ),
)


def arm_rules(over: str, field: str, arms: Callable[[Any], Iterator[PlacedArm]]) -> tuple[Rule, ...]:
    """The rules for a spec: `over` is CEL with %s in the place of what must hold for every `e`, `a` and `c`, and
    `arms` finds the same in Python."""

    def rule(of_arm: ArmRule) -> Rule:
        def broken(spec: Any) -> Iterator[Finding]:
            return (finding for placed in arms(spec) for finding in of_arm.broken(placed))

        return Rule(cel=over % of_arm.cel, message=of_arm.message, field=field, broken=broken)

    return tuple(rule(of_arm) for of_arm in ARM_RULES)


ONLY_ON = _values(lambda row: row.resource)
NOT_ON = _values(lambda row: row.not_on)
TOPOLOGY = engines_with(lambda capabilities: capabilities.needs_topology)
RESOURCE = "; ".join((
    *(f"resourceName must be {resource} for {name}" for name, resource in ONLY_ON.items()),
    *(f"{name} does not run on {_some(resources)}" for name, resources in NOT_ON.items()),
))  # fmt: skip
NEEDS_TOPOLOGY = f"topology must be set for {_some(TOPOLOGY)}: that of the TPU slice, for example 2x2"


def _foreign_resource(spec: Any) -> Iterator[Finding]:
    capabilities, resource = ENGINES[spec.engine.name].capabilities, spec.accelerator.resource_name
    if capabilities.resource not in (None, resource) or resource in capabilities.not_on:
        yield ".accelerator.resourceName", f"{RESOURCE}; got {resource}"


def _no_topology(spec: Any) -> Iterator[Finding]:
    if ENGINES[spec.engine.name].capabilities.needs_topology and spec.accelerator.topology is None:
        yield ".accelerator.topology", NEEDS_TOPOLOGY


ENGINE_AND_NODE = (
    Rule(
        cel=_every((
            *(f"(self.engine.name != '{name}' || self.accelerator.resourceName == '{resource}')"
              for name, resource in ONLY_ON.items()),
            *(f"(self.engine.name != '{name}' || !(self.accelerator.resourceName in {_quoted(resources)}))"
              for name, resources in NOT_ON.items()),
        )),
        message=RESOURCE,
        field=".accelerator.resourceName",
        broken=_foreign_resource,
    ),
    Rule(
        cel=f"!(self.engine.name in {_quoted(TOPOLOGY)}) || has(self.accelerator.topology)",
        message=NEEDS_TOPOLOGY,
        field=".accelerator",
        broken=_no_topology,
    ),
)  # fmt: skip
"""Rules of a spec with `engine` and `accelerator`."""

ADMIN_KEYS = engines_with(lambda capabilities: capabilities.admin_key)
NO_ADMIN_KEY = f"adminKeySecretRef must be left out except for {_some(ADMIN_KEYS)}: others have no administration key"


def _no_admin_key(engine: Any) -> Iterator[Finding]:
    if engine.admin_key_secret_ref is not None and not ENGINES[engine.name].capabilities.admin_key:
        yield ".adminKeySecretRef", NO_ADMIN_KEY


ADMIN_KEY = Rule(
    cel=f"self.name in {_quoted(ADMIN_KEYS)} || !has(self.adminKeySecretRef)",
    message=NO_ADMIN_KEY,
    field=".adminKeySecretRef",
    broken=_no_admin_key,
)
ALIASES = {alias: word for adapter in ENGINES.values() for alias, word in adapter.capabilities.aliases.items()}
"""How engines call algorithms besides, in capitals → the API's word."""
