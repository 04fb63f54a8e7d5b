"""A request of a person: an annotation `VERB.paceline.dev/POOL: [REVISION]@TOKEN` of the SpeculativeDeployment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.plan.deployment.snapshot import Snapshot

DOMAIN = ".paceline.dev/"
REFUSED_WHILE_SUSPENDED = "nothing is promoted while spec.suspend is set; remove that first"
_LONGEST = 253
"""Characters of a value that count: the maximum of a run's `trigger.token`."""

StatusChange = Mapping[str, Any]
"""The effect of a request: new fields of the pool's entry; None removes one. Empty if there is nothing to do."""
RefusalText = str
"""Why a request cannot be carried out, and what to do. It is then not handled: each pass retries it until it succeeds
or is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str
    pool: str
    value: str

    def __str__(self) -> str:
        return f"{annotation(self.verb, self.pool)}={self.value}"

    @property
    def in_short(self) -> str:
        """The form in status, without the pool, because a pool's entry need not name it."""
        return f"{self.verb}={self.value}"

    @property
    def revision(self) -> str:
        """The part before the `@`; "" if the value has none."""
        return self.value.partition("@")[0] if "@" in self.value else ""


def annotation(verb: str, pool: str) -> str:
    return f"{verb}{DOMAIN}{pool}"


def requests_by_name(snapshot: Snapshot) -> tuple[Request, ...]:
    """All requests, by name; annotations with an empty value do not count."""
    parts = ((key.partition(DOMAIN), value) for key, value in sorted(snapshot.annotations.items()) if value)
    return tuple(
        Request(verb=verb, pool=pool, value=value[:_LONGEST])
        for (verb, domain, pool), value in parts
        if verb and domain
    )
