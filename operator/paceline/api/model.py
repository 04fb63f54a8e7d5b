"""The base of all models of the API's specs: strict, with camelCase names, rules and descriptions.

The docstring of a field is its description in the CRD and in the reference.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from paceline.api.rules import DeskRule, Rule, validations
from paceline.core.model import is_model

AN_OBJECT = "x-paceline-default-object"


def empty(model: type[Any]) -> Any:
    """Makes `{}` an object field's default, so that the API server fills in the defaults inside that object."""
    return Field(default_factory=model, json_schema_extra={AN_OBJECT: True})


GROUP = "paceline.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"


class SchemaModel(BaseModel):
    """Read from JSON: `1`, `"1"` and `true` differ, as they do for the API server."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )
    rules: ClassVar[tuple[Rule | DeskRule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        json = handler.resolve_ref_schema(handler(schema))
        json.update(validations(cls.rules))
        return json


def fields_of(kind: type[Any]) -> Mapping[str, str]:
    """Name in JSON → name in Python, for the fields of an object of a spec; {} for other types."""
    if issubclass(kind, SchemaModel):
        return {str(field.alias): name for name, field in kind.model_fields.items()}
    return {to_camel(field.name): field.name for field in fields(kind)} if is_model(kind) else {}


def as_sent(node: Any) -> Any:
    """Like the API server, treats null as absent; kubectl sends 4.0 as 4."""
    match node:
        case Mapping():
            return {key: as_sent(value) for key, value in node.items() if value is not None}
        case list() | tuple():
            return [as_sent(item) for item in node]
        case float() if node.is_integer() and abs(node) < 2**53:
            return int(node)
    return node


def plain(objects: Iterable[SchemaModel]) -> tuple[dict[str, Any], ...]:
    """The objects as dicts, as Kubernetes writes them."""
    return tuple(one.model_dump(by_alias=True, exclude_none=True) for one in objects)
