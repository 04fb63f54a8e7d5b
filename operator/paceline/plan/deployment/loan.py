"""A pool lends a server to its own run if no node has room for a round: `benchmark.capacityPolicy: Borrow`.

A round needs as many accelerators of one node as a server, so one replica is enough. Each pass derives the loan from
the run: it waits for accelerators, or measures. Replicas are the requested minus the lent ones (`workload.replicas`),
so no code path can forget to give back: a run that ended, pauses or is superseded borrows nothing, and neither does a
pool whose spec no longer lends.

Like a request, a loan changes the pool's entry before any step: it is in status before a server stops.

    30 s     a round has waited this long for accelerators: the pool lends, once all its servers are ready
    10 min   no round has found room despite the loan: the replica comes back, and the run waits
    1 min    fewer than minServing other servers were ready for this long: it comes back, too; and at once if
             another revision is rolled out, because that could replace the last ready server
    10 min   until the next loan, doubled after each useless loan, up to two hours
"""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.api.status import Loan, PoolStatus
from paceline.core import CapacityPolicy, PoolSettings
from paceline.core.manifest import Object
from paceline.core.names import COMPONENT_LABEL, POOL_LABEL
from paceline.plan.deployment.choose import Rollout
from paceline.plan.deployment.holds import held_by_a_person
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run
from paceline.plan.objects import condition
from paceline.plan.step import earliest, parse_time, timestamp

LOAN_PATIENCE = timedelta(seconds=30)
"""How long a round must have waited before a pool lends: accelerators freed by another round or a finished pod would
let it start within seconds."""
MISSED = timedelta(minutes=1)
"""How long too few other servers may be ready: a server that misses some probes is back by then, a restarted one is
not."""
_BLOCK = timedelta(minutes=10)
"""How long a useless loan lasts, and the pause after it: longer than a server takes to drain (215 s:
`render.serving`)."""
LONGEST_PAUSE = timedelta(hours=2)
_ASK_AGAIN = timedelta(seconds=30)
"""Interval of checks while no event reports that all of the pool's servers are ready."""


def lend(rollout: Rollout, now: datetime) -> Rollout:
    """The pool with its loan updated."""
    pool = rollout.pool
    entry = _entry(rollout, now)
    return rollout if entry == pool.remembered else replace(rollout, pool=replace(pool, remembered=entry))


def _entry(rollout: Rollout, now: datetime) -> PoolStatus:
    entry, run = rollout.pool.remembered, _borrower(rollout.pool)
    if entry.borrowed and _left_at_zero(rollout.pool):
        return entry
    if not _may_lend(rollout.pool) or (run is None and not entry.borrowed):
        return replace(entry, borrowed=None, loan=None)
    if entry.borrowed:
        return _continued(rollout, run, now)
    if run is None or rollout.pool.blocked or _due(rollout, run, now) != now:
        return entry
    in_vain = entry.loan.in_vain if entry.loan else None
    return replace(entry, borrowed=1, loan=Loan(run=run.name, since=timestamp(now), in_vain=in_vain))


def _continued(rollout: Rollout, run: Run | None, now: datetime) -> PoolStatus:
    """The entry of a lending pool, with the loan while its run needs it. The loan ends with the run, if too few other
    servers are ready, and if it was useless for too long."""
    pool, entry = rollout.pool, rollout.pool.remembered
    loan = entry.loan or Loan()
    if run is None:
        return replace(entry, borrowed=None, loan=None)
    missed = _misses_them_at(pool, now)
    if (missed and missed <= now) or _rolls_out(rollout):  # the pool needs the server itself; the loan was not useless
        return replace(entry, borrowed=None, loan=Loan(run=run.name, not_before=timestamp(now + _BLOCK)))
    if not _waits(run):
        return replace(entry, loan=replace(loan, waiting_since="", in_vain=None))
    if pool.servers and pool.servers.ending_until:  # a server still drains
        return replace(entry, loan=replace(loan, waiting_since=""))
    since = loan.waiting_since or timestamp(now)
    if now < parse_time(since) + _BLOCK:
        return replace(entry, loan=replace(loan, waiting_since=since))
    count = (loan.in_vain or 0) + 1
    pause = min(LONGEST_PAUSE, _BLOCK * 2 ** min(count - 1, 10))
    return replace(entry, borrowed=None, loan=Loan(run=run.name, in_vain=count, not_before=timestamp(now + pause)))


def changes_at(rollout: Rollout, now: datetime) -> datetime | None:
    """When a loan starts or ends without an event, or should be checked again; None if only an event can change it."""
    pool, run = rollout.pool, _borrower(rollout.pool)
    if run is None or not _may_lend(pool):
        return None
    if pool.remembered.borrowed:
        since = pool.remembered.loan.waiting_since if pool.remembered.loan else ""
        in_vain = parse_time(since) + _BLOCK if since else now + _ASK_AGAIN if _waits(run) else None
        return earliest((in_vain, _misses_them_at(pool, now)))
    due = _due(rollout, run, now)
    return due if due is None or due > now else now + _ASK_AGAIN


def loan_note(rollout: Rollout, now: datetime) -> str:
    """How the pool reacts to its run's lack of accelerators; "" if there is no such lack."""
    pool, run = rollout.pool, _borrower(rollout.pool)
    if run is None or not _may_lend(pool):
        return ""
    if pool.remembered.borrowed:
        return f"one of the pool's {pool.spec.replicas} servers is lent to it"
    since, loan = run.lacks_accelerators_since, pool.remembered.loan or Loan()
    if since is None:
        return ""
    if loan.not_before and not loan.in_vain and parse_time(loan.not_before) > now:
        return f"the pool needed the server that was lent; the next loan is at {loan.not_before} or later"
    if loan.not_before and loan.in_vain:
        minutes = _BLOCK // timedelta(minutes=1)
        return f"a server was lent in vain for {minutes} minutes; the next loan is at {loan.not_before}"
    if not _all_ready(rollout):
        return "the pool lends it a server once all of them are ready"
    return f"the pool lends it a server at {timestamp(since + LOAN_PATIENCE)}"


def lent(entry: PoolStatus, spec: PoolSettings) -> str:
    """`1 of 2 servers, one is lent to RUN`; "" without a loan."""
    if not entry.borrowed or not entry.loan or not spec.replicas:
        return ""
    return f"{spec.replicas - entry.borrowed} of {spec.replicas} servers, one is lent to {entry.loan.run}"


def _may_lend(pool: Pool) -> bool:
    """Whether the spec lets this pool give up a replica."""
    borrows = pool.deployment.capacity_policy is CapacityPolicy.BORROW and not pool.suspended
    return borrows and bool(pool.spec.replicas) and (pool.spec.replicas or 0) - 1 >= pool.deployment.min_serving


def _left_at_zero(pool: Pool) -> bool:
    """Whether an autoscaler has taken over a pool that lent its last server: autoscalers ignore a pool with zero
    replicas."""
    return pool.spec.replicas is None and pool.servers is not None and not pool.servers.replicas


def _borrower(pool: Pool) -> Run | None:
    """The run that the present or next loan is for; None if a person's hold forbids it."""
    if held_by_a_person(pool):
        return None
    lent_to = pool.remembered.loan.run if pool.remembered.borrowed and pool.remembered.loan else ""
    runs = [run for run in pool.runs if run.name == lent_to] if lent_to else pool.attempts
    return next((run for run in runs if run.under_way and not run.suspended and not run.outside_window), None)


def _due(rollout: Rollout, run: Run, now: datetime) -> datetime | None:
    """When the pool lends to its run: now, later, or None if it cannot."""
    pool, since = rollout.pool, run.lacks_accelerators_since
    if since is None:
        return None
    loan = pool.remembered.loan or Loan()
    paused = parse_time(loan.not_before) if loan.not_before and loan.run == run.name else now
    due = max(since + LOAN_PATIENCE, paused, now)
    if due > now:
        return due
    return now if _all_ready(rollout) else now + _ASK_AGAIN


def _all_ready(rollout: Rollout) -> bool:
    """Whether every requested server is ready. Otherwise fewer than minServing might be left, or a server without
    accelerators might be the one that stops."""
    servers, wanted = rollout.pool.servers, rollout.pool.spec.replicas
    return rollout.settled and servers is not None and servers.own_ready == servers.replicas == wanted


def _rolls_out(rollout: Rollout) -> bool:
    """Whether another revision is about to replace servers that minServing protects."""
    return bool(rollout.pool.deployment.min_serving) and not rollout.settled and not rollout.has_served


def _misses_them_at(pool: Pool, now: datetime) -> datetime | None:
    """When fewer than minServing servers will have been ready for too long, unless one becomes ready before; None if
    enough are ready."""
    least, pods = pool.deployment.min_serving, _staying(pool)
    missing = sorted(_not_ready_since(pod) for pod in pods if condition(pod, "Ready") is None)
    if len(pods) - len(missing) >= least:
        return None
    return missing[max(0, len(pods) - least)] + MISSED if missing else now


def _not_ready_since(pod: Object) -> datetime:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    times = (one.get("lastTransitionTime") for one in conditions if one["type"] == "Ready")
    return parse_time(next(filter(None, times), None) or pod["metadata"]["creationTimestamp"])


def _waits(run: Run) -> bool:
    return run.waits or run.refused is not None


def _staying(pool: Pool) -> list[Object]:
    labels = {POOL_LABEL: pool.name, COMPONENT_LABEL: "server"}.items()
    pods = (pod for pod in pool.snapshot.of("Pod") if labels <= (pod["metadata"].get("labels") or {}).items())
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
