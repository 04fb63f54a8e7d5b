"""What people ask for that is not spec: annotations `VERB.paceline.dev/POOL: VALUE` of the SpeculativeDeployment.

Each value is acted upon once. What it brings about becomes memory of the pool before any step looks, and `handled`
echoes the value in the same status: an operator that dies in between has done both or neither.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.api.status import Handled, Retried
from paceline.plan.deployment.promote import promote
from paceline.plan.deployment.snapshot import Pool, Snapshot

DOMAIN = ".paceline.dev/"
LONGEST = 253
"""Characters of a value that count: what a run's `trigger.token` can hold."""

Answer = Mapping[str, Any] | str
"""Fields of what the pool remembers from now on (None: no more); or why it cannot be done, with the way out. What
cannot be done is not handled: it is asked again until it can be, or is taken away."""


def retry(pool: Pool, value: str, _: datetime) -> Answer:
    """A hold is released, and an answer that said nothing of the candidates is asked for anew. Where
    there is neither, nothing is left for later."""
    last = pool.decided
    if last is None or last.outcome not in UNANSWERED:
        return {"hold": None}
    return {"hold": None, "retried": Retried(question=last.question, attempt=last.attempt, token=value)}


UNANSWERED = ("Error", "Inconclusive")
"""Outcomes that a person may ask for anew: they say nothing, or not enough, of the candidates."""

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
    """All there are, by name; an empty value asks for nothing."""
    parts = ((key.partition(DOMAIN), value) for key, value in sorted(snapshot.annotations.items()) if value)
    return tuple(
        Request(verb=verb, pool=pool, value=value[:LONGEST]) for (verb, domain, pool), value in parts if verb and domain
    )


def carried_out(pool: Pool, now: datetime) -> tuple[Pool, tuple[str, ...]]:
    """The pool with what was asked of it in its memory; and what cannot be done."""
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


def unknown(snapshot: Snapshot) -> tuple[str, ...]:
    """Requests of which no pool will ever hear."""
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
