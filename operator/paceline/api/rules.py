"""Rules about several fields. Each is written once, in CEL: the API server evaluates it, and so do `paceline validate`
and the operator, with the runtime of the CEL project.

A message is one text for both. A CEL expression in braces stands for its value, as in `at least {self.min}; got
{self.max}`.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cel_expr_python import cel

from paceline.core.types import VALIDATIONS

Violation = tuple[str, str]
"""The field's path, relative to the Pydantic model with the rule (`.tree.numDraftTokens`), and what to change."""

Scope = Mapping[str, tuple[str, Any]]
"""Variable of CEL → the path below the model and the value that it has."""

Values = cel.Activation
"""Variables of CEL with their values."""

_VALUE = re.compile(r"\{([^{}]+)\}")
_FIELD = re.compile(r"(\w+)\.([\w.]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition that must hold for a model, which is `self`."""

    cel: str
    message: str
    field: str = ""
    """Path of the field to change, below the model or, with `each`, below the item."""
    each: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Variables of `cel` → lists that they run over, such as `{"p": "self.pools", "c": "p.candidates"}`: the rule must
    hold for every item. An absent list has none; a list in brackets (`[self.engine.type]`) names a value."""

    @property
    def is_about_a_change(self) -> bool:
        """Whether the rule compares with the older object, which `paceline validate` does not have."""
        return "oldSelf" in self.cel

    def validation(self) -> dict[str, str]:
        """The entry of x-kubernetes-validations. The API server cannot name an item of a list, nor its values."""
        lists = [match for source in self.each.values() if (match := _FIELD.fullmatch(source))]
        entry = {
            "rule": self.over_all(),
            "message": self.summary(),
            "messageExpression": "" if self.each or not _VALUE.search(self.message) else self._message_in_cel(),
            "fieldPath": f".{lists[0][2]}" if lists else self.field,
        }
        return {key: value for key, value in entry.items() if value}

    def over_all(self) -> str:
        """CEL for the whole model."""
        return _over_all(self.cel, tuple(self.each.items()))

    def summary(self) -> str:
        """The message without values: no ` = {…}`, and no part after a semicolon that has one."""
        first, *others = re.sub(r" = \{[^{}]+\}", "", self.message).split("; ")
        return "; ".join([first, *(part for part in others if not _VALUE.search(part))])

    def holds(self, model: Values) -> bool:
        """Whether `activation(document)` keeps the rule. An error of CEL counts as broken."""
        return _compiled(self.over_all(), ("self",)).eval(model).plain_value() is True

    def findings(self, document: Mapping[str, Any]) -> Iterator[Violation]:
        """One finding for each item that breaks the rule. `document` is the model as JSON, with its defaults."""
        for path, inner in _items({"self": ("", document)}, "", tuple(self.each.items())):
            if evaluate(self.cel, inner) is not True:
                yield path + self.field, self._message(inner)

    def _message(self, scope: Scope) -> str:
        return _VALUE.sub(lambda value: str(evaluate(value[1], scope)), self.message)

    def _message_in_cel(self) -> str:
        text = json.dumps(_VALUE.sub("%s", self.message.replace("%", "%%")))
        return f"{text}.format([{', '.join(_VALUE.findall(self.message))}])"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskRule:
    """A rule that CEL cannot express, or only at a cost that the API server refuses; `paceline validate` checks it."""

    message: str
    """What the rule demands, for docs/api.md."""
    field: str = ""
    broken: Callable[[Any], Iterable[Violation]]

    def summary(self) -> str:
        return self.message


def validations(rules: Iterable[Rule | DeskRule]) -> dict[str, Any]:
    """The x-kubernetes-validations of a schema, from the rules that the API server checks; {} if there are none."""
    entries = [rule.validation() for rule in rules if isinstance(rule, Rule)]
    return {VALIDATIONS: entries} if entries else {}


def activation(document: Mapping[str, Any]) -> Values:
    """A model for CEL, as `self`. Made once for all rules of the model, because it is most of their cost."""
    return _environment(("self",)).Activation({"self": document})


def evaluate(expression: str, scope: Scope) -> Any:
    """The value in CEL; an error of CEL is a value that is not True."""
    values = {variable: value for variable, (_, value) in scope.items()}
    return _compiled(expression, tuple(scope)).eval(data=values).plain_value()


@cache
def _over_all(rule: str, each: tuple[tuple[str, str], ...]) -> str:
    for variable, source in reversed(each):
        absent = f"!has({source}) || " if _FIELD.fullmatch(source) else ""
        rule = f"{absent}{source}.all({variable}, {rule})"
    return rule


@cache
def _compiled(expression: str, variables: tuple[str, ...]) -> cel.Expression:
    return _environment(variables).compile(expression)


@cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    return cel.NewEnv(variables=dict.fromkeys(variables, cel.Type.DYN), functions=KUBERNETES)


IMMUTABLE = "self == oldSelf"


def _of_a_list(name: str, value: Callable[[list[Any]], Any], kind: cel.Type) -> cel.FunctionDecl:
    overload = cel.Overload(
        id=f"list_{name}", return_type=kind, parameters=[cel.Type.List(cel.Type.DYN)], is_member=True, impl=value
    )
    return cel.FunctionDecl(name, [overload])


KUBERNETES = (
    _of_a_list("isSorted", lambda items: list(items) == sorted(items), cel.Type.BOOL),
    _of_a_list("max", max, cel.Type.DYN),
    _of_a_list("sum", sum, cel.Type.DYN),
)
"""Functions that Kubernetes adds to CEL and that a rule here needs."""


def _items(scope: Scope, path: str, each: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, Scope]]:
    """The innermost items, each with its path and the values of all variables."""
    if not each:
        yield path, scope
        return
    (variable, source), *others = each
    if not (match := _FIELD.fullmatch(source)):
        (value,) = evaluate(source, scope)
        yield from _items({**scope, variable: (path, value)}, path, tuple(others))
        return
    base, value = scope[match[1]]
    for name in match[2].split("."):
        value = value.get(name) or ()
    steps = [(f".{key}", key) for key in value] if isinstance(value, Mapping) else [
        (f"[{i}]", item) for i, item in enumerate(value)
    ]  # fmt: skip
    for step, item in steps:
        at = f"{base}.{match[2]}{step}"
        yield from _items({**scope, variable: (at, item)}, at, tuple(others))


def one_of(*fields: str) -> Rule:
    """Exactly one of these fields is set."""
    return Rule(
        cel=f"{count_of(fields)} == 1", message=f"exactly one of {', '.join(fields[:-1])} and {fields[-1]} must be set"
    )


def count_of(fields: Iterable[str]) -> str:
    """CEL: how many of the fields are set."""
    return f"[{', '.join(f'has(self.{name})' for name in fields)}].filter(x, x).size()"
