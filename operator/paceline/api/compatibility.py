"""Which arm, accelerator and key go with which engine: rules rendered from the engines' capabilities.

No engine is named here. A rule that only some engines need names them in its CEL and in its message, in the order of
the table `ENGINES`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic.alias_generators import to_snake
from pydantic_core import core_schema

from paceline.api.rules import Rule, count_of
from paceline.core import ALGORITHMS, SHAPES, WITH_A_HEAD
from paceline.engines import ENGINES, Capabilities, engines_with
from paceline.engines.images import PUBLISHED

KINDS_OF_SHAPE = ("tree", "blockSize", "ngram", "adaptive", "depthByBatchSize", "custom")
FIELDS_OF_SHAPE = tuple(to_snake(kind) for kind in KINDS_OF_SHAPE)
COUNT_OF_SHAPES = count_of(KINDS_OF_SHAPE)
"""CEL: how many shapes a candidate or an arm has."""
ONE_SHAPE = Rule(
    cel=f"self.name == 'baseline' || {COUNT_OF_SHAPES} == 1"
    f" || ({COUNT_OF_SHAPES} == 0 && has(self.engine) && !has(self.draft))",
    message=f"exactly one of {', '.join(KINDS_OF_SHAPE[:-1])} and {KINDS_OF_SHAPE[-1]} must be set; none only with "
    "engine and without draft, for a candidate that does not speculate",
)


@dataclass(frozen=True, slots=True)
class EngineName:
    """A string type: the name of an engine in the table."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.literal_schema(list(ENGINES))


def _some(engines: Iterable[str]) -> str:
    return " or ".join(engines) or "no engine"


def _quoted(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(name) for name in names)}]"


def _every(conditions: Iterable[str]) -> str:
    return " && ".join(conditions) or "true"


def _values(ability: Callable[[Capabilities], Any]) -> Mapping[str, Any]:
    """Engine → its value of this capability; engines without it are left out."""
    return {name: ability(ENGINES[name].capabilities) for name in engines_with(ability)}


def _offered(field: str, offered: Mapping[str, Sequence[str]]) -> str:
    """CEL: the arm has no such field, or its engine offers it for its algorithm."""
    engines = (f"(e == '{name}' && a in {_quoted(('', *algorithms))})" for name, algorithms in offered.items())
    return " || ".join((f"!has(c.{field})", *engines))


def _where(offered: Mapping[str, Sequence[str]]) -> str:
    return " and with ".join(f"{', '.join(algorithms)} on {name}" for name, algorithms in offered.items())


TREES = engines_with(lambda capabilities: capabilities.trees)
_CHAINS = engines_with(lambda capabilities: not capabilities.trees)
BROAD = engines_with(lambda capabilities: capabilities.ngram_breadth)
FEWEST_STEPS = {name: least for name, least in _values(lambda row: row.fewest_steps).items() if least > 1}
SERVES = {name: served for name, served in _values(lambda row: row.algorithms).items() if {*served} != {*ALGORITHMS}}
"""Engines that do not serve every algorithm."""
ADAPTS = _values(lambda row: row.adaptive)
SCHEDULES = _values(lambda row: row.schedule)
INSTEAD_OF_ADAPTIVE = "name chains of several depths instead"


def _serves(name: str, algorithms: Sequence[str]) -> str:
    nextn = " (MTP is NEXTN)" if "NEXTN" in algorithms and "MTP" not in algorithms else ""
    return f"{name} serves only {', '.join(algorithms)}{nextn}"


def _takes(shape: str) -> Rule:
    algorithms = [algorithm for algorithm, own in SHAPES.items() if own == shape]
    shapes = [shape, *(("adaptive", "depthByBatchSize") if {*algorithms} <= {*WITH_A_HEAD} else ())]
    return Rule(
        cel=f"!(a in {_quoted(algorithms)}) || {' || '.join(f'has(c.{kind})' for kind in shapes)}",
        message=f"{' or '.join(shapes)} must be set for {', '.join(algorithms)}; got another shape with {{a}}",
    )


def is_of(spec: str, own: str) -> str:
    """CEL: the engine's image is OWNER/NAME, in whatever registry."""
    return f"{spec}.image.matches('(^|/){own}([:@]|$)')"


def engine_of(spec: str) -> str:
    """CEL: the engine's name, as `effective` reads it."""
    told = (f"{is_of(spec, own)} ? '{name}' : " for name, own in PUBLISHED.items())
    return f"(has({spec}.type) ? {spec}.type : {''.join(told)}'')"


_ENGINE = {"e": f"[{engine_of('self.engine')}]"}
_OF_ARM = f"has(c.engine) && has(c.engine.image) && {engine_of('c.engine')} != ''"
_ENGINE_OF_ARM = {"e": f"[{_OF_ARM} ? {engine_of('c.engine')} : {engine_of('self.engine')}]"}
ARM_RULES = (
    *(_takes(shape) for shape in dict.fromkeys(SHAPES.values())),
    Rule(
        cel="a == '' || " + _every(f"(e != '{name}' || a in {_quoted(served)})" for name, served in SERVES.items()),
        message="; ".join((*(_serves(name, served) for name, served in SERVES.items()), "got {a} on {e}")),
    ),
    Rule(
        cel=f"e in {_quoted(TREES)} || !has(c.tree) || !has(c.tree.topK) || c.tree.topK == 1",
        message=f"topK must be 1 on {' and '.join(_CHAINS)}, which draft only chains; got {{c.tree.topK}} on {{e}}",
        field=".tree.topK",
    ),
    Rule(
        cel="!has(c.tree) || "
        + _every(f"(e != '{name}' || c.tree.numSteps >= {fewest})" for name, fewest in FEWEST_STEPS.items()),
        message="; ".join(
            (
                *(
                    f"numSteps must be at least {fewest} on {name}, which fails with fewer steps"
                    for name, fewest in FEWEST_STEPS.items()
                ),
                "got {c.tree.numSteps}",
            )
        ),
        field=".tree.numSteps",
    ),
    Rule(
        cel=_offered("adaptive", ADAPTS),
        message=f"adaptive works only with {_where(ADAPTS)}; elsewhere leave it out and {INSTEAD_OF_ADAPTIVE}; got "
        "{a} on {e}",
        field=".adaptive",
    ),
    Rule(
        cel=_offered("depthByBatchSize", SCHEDULES),
        message=f"depthByBatchSize works only with {_where(SCHEDULES)}; elsewhere leave it out and "
        f"{INSTEAD_OF_ADAPTIVE}; got {{a}} on {{e}}",
        field=".depthByBatchSize",
    ),
    Rule(
        cel=f"e in {_quoted(BROAD)} || !has(c.ngram) || !has(c.ngram.breadth)",
        message=f"ngram.breadth must be left out except on {_some(BROAD)}: other engines keep one continuation; "
        "got {e}",
        field=".ngram.breadth",
    ),
)
"""Rules about an arm `c`, its algorithm `a` ("" without a draft), and its engine `e`."""


def arm_rules(**each: str) -> tuple[Rule, ...]:
    """The rules for a spec with `engine`; `each` runs `c` and `a` over its arms."""
    return tuple(replace(rule, each={**each, **_ENGINE_OF_ARM}) for rule in ARM_RULES)


ONLY_ON = _values(lambda row: row.resource)
NOT_ON = _values(lambda row: row.not_on)
TOPOLOGY = engines_with(lambda capabilities: capabilities.needs_topology)
RESOURCE = "; ".join((
    *(f"resourceName must be {resource} for {name}" for name, resource in ONLY_ON.items()),
    *(f"{name} does not run on {_some(resources)}" for name, resources in NOT_ON.items()),
))  # fmt: skip
NEEDS_TOPOLOGY = f"topology must be set for {_some(TOPOLOGY)}: the TPU slice's, for example 2x2"


_ENGINE_AND_NODE = (
    Rule(
        cel=_every((
            *(f"(e != '{name}' || self.accelerator.resourceName == '{resource}')"
              for name, resource in ONLY_ON.items()),
            *(f"(e != '{name}' || !(self.accelerator.resourceName in {_quoted(resources)}))"
              for name, resources in NOT_ON.items()),
        )),
        message=f"{RESOURCE}; got {{self.accelerator.resourceName}}",
        field=".accelerator.resourceName",
    ),
    Rule(
        cel=f"!(e in {_quoted(TOPOLOGY)}) || has(self.accelerator.topology)",
        message=NEEDS_TOPOLOGY,
        field=".accelerator.topology",
    ),
)  # fmt: skip


_DEVICES = "(has(self.accelerator.count) ? self.accelerator.count : 1)"
_NODES = "(has(self.accelerator.nodes) ? self.accelerator.nodes : 1)"
_WITHIN = Rule(
    cel=f"!has(c.engine) || !has(c.engine.tensorParallelSize) || c.engine.tensorParallelSize <= {_DEVICES} * {_NODES}",
    message=f"tensorParallelSize must be at most the accelerators of a server = {{{_DEVICES} * {_NODES}}}; "
    "got {c.engine.tensorParallelSize}",
    field=".engine.tensorParallelSize",
)


def engine_and_node(**each: str) -> tuple[Rule, ...]:
    """Rules of a spec with `engine` and `accelerator`; `each` runs `c` over its arms."""
    shared = (replace(rule, each=_ENGINE) for rule in _ENGINE_AND_NODE)
    of_arms = (
        replace(rule, cel=f"!has(c.engine) || ({rule.cel})", each={**each, **_ENGINE_OF_ARM}, field=".engine.type")
        for rule in _ENGINE_AND_NODE
    )
    return (*shared, *of_arms, replace(_WITHIN, each=each))


ADMIN_KEYS = engines_with(lambda capabilities: capabilities.admin_key)
NO_ADMIN_KEY = f"adminKeySecretRef must be left out except for {_some(ADMIN_KEYS)}: others have no administration key"


ADMIN_KEY_RULE = Rule(
    cel=f"{engine_of('self')} in {_quoted(ADMIN_KEYS)} || !has(self.adminKeySecretRef)",
    message=NO_ADMIN_KEY,
    field=".adminKeySecretRef",
)
ALIASES = {alias: word for adapter in ENGINES.values() for alias, word in adapter.capabilities.aliases.items()}
"""An engine's other name of an algorithm, in capitals → the API's name."""
