"""What the API has words for and the operator does not act on yet: refused, with what to write instead.

Nothing is accepted in silence. Whoever makes the operator act on a field deletes its line here, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.api.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
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
