"""Requests of people: annotations `VERB.paceline.dev/POOL: VALUE` of the SpeculativeDeployment.

Each value is carried out once. It changes the pool's entry before any step, and `handled` records the value in the same
status, so a crashed operator has written both or neither.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from paceline.api.status import Handled
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.abort import abort
from paceline.plan.deployment.requests.promote import promote
from paceline.plan.deployment.requests.promote_anyway import promote_anyway
from paceline.plan.deployment.requests.request import RefusalText, Request, StatusChange, requests_by_name
from paceline.plan.deployment.requests.retry import retry
from paceline.plan.deployment.requests.rollback import rollback
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult

VERBS: Mapping[str, Callable[[Pool, Request, datetime], StatusChange | RefusalText]] = {
    "promote": promote,
    "promote-anyway": promote_anyway,
    "abort": abort,
    "retry": retry,
    "rollback": rollback,
}


def carry_out(pool: Pool, now: datetime) -> tuple[Pool, tuple[str, ...]]:
    """The pool with its requests applied to its entry, and why other requests cannot be carried out."""
    refused = []
    for request in requests_by_name(pool.snapshot):
        if request.pool != pool.name or request.verb not in VERBS:
            continue
        if _is_handled(request, pool.remembered.handled):
            continue
        handled, name = pool.remembered.handled or Handled(), _field(request)
        effect = VERBS[request.verb](pool, request, now)
        if isinstance(effect, RefusalText):
            refused.append(f"{request}: {effect}")
            continue
        remembered = replace(pool.remembered, handled=replace(handled, **{name: request.value}), **effect)
        pool = replace(pool, remembered=remembered, asked=request.in_short if effect else pool.asked)
    return pool, tuple(refused)


def waiting_requests(snapshot: Snapshot, pool: str, results: Iterable[StepResult]) -> tuple[str, ...]:
    """Requests to a pool that one of the deployment's steps blocks, with the reason."""
    blocking = (result for result in results if result.blocks or pool in result.blocked_pools)
    causes = [cause for result in blocking for cause in result.causes]
    condition = f"{causes[0].reason.value.condition} ({causes[0].reason.text})" if causes else "the download"
    handled = snapshot.remembered(pool).handled
    return tuple(
        f"{request}: it waits until {condition} has ended"
        for request in requests_by_name(snapshot)
        if request.verb in VERBS and request.pool == pool and not _is_handled(request, handled)
    )


def unknown_requests(snapshot: Snapshot) -> tuple[str, ...]:
    """Why requests to an unknown pool, or with an unknown verb, cannot be carried out."""
    if snapshot.spec is None:
        return ()
    pools = [pool.name for pool in snapshot.spec.pools]
    return tuple(
        f"{request}: pool {request.pool} does not exist (there are: {', '.join(pools)}); remove it"
        if request.verb in VERBS
        else f"{request}: {request.verb} is not a request (there are: {', '.join(VERBS)}); remove it"
        for request in requests_by_name(snapshot)
        if request.verb not in VERBS or request.pool not in pools
        if not _is_handled(request, snapshot.remembered(request.pool).handled)
    )


def _is_handled(request: Request, handled: Handled | None) -> bool:
    return getattr(handled, _field(request), "") == request.value


def _field(request: Request) -> str:
    """The verb's field in `handled`."""
    return request.verb.replace("-", "_")
