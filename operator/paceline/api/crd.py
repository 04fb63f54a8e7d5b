"""The CustomResourceDefinitions, from the models: JSON schema as pydantic writes it into a structural schema."""

import functools
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from paceline.api import cache, deployment, draft, engine, gate, pool, prompts, window
from paceline.api.deployment import SpeculativeDeploymentSpec
from paceline.api.model import AN_OBJECT, GROUP, VERSION, SchemaModel, as_sent
from paceline.api.profile import BenchmarkProfileSpec
from paceline.api.round import Round
from paceline.api.rules import DeskRule, Rule, validations
from paceline.api.run import BenchmarkRunSpec
from paceline.api.run_status import BenchmarkRunStatus
from paceline.api.status import SpeculativeDeploymentStatus
from paceline.core.model import CLASS
from paceline.core.record import adapter, is_record
from paceline.core.types import LONGEST_NAME, NAME, VALIDATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDefinition:
    """One of our kinds, and how kubectl shows it."""

    name: str
    plural: str
    short: str
    description: str
    spec: type
    status: type | None
    """None if the kind has no status."""
    columns: tuple[Mapping[str, Any], ...]
    rules: tuple[tuple[str, str], ...] = ()
    """Rules of the whole object, including status: CEL and message."""


def _column(name: str, path: str, type: str = "string", **more: Any) -> Mapping[str, Any]:
    return {"name": name, "type": type, "jsonPath": path, **more}


_ENDED = (
    "has(oldSelf.status) && has(oldSelf.status.conditions)"
    " && oldSelf.status.conditions.exists(c, (c.type == 'Complete' || c.type == 'Failed') && c.status == 'True')"
)
FINAL = (
    f"!({_ENDED}) || (has(self.status) && self.status == oldSelf.status)",
    "a finished run never changes: make another BenchmarkRun",
)
AGE = _column("Age", ".metadata.creationTimestamp", "date")

CRD_KINDS: Mapping[str, KindDefinition] = {
    kind.name: kind
    for kind in (
        KindDefinition(
            name="SpeculativeDeployment",
            plural="speculativedeployments",
            short="specdep",
            description="A model that is served with a draft configuration once this has been shown to be faster.",
            spec=SpeculativeDeploymentSpec,
            status=SpeculativeDeploymentStatus,
            columns=(
                _column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
                _column("Status", ".status.state"),
                _column("Summary", ".status.summary"),
                _column("Measuring", ".status.conditions[?(@.type=='Measuring')].status"),
                AGE,
                _column("Model", ".spec.target.source", priority=1),
                _column("Engine", ".status.engine", priority=1),
            ),
        ),
        KindDefinition(
            name="BenchmarkRun",
            plural="benchmarkruns",
            short="bench",
            description="One comparison of draft configurations with the baseline, and its result.",
            spec=BenchmarkRunSpec,
            status=BenchmarkRunStatus,
            columns=(
                _column("Pool", ".spec.pool"),
                _column("Rounds", ".status.progress.round", "integer"),
                _column("Outcome", ".status.verdict.outcome"),
                _column("Winner", ".status.verdict.winner"),
                _column("Speedup", ".status.verdict.speedup"),
                _column("Node", ".status.node"),
                AGE,
                _column("Reason", ".status.verdict.reason", priority=1),
                _column("Progress", ".status.progress.message", priority=1),
            ),
            rules=(FINAL,),
        ),
        KindDefinition(
            name="BenchmarkRound",
            plural="benchmarkrounds",
            short="benchround",
            description="One round of a BenchmarkRun, with every measured point, valid or not. Never edited.",
            spec=Round,
            status=None,
            columns=(
                _column("Run", r".metadata.labels.paceline\.dev/run"),
                _column("Round", ".spec.round", "integer"),
                _column("Node", ".spec.node"),
                _column("Failed", ".spec.reason"),
                AGE,
            ),
            rules=(
                ("self.spec == oldSelf.spec", "a round is measured once: delete it with its run, and measure again"),
            ),
        ),
        KindDefinition(
            name="BenchmarkProfile",
            plural="benchmarkprofiles",
            short="benchprof",
            description="How a team's candidates are measured and decided: what deployments take from it, and what"
            " they may not change.",
            spec=BenchmarkProfileSpec,
            status=None,
            columns=(_column("Locked", ".spec.locked"), AGE),
        ),
    )
}

RULES: Mapping[type[Any], tuple[Rule | DeskRule, ...]] = {
    kind: rules
    for module in (cache, deployment, draft, engine, gate, pool, prompts, window)
    for kind, rules in module.RULES.items()
}
"""Rules of types in `core`; other models of a spec have their rules themselves."""


def rules_of(kind: type[Any]) -> tuple[Rule | DeskRule, ...]:
    return kind.rules if issubclass(kind, SchemaModel) else RULES.get(kind, ())


_KEPT = frozenset((
    "type", "format", "enum", "items", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum",
    "maxProperties", "pattern", "required", "description", "default",
))  # fmt: skip


def crds() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions, one per kind."""
    return [_definition(kind) for kind in CRD_KINDS.values()]


def crd_files() -> dict[str, str]:
    """File name → YAML, as checked in under crds/ and in the chart."""
    return {
        f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml": "# Made by `paceline crds`.\n"
        + yaml.safe_dump(crd, sort_keys=False, width=120, allow_unicode=True)
        for crd in crds()
    }


def _explained(node: Any) -> Any:
    """The schema with each plain default in the description, too, because `kubectl explain` does not show defaults."""
    if isinstance(node, list):
        return [_explained(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: value if key == "default" else _explained(value) for key, value in node.items()}
    if "description" in out and isinstance(default := out.get("default"), str | int | bool | list):
        out["description"] += f" Default: {default if isinstance(default, str) else json.dumps(default)}."
    return out


def _definition(kind: KindDefinition) -> dict[str, Any]:
    name = {
        "rule": f"self.metadata.name.matches(r'{NAME.pattern}')",
        "message": f"metadata.name must {NAME.must}",
        "fieldPath": ".metadata.name",
    }
    rules = [name, *({"rule": rule, "message": message} for rule, message in kind.rules)]
    properties = {
        "apiVersion": {"type": "string", "description": "Version of this schema."},
        "kind": {"type": "string", "description": "Kind of this object."},
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": LONGEST_NAME}}},
        "spec": _explained(schema(kind.spec)),
    }
    if kind.status:
        properties["status"] = schema(kind.status)
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        **({"subresources": {"status": {}}} if kind.status else {}),
        "additionalPrinterColumns": [dict(column) for column in kind.columns],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": kind.description,
                "required": ["spec"],
                "properties": properties,
                VALIDATIONS: rules,
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["all", "paceline"],
            },
            "versions": [version],
        },
    }


@functools.cache
def schema(model: type[Any]) -> dict[str, Any]:
    """An object of a spec or a status, as a structural schema."""
    json = adapter(model).json_schema(by_alias=True)
    # the API server must not fill in defaults of a status: they are for readers
    keys = _KEPT - {"default"} if is_record(model) else _KEPT
    return _structural(json, json.get("$defs", {}), keys)


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """The node as a structural schema: references are inlined (keys next to a reference win), null is dropped, and only
    `keys` are kept, because Kubernetes forbids others."""
    node = dict(node)
    if {"default", "description"} <= node.keys() and "default" not in keys:
        node["description"] = node.pop("description")  # for an optional field, the description comes last
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            inner = definitions[node.pop("$ref").rpartition("/")[2]]
        else:
            (inner,) = (option for option in node.pop("anyOf") if option != {"type": "null"})
        node = {**inner, **node}
    out = {key: value for key, value in node.items() if key in keys or key.startswith("x-kubernetes-")}
    if name := node.get(CLASS):
        out |= validations(next((of for kind, of in RULES.items() if kind.__name__ == name), ()))
    if "const" in node:
        out["enum"] = [node["const"]]
    if out.get("default", ()) in ((), None, [], {}, "", 0) and out.get("default") is not False:
        out.pop("default", None)  # an empty default stands for a value that follows from other fields
    if AN_OBJECT in node:
        out["default"] = {}
    if "default" in out:
        out["default"] = as_sent(out["default"])
    if "description" in out:
        out["description"] = " ".join(inspect.cleandoc(out["description"]).split())
    match out["type"]:
        case "integer":
            out["format"] = "int32" if out.get("maximum", 2**63) < 2**31 else "int64"
        case "array":
            out.setdefault("x-kubernetes-list-type", "atomic")  # as the API server has it, in the schema for readers
            # A default there would make a client see another list than the one it has applied, at each apply.
            out["items"] = _structural(node["items"], definitions, keys - {"default"})
        case "object" if "properties" in node:
            optional = {name: {"default": None} for name in node["properties"].keys() - node.get("required", ())}
            out["properties"] = {
                name: _structural(optional.get(name, {}) | child, definitions, keys)
                for name, child in node["properties"].items()
            }
        case "object" if isinstance(values := node.get("additionalProperties"), Mapping):
            out["additionalProperties"] = _structural(values, definitions, keys)
        case "object":
            out["x-kubernetes-preserve-unknown-fields"] = True
    return out
