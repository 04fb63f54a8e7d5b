"""Fields and values that are not implemented: the API server refuses them and says what to write instead.

An open issue implements each of them. Whoever does deletes its entry here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.api.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Unimplemented:
    """A field of a model, or those of its values that match `values` (RE2 and Python alike)."""

    field: str
    values: str = ""
    which: str = ""
    """The values in words."""
    instead: str

    def rule(self) -> Rule:
        absent = f"!has(self.{self.field})"
        return Rule(
            cel=f"{absent} || !self.{self.field}.matches(r'{self.values}')" if self.values else absent,
            message=f"{self.field}{self.which} is not in this release: {self.instead}",
            field=f".{self.field}",
        )


UNIMPLEMENTED: Mapping[str, tuple[Unimplemented, ...]] = {
    "PoolSpec": (Unimplemented(field="search", instead="name candidates"),),
    "BenchmarkRunSpec": (
        Unimplemented(field="purpose", values="^Search$", which=" Search", instead="write Gate or Sweep"),
    ),
}
"""By the name of the model that has the field."""


def unimplemented(model: str) -> tuple[Rule, ...]:
    """The rules of a model's fields that nothing acts on."""
    return tuple(field.rule() for field in UNIMPLEMENTED.get(model, ()))
