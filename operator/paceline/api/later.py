"""What the API has words for and the operator does not act on yet: refused, with what to write instead.

Nothing is accepted in silence. Whoever makes the operator act on a field deletes its line here, and nothing else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic.alias_generators import to_snake

from paceline.api.model import Finding, Model, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A field of a model, or those of its values that match `values` (RE2 and Python alike)."""

    field: str
    values: str = ""
    which: str = ""
    """The values in words."""
    instead: str

    def rule(self) -> Rule:
        unsaid = f"!has(self.{self.field})"
        return Rule(
            cel=f"{unsaid} || !self.{self.field}.matches(r'{self.values}')" if self.values else unsaid,
            message=f"{self.field}{self.which} is not in this release: {self.instead}",
            field=f".{self.field}",
            broken=self._broken,
        )

    def _broken(self, model: Model) -> Iterator[Finding]:
        value = getattr(model, to_snake(self.field))
        if value is not None and re.search(self.values, str(value)):
            what = f"{self.field} {value}" if self.values else self.field
            yield f".{self.field}", f"{what} is not in this release: {self.instead}"


WAITS = "leave it out: a run waits until its accelerators are free"
UNWATCHED = "leave it out: nothing watches production yet"

NOT_YET: Mapping[str, tuple[Later, ...]] = {
    "PoolSpec": (Later(field="search", instead="name candidates"),),
    "BenchmarkSpec": (
        Later(field="capacityPolicy", values="^Borrow$", which=" Borrow", instead=WAITS),
        Later(field="minServing", instead="leave it out: it belongs to capacityPolicy Borrow"),
    ),
    "GuardSpec": (
        Later(
            field="action",
            values="^(Fallback|Notify)$",
            which=' other than "Off"',
            instead='write "Off", or leave guard out',
        ),
        Later(field="acceptanceDrop", instead=UNWATCHED),
        Later(field="window", instead=UNWATCHED),
        Later(field="source", instead=UNWATCHED),
    ),
    "BenchmarkRunSpec": (Later(field="purpose", values="^Search$", which=" Search", instead="write Gate or Sweep"),),
}
"""By the name of the model that has the field."""


def not_yet(model: str) -> tuple[Rule, ...]:
    """The rules of a model's fields that nothing acts on."""
    return tuple(later.rule() for later in NOT_YET.get(model, ()))
