"""What every model of the API is made of: strict camelCase models, with rules and descriptions.

The docstring of a field is its description in the CRD and in the reference.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from paceline.api.rules import DeskRule, Rule

GROUP = "paceline.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class Matches:
    """A string type: the whole of it matches `pattern` (RE2 and Python alike), or `must` is what the user reads."""

    pattern: str
    must: str

    def check(self, value: str) -> str:
        # Not search: Python's $ lets a line end follow, and RE2's does not.
        if not re.fullmatch(self.pattern, value, re.ASCII):
            raise PydanticCustomError("matches", "{must}", {"must": f"must {self.must}"})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        rule = {"rule": f"self.matches(r'{self.pattern}')", "message": f"must {self.must}"}
        return {**handler(schema), VALIDATIONS: [rule]}


NAME = Matches(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
    "be lower-case letters, digits and '-', a letter first: the names of Services are made of it",
)
LONGEST_NAME = 63
"""Of an object of ours, in characters: the name is the value of a label."""


class Model(BaseModel):
    """Read from JSON: `1`, `"1"` and `true` are three things, as they are to the API server."""

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
        if validations := [rule.validation() for rule in cls.rules if isinstance(rule, Rule)]:
            json[VALIDATIONS] = validations
        return json


@dataclass(frozen=True, slots=True)
class Unique:
    """A list in which no two items are the same, or the same in these fields: those of a list-map, which is merged."""

    keys: tuple[str, ...] = ()

    def check(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        seen = set()
        for item in items:
            value = tuple(getattr(item, key) for key in self.keys) if self.keys else (item,)
            if value in seen:
                what = " and ".join(map(to_camel, self.keys)) or "values"
                message = f"{what} must be unique; {', '.join(map(str, value))} stands twice"
                raise PydanticCustomError("unique", "{message}", {"message": message})
            seen.add(value)
        return items

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [to_camel(key) for key in self.keys]}
        return {**handler(schema), **(kind if self.keys else {"x-kubernetes-list-type": "set"})}


@dataclass(frozen=True, slots=True)
class Keys:
    """A map whose keys match `pattern`. The desk alone checks it: a key has no bound, so CEL's estimate forbids it."""

    pattern: str
    must: str

    def check(self, entries: dict[str, Any]) -> dict[str, Any]:
        for key in entries:
            if not re.fullmatch(self.pattern, key, re.ASCII) or len(key) > 253:
                raise PydanticCustomError("keys", "{message}", {"message": f"key {key[:100]!r} must {self.must}"})
        return entries

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))
