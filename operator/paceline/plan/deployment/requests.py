"""Requests of people: annotations `VERB.paceline.dev/POOL: VALUE` of the SpeculativeDeployment.

Each value is carried out once. It changes the pool's memory before any step, and `handled` repeats the value in the
same status: an operator that crashes has written both or neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.api.status import Handled, Retried
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.promote import promote
from paceline.plan.deployment.snapshot import Snapshot

DOMAIN = ".paceline.dev/"
LONGEST = 253
"""Characters of a value that count: the limit of a run's `trigger.token`."""

Answer = Mapping[str, Any] | str
"""New fields of the pool's memory (None removes one); or why the request cannot be carried out, with the way out. It is
then not handled: each pass tries it again, until it can be carried out or is removed."""


def retry(pool: Pool, value: str, _: datetime) -> Answer:
    """Release the hold, and repeat a run without a decision. Without either the request is handled all the same."""
    last = pool.decided
    if last is None or last.outcome not in UNDECIDED:
        return {"hold": None}
    return {"hold": None, "retried": Retried(question=last.question, attempt=last.attempt, token=value)}


UNDECIDED = ("Error", "Inconclusive")
"""Outcomes that a person may ask to repeat: they decide no candidate."""

VERBS: Mapping[str, Callable[[Pool, str, datetime], Answer]] = {"promote": promote, "retry": retry}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    verb: str
    pool: str
    value: str

    def __str__(self) -> str:
        return f"{annotation(self.verb, self.pool)}={self.value}"


def annotation(verb: str, pool: str) -> str:
    return f"{verb}{DOMAIN}{pool}"


def requests(snapshot: Snapshot) -> tuple[Request, ...]:
    """All requests, by name; an annotation with an empty value is none."""
    parts = ((key.partition(DOMAIN), value) for key, value in sorted(snapshot.annotations.items()) if value)
    return tuple(
        Request(verb=verb, pool=pool, value=value[:LONGEST]) for (verb, domain, pool), value in parts if verb and domain
    )


def carry_out(pool: Pool, now: datetime) -> tuple[Pool, tuple[str, ...]]:
    """The pool with its requests in its memory; and why others cannot be carried out."""
    refused = []
    for request in requests(pool.snapshot):
        if request.pool != pool.name or request.verb not in VERBS:
            continue
        handled = pool.remembered.handled or Handled()
        if getattr(handled, request.verb) == request.value:
            continue
        answer = VERBS[request.verb](pool, request.value, now)
        if isinstance(answer, str):
            refused.append(f"{request}: {answer}")
            continue
        handled = replace(handled, **{request.verb: request.value})
        pool = replace(pool, remembered=replace(pool.remembered, handled=handled, **answer))
    return pool, tuple(refused)


def unknown_requests(snapshot: Snapshot) -> tuple[str, ...]:
    """Why requests to no pool, or with an unknown verb, cannot be carried out."""
    if snapshot.spec is None:
        return ()
    pools = [pool.name for pool in snapshot.spec.pools]
    return tuple(
        f"{request}: pool {request.pool} does not exist (there are: {', '.join(pools)}); remove it"
        if request.verb in VERBS
        else f"{request}: {request.verb} is not a request (there are: {', '.join(sorted(VERBS))}); remove it"
        for request in requests(snapshot)
        if request.verb not in VERBS or request.pool not in pools
    )
