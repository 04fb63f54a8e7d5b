"""Kubernetes' API conventions over both schemas, as kube-api-linter checks them in Go types.

A field that breaks a rule stands in that rule's table of exceptions with the reason, and a field that no longer does
may not stand there.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pytest

from paceline.api.crd import crds
from paceline.api.profile import ProfiledField

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A field of spec or status, or what a list or a map holds: `spec.pools[].load[]`, `round.prompts{}`."""

    path: str
    schema: Schema

    @property
    def name(self) -> str:
        return re.sub(r"(\[\]|\{\})+$", "", self.path).rpartition(".")[2]

    @property
    def is_field(self) -> bool:
        return not self.path.endswith(("[]", "{}"))

    @property
    def in_spec(self) -> bool:
        return self.path.startswith("spec")

    @property
    def type(self) -> str:
        return str(self.schema["type"])

    @property
    def patterns(self) -> list[str]:
        """What the value must match, by its own rules."""
        rules = self.schema.get("x-kubernetes-validations", ())
        return [found[1] for rule in rules if (found := re.fullmatch(r"self\.matches\(r'(.*)'\)", rule["rule"]))]


def walk(path: str, schema: Schema) -> Iterator[Node]:
    yield Node(path=path, schema=schema)
    for name, child in schema.get("properties", {}).items():
        yield from walk(f"{path}.{name}", child)
    if "items" in schema:
        yield from walk(f"{path}[]", schema["items"])
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        yield from walk(f"{path}{{}}", values)


def nodes() -> list[Node]:
    """Of every kind. What two have, such as `spec.engine`, is there twice. A round is written by Paceline alone: its
    spec is as a status."""
    found = []
    for crd in crds():
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        if crd["spec"]["names"]["kind"] == "BenchmarkRound":
            found += walk("round", schema["spec"])
        else:
            found += [node for side in ("spec", "status") if side in schema for node in walk(side, schema[side])]
    return found


def undescribed(node: Node) -> bool:
    return node.is_field and not node.schema.get("description")


def begins_small(node: Node) -> bool:
    """The description begins with a lower-case word that is not the field's own name."""
    first = re.match(r"[a-z]\w*", node.schema.get("description", ""))
    return first is not None and first[0] != node.name


def misnamed(node: Node) -> bool:
    """An abbreviation may stand in capitals, as in p95TTFT."""
    return re.fullmatch(r"[a-z][a-z0-9]*([A-Z][a-z0-9]*)*", node.name) is None


def is_float(node: Node) -> bool:
    return node.type == "number"


def unmerged(node: Node) -> bool:
    """Does not say how server-side apply merges the list."""
    return node.type == "array" and "x-kubernetes-list-type" not in node.schema


def endless(node: Node) -> bool:
    """A string, list or map without a bound."""
    match node.type:
        case "string":
            return not node.schema.keys() & {"maxLength", "enum", "format"}
        case "array":
            return "maxItems" not in node.schema
        case _:
            return "additionalProperties" in node.schema and "maxProperties" not in node.schema


def unbounded_integer(node: Node) -> bool:
    """In status the least value is enough: the API server refuses a whole status for one number that is too large."""
    needed = {"minimum", "maximum"} if node.in_spec else {"minimum"}
    return node.type == "integer" and not needed <= node.schema.keys()


def time_that_ends_in_at(node: Node) -> bool:
    return node.schema.get("format") == "date-time" and node.name.endswith("At")


NAMES_OF_DURATIONS = re.compile(r"(?i:duration|deadline|timeout|period|interval|window)$|Age$|^(ttft|itl)$")
GEP_2257 = r"^([0-9]{1,5}(h|m|s|ms)){0,3}0{0,4}[1-9][0-9]{0,4}(h|m|s|ms)([0-9]{1,5}(h|m|s|ms)){0,3}$"


def is_duration(node: Node) -> bool:
    """Its pattern lets a number pass with a unit of time, and not without one or with another."""
    spans, others = ("30m", "1h30m", "500ms", "90s", "1.5s", "7d"), ("30x", "1.5x", "1.5.0")
    return any(
        any(re.search(pattern, text) for text in spans) and not any(re.search(pattern, text) for text in others)
        for pattern in node.patterns
    )


def other_duration(node: Node) -> bool:
    """A duration of a spec is a string in Gateway API's form, and has no unit in its name."""
    if not node.in_spec or node.type == "object":
        return False
    named = NAMES_OF_DURATIONS.search(node.name) or re.search(r"(Hours|Minutes|Seconds|Millis)$", node.name)
    return bool(is_duration(node) or named) and node.patterns != [GEP_2257]


def unkeyed_conditions(node: Node) -> bool:
    """Conditions of Kubernetes are a map by type."""
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return node.is_field and node.name == "conditions" and not keyed.items() <= node.schema.items()


COUNTED = "hours of accelerators, which are an amount and no span of time"

RULES: Mapping[Callable[[Node], bool], Mapping[str, str]] = {
    undescribed: {},
    begins_small: {"status.armVerdicts[].outcome": "begins with the value `promotable`"},
    misnamed: {},
    is_float: {},
    unmerged: {},
    endless: {},
    unbounded_integer: {
        "round.replicates[].exitCode": "as the system reports it; its reader holds it to 32 bits",
        "round.replicates[].parity.divergedAt[]": "prompts, counted from 0: the operator counts them itself",
    },
    time_that_ends_in_at: {},
    other_duration: {
        "spec.benchmark.budget.gpuHours": COUNTED,
        "spec.budget.gpuHours": COUNTED,
        "spec.tolerations[].tolerationSeconds": "core/v1 has it so",
    },
    unkeyed_conditions: {},
}
"""What is wrong with a field → the fields that are so all the same, and why."""

METRIC = "the name of a field of a round's points[], which has the metric's value"
OTHER_WORDS = {
    "vLLM": "the engine's own spelling",
    "SGLang": "the engine's own spelling",
    "SGLangJAX": "the engine's own spelling",
    "meanTTFT": METRIC,
    "p95TTFT": METRIC,
    "meanTPOT": METRIC,
    "p95TPOT": METRIC,
    "p99ITL": METRIC,
    "meanE2E": METRIC,
    "p95E2E": METRIC,
    "energyPerToken": METRIC,
    "cacheHitRate": METRIC,
    "kvTokens": METRIC,
    "retractions": METRIC,
    **dict.fromkeys(get_args(ProfiledField), "what is locked is named as its field is"),
}
"""Values of enumerations that are no CamelCase words, and why."""

BOOLEANS = {
    "spec.suspend": "that of Job and CronJob",
    "spec.engine.trustRemoteCode": "the engines' own flag; code of others runs or does not",
    "optional": "EnvVar's, of Kubernetes",
    "emulated": "evidence: there was an emulator or none",
    "imported": "evidence: measured without a cluster, at least in part, or not at all",
    "round.points[].valid": "the gate uses a point or does not",
    "round.points[].saturated": "a comparison with a threshold",
    "round.points[].atRest": "the engine speculated under the load or did not",
    "status.progress.internal.seen": "the Job has existed or has not",
}
"""Path or last name of each boolean → why two values will always do."""


def camel(value: str) -> bool:
    return re.fullmatch(r"([A-Z][a-z0-9]+)+", value) is not None


@pytest.mark.parametrize("wrong", RULES, ids=lambda rule: rule.__name__)
def test_no_field_is_but_those_that_are_known(wrong: Callable[[Node], bool]) -> None:
    assert {node.path for node in nodes() if wrong(node)} == RULES[wrong].keys()


def test_values_of_enumerations_are_camel_case_or_proper_names() -> None:
    assert {value for node in nodes() for value in node.schema.get("enum", ()) if not camel(value)} == set(OTHER_WORDS)


def test_a_metric_has_the_name_of_its_field() -> None:
    measured = {node.name for node in nodes() if node.path.startswith(("round.points[].", "round.replicates[]."))}
    assert {word for word, reason in OTHER_WORDS.items() if reason == METRIC} <= measured


def test_every_boolean_has_a_reason() -> None:
    found = [node for node in nodes() if node.type == "boolean"]
    keys = {node.path if node.path in BOOLEANS else node.name for node in found}
    assert keys == set(BOOLEANS)


def test_there_are_durations_and_conditions_to_look_at() -> None:
    assert len({node.path for node in nodes() if is_duration(node)}) > 10
    conditions = {node.path for node in nodes() if node.is_field and node.name == "conditions"}
    assert conditions == {"status.conditions", "status.pools[].conditions"}


def matching(pattern: str) -> Schema:
    return {"type": "string", "x-kubernetes-validations": [{"rule": f"self.matches(r'{pattern}')"}]}


@pytest.mark.parametrize(
    ("wrong", "path", "schema"),
    [
        (undescribed, "spec.pools", {"type": "array"}),
        (begins_small, "spec.pools", {"description": "the pools."}),
        (misnamed, "spec.gpu_hours", {"type": "string"}),
        (misnamed, "status.GPUs[]", {"type": "string"}),
        (is_float, "spec.share", {"type": "number"}),
        (unmerged, "status.models", {"type": "array", "maxItems": 4}),
        (endless, "spec.name", {"type": "string"}),
        (endless, "spec.args", {"type": "array"}),
        (endless, "spec.labels", {"type": "object", "additionalProperties": {"type": "string"}}),
        (unbounded_integer, "spec.count", {"type": "integer", "minimum": 1}),
        (unbounded_integer, "status.count", {"type": "integer", "maximum": 1}),
        (time_that_ends_in_at, "status.endedAt", {"type": "string", "format": "date-time"}),
        (other_duration, "spec.pause", matching("^[0-9]+(h|m)$")),
        (other_duration, "spec.pause", matching(r"^[0-9.]+(ms|s)$")),
        (other_duration, "spec.maxAge", {"type": "string", "maxLength": 9}),
        (other_duration, "spec.pauseSeconds", {"type": "integer"}),
        (unkeyed_conditions, "status.pools[].conditions", {"x-kubernetes-list-type": "atomic"}),
    ],
)
def test_each_rule_sees_what_breaks_it(wrong: Callable[[Node], bool], path: str, schema: Schema) -> None:
    assert wrong(Node(path=path, schema=schema))


@pytest.mark.parametrize(
    ("wrong", "path", "schema"),
    [
        (begins_small, "spec.pools", {"description": "pools are kinds of traffic."}),
        (begins_small, "spec.pools[]", {"description": "99th percentile."}),
        (misnamed, "status.p95TTFT", {"type": "string"}),
        (unbounded_integer, "status.count", {"type": "integer", "minimum": 0}),
        (time_that_ends_in_at, "status.acceptedAt", {"type": "array"}),
        (other_duration, "spec.pause", matching(GEP_2257)),
        (other_duration, "spec.name", matching("^[a-z0-9]+$")),
        (other_duration, "status.heldSeconds", {"type": "integer"}),
    ],
)
def test_each_rule_lets_pass_what_keeps_it(wrong: Callable[[Node], bool], path: str, schema: Schema) -> None:
    assert not wrong(Node(path=path, schema=schema))
