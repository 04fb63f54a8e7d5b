"""Shared by the domain and the API: frozen records from which a spec's objects are made.

A record is a dataclass. pydantic reads and writes it as JSON, guided by its fields' types and docstrings. Created in
Python, it is not checked, and costs no more than any other dataclass.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, GetJsonSchemaHandler, TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

_Class = TypeVar("_Class")
CLASS = "x-paceline-class"
"""In a JSON schema: the name of its class."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def model(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass with camelCase names in JSON, where unknown fields are refused. A field's docstring is its
    description."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    made.__pydantic_config__ = ConfigDict(  # type: ignore[attr-defined]
        alias_generator=to_camel, extra="forbid", strict=True, use_attribute_docstrings=True
    )
    made.__get_pydantic_json_schema__ = classmethod(_json_schema)  # type: ignore[attr-defined]
    return made


def is_model(kind: object) -> bool:
    config = getattr(kind, "__pydantic_config__", {})
    return isinstance(kind, type) and dataclasses.is_dataclass(kind) and config.get("extra") == "forbid"


def _json_schema(cls: type[Any], schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    """The class's JSON schema, with defaults in their JSON form."""
    json = handler.resolve_ref_schema(handler(schema))
    for field in dataclasses.fields(cls):
        of = json["properties"][to_camel(field.name)]
        if "default" in of and of["default"] is not None:
            of["default"] = TypeAdapter(cls.__annotations__[field.name]).dump_python(field.default, mode="json")
    return {**json, CLASS: cls.__name__}
