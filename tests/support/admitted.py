"""Whether the API server would take a status, by the CRD: a planner whose status is refused is silent for ever."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline import api

STATUS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("status")
    for crd in api.crds()
}
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": (list, tuple),
    "object": Mapping,
}
BOUNDS = ("maxLength", "maxItems", "maxProperties")
LARGEST = 2**63 - 1
"""Of an integer; what is beyond arrives as a number with a fraction."""


def check(kind: str, status: Mapping[str, Any]) -> None:
    found = list(_refusals(STATUS[kind], status, "status"))
    assert not found, found


def _refusals(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not isinstance(value, TYPES[schema["type"]]) or is_number is not (schema["type"] == "integer"):
        yield f"{path}: {value!r:.80} is no {schema['type']}"
        return
    if is_number and abs(value) > LARGEST:
        yield f"{path}: {value} has more than 64 bits"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value} is below {schema['minimum']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value} is none of {schema['enum']}"
    yield from (f"{path}: more than {schema[key]}" for key in BOUNDS if key in schema and len(value) > schema[key])
    if isinstance(value, Mapping):
        yield from (f"{path}: no {name}" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            below = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            yield from _refusals(below, inner, f"{path}.{name}") if below else [f"{path}.{name} is not declared"]
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _refusals(schema["items"], inner, f"{path}[{number}]")
        keys = schema.get("x-kubernetes-list-map-keys", ())
        names = [tuple(one.get(key) for key in keys) for one in value] if keys else []
        if len(set(names)) < len(names):
            yield f"{path}: two of the same {keys}"
