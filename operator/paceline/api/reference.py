"""The field reference, docs/api.md: one table per block, from the models of the CRDs."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, get_args, get_type_hints

from paceline.api.crd import CRD_KINDS, KindDefinition, rules_of, schema
from paceline.api.model import API_VERSION, fields_of
from paceline.api.rules import DeskRule
from paceline.core.record import INSIDE, is_record, slots
from paceline.core.types import VALIDATIONS
from paceline.engines import ENGINES, Capabilities

_HEAD = f"""\
# Field reference of {API_VERSION}

Generated from the models by `make generate`; lists every field. [Examples](examples.md).

* A field without a default and without **required** is optional; its description says what absence means. The API
  server writes defaults into the stored object, except in lists; the operator fills in the others when it reads.
  `status` has values that follow from other fields.
* Shares are percentages (`5%`), durations are in h, m, s and ms (`1h30m`), quantities as in core/v1 (`400Gi`). In
  status a number with a fraction is a decimal string (`"1.36"`).
* The API server checks all rules except those marked *desk*, which only `paceline validate` and the operator check.
  Both also check the rules of the engine, its version and the pod template.
"""


def reference_page() -> str:
    """Markdown."""
    seen: set[type[Any]] = set()
    lines = [_HEAD]
    for kind in CRD_KINDS.values():
        lines += _kind(kind, seen)
    return "\n".join([*lines, *_engines()])


def _kind(kind: KindDefinition, seen: set[type[Any]]) -> Iterator[str]:
    """A block of several kinds is written once, at its first use."""
    yield f"## {kind.name}\n"
    yield f"{kind.description} Short name `{kind.short}`."
    status = f", its `status`, which the operator writes, a {_link(kind.status)}" if kind.status else ""
    yield f"Its `spec` is a {_link(kind.spec)}{status}.\n"
    for root in filter(None, (kind.spec, kind.status)):
        for model in blocks(root):
            if model not in seen:
                seen.add(model)
                yield from _block(model)


def blocks(model: Any) -> Iterator[Any]:
    """The model, then the models of its fields, in order."""
    yield model
    for _, annotation in _fields(model):
        for inner in _models(annotation):
            yield from blocks(inner)


def _fields(model: type[Any]) -> list[tuple[str, Any]]:
    """Name on the wire and type, for a model of the spec or a record of a status. The operator's memory is not part of
    the API: only the field `internal` is listed, without its contents."""
    if is_record(model):
        told = [(slot.wire, slot.type) for slot in slots(model) if not slot.internal]
        return told + [(INSIDE, None)] * any(slot.internal for slot in slots(model))
    types = get_type_hints(model, include_extras=True)
    return [(alias, types[name]) for alias, name in fields_of(model).items()]


def _models(annotation: Any) -> Iterator[Any]:
    if is_record(annotation) or (isinstance(annotation, type) and fields_of(annotation)):
        yield annotation
    for inner in get_args(annotation):
        if inner is not NoneType:
            yield from _models(inner)


def _block(model: Any) -> Iterator[str]:
    yield f"### {model.__name__}\n"
    yield f"{_sentence(model.__doc__)}\n"
    yield "| field | type | default | description | rules |"
    yield "|---|---|---|---|---|"
    document = schema(model)
    for name, annotation in _fields(model):
        node = document["properties"][name]
        default = "**required**" if name in document.get("required", ()) else _default(node)
        inner = next(_models(annotation), None)
        yield f"| `{name}` | {_type(node, inner)} | {default} | {_cell(node['description'])} | {_rules(node, inner)} |"
    yield ""
    rules = rules_of(model)
    for rule in rules:
        at = rule.field.removeprefix(".")
        where = "" if not at or rule.message.startswith(at) else f"`{at}`: "
        yield f"* {where}{_cell(rule.summary())}{' (*desk*)' if isinstance(rule, DeskRule) else ''}"
    if rules:
        yield ""


def _type(node: Mapping[str, Any], inner: type[Any] | None) -> str:
    match node["type"]:
        case "array":
            return f"list of {_type(node['items'], inner)}"
        case "object" if inner:
            return _link(inner)
        case "object" if "additionalProperties" in node:
            return f"map of {_type(node['additionalProperties'], None)}"
        case "object":
            return "map"
        case "string" if "enum" in node:
            return " or ".join(f"`{value}`" for value in node["enum"])
        case name:
            return str(name)


def _rules(node: Mapping[str, Any], inner: type[Any] | None) -> str:
    """Bounds and patterns; first the list's, then its items'."""
    least, most = node.get("minimum"), node.get("maximum")
    texts = [f"{least} to {most}"] if most is not None else [f"at least {least}"] if least is not None else []
    for kind, unit in (("Items", "items"), ("Properties", "entries"), ("Length", "characters")):
        fewest, greatest = node.get(f"min{kind}"), node.get(f"max{kind}")
        if greatest is not None:
            texts.append(f"{fewest} to {greatest} {unit}" if fewest else f"at most {greatest} {unit}")
    if node.get("x-kubernetes-list-type") == "map":
        texts.append(f"{' and '.join(node['x-kubernetes-list-map-keys'])} unique")
    if node.get("x-kubernetes-list-type") == "set":
        texts.append("no two the same")
    if not inner:
        texts += [rule["message"] for rule in node.get(VALIDATIONS, ())]
        below = node.get("items") or node.get("additionalProperties")
        if below and (rules := _rules(below, None)):
            texts.append(f"each: {rules}")
    return _cell("; ".join(texts))


def _default(node: Mapping[str, Any]) -> str:
    if "default" not in node:
        return ""
    value = node["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _engines() -> Iterator[str]:
    """What an engine can do, one row per ability."""
    yield "## Engines\n"
    yield "What these rules allow for each engine; its version and its other arguments may allow less.\n"
    yield f"| | {' | '.join(f'`{name}`' for name in ENGINES)} |"
    yield "|---" * (1 + len(ENGINES)) + "|"
    for ability, of in ABILITIES.items():
        yield f"| {ability} | {' | '.join(_cell(of(adapter.capabilities)) for adapter in ENGINES.values())} |"
    yield ""


def _yes(able: bool) -> str:
    return "yes" if able else "no"


ABILITIES: Mapping[str, Callable[[Capabilities], str]] = {
    "`draft.algorithm`": lambda row: ", ".join(row.algorithms),
    "`tree.topK` above 1": lambda row: _yes(row.trees),
    "`tree.numSteps` from": lambda row: str(row.fewest_steps),
    "`ngram.breadth`": lambda row: _yes(row.ngram_breadth),
    "`adaptive` with": lambda row: ", ".join(row.adaptive) or "no",
    "`adaptive.numSteps`": lambda row: row.adaptive_steps,
    "`depthByBatchSize` with": lambda row: ", ".join(row.schedule) or "no",
    "`custom.args`": lambda row: row.custom_args,
    "`accelerator.resourceName`": lambda row: row.resource or ", not ".join(("any", *row.not_on)),
    "`accelerator.topology`": lambda row: "**required**" if row.needs_topology else "optional",
    "`accelerator.nodes` above 1": lambda row: _yes(row.several_nodes),
    "`engine.adminKeySecretRef`": lambda row: _yes(row.admin_key),
}


def _link(model: type[Any]) -> str:
    return f"[{model.__name__}](#{model.__name__.lower()})"


def _sentence(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
