"""A pool lends a server to its own run: `benchmark.capacityPolicy: Borrow`, where no node has room for a round.

A round needs as many accelerators of one node as a server has, so one replica is enough. What is lent follows in every
pass from the run: it waits for accelerators, or measures. Replicas are those asked for minus those lent
(`size.replicas`), so no path can forget to give back: a run that has ended, rests or is superseded borrows nothing, and
neither does a pool whose spec no longer lends.

Like a request, a loan changes the pool's memory before any step: status has it before a server goes.

    30 s     a round has waited so long for accelerators: the pool lends, once all its servers are ready
    10 min   no round has found room in spite of the loan: the replica comes back, and the run waits
    1 min    fewer than minServing of the other servers have been ready for so long: it comes back, too; and at once if
             another revision is rolled out, for else that could replace the last server that is ready
    10 min   until the next loan, doubled with each in vain up to two hours

Runs take turns on a node, so a loan for a second one there would be in vain: a pool whose servers are all on nodes
where another run measures, or has been lent a server, waits until that is over (decision 0045).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from paceline.api.status import Loan, PoolStatus
from paceline.core import CapacityPolicy, DeploymentSpec, PoolSpec
from paceline.core.names import COMPONENT_LABEL, LENT, POOL_LABEL, RUN_LABEL
from paceline.plan.deployment.capacity import ending_until
from paceline.plan.deployment.hold import held_by_a_person
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import Object, annotations, condition
from paceline.plan.step import earliest, parse_time, timestamp

PATIENCE = timedelta(seconds=30)
"""A round that another one's end or a finished pod gives room starts within seconds."""
MISSED = timedelta(minutes=1)
"""A server that does not answer some probes is back by then; one that starts anew takes longer."""
BLOCK = timedelta(minutes=10)
"""Longer than a server takes to drain (215 s: `render.serving`)."""
MOST_NODES = 16
"""That status keeps. On others of its nodes two runs may be lent a server at once, which takes their rounds longer."""
LONGEST_PAUSE = timedelta(hours=2)
ASK_AGAIN = timedelta(seconds=30)
"""While nothing tells us that the other run on its nodes is over."""


def may_lend(deployment: DeploymentSpec, pool: PoolSpec) -> bool:
    """Whether the spec lets this pool give up a replica."""
    borrows = deployment.capacity_policy is CapacityPolicy.BORROW and not deployment.suspend
    return borrows and bool(pool.replicas) and (pool.replicas or 0) - 1 >= deployment.min_serving


def lend(rollout: Rollout, now: datetime) -> Rollout:
    """The pool with its loan as it is from now on."""
    pool = rollout.pool
    entry, run = pool.remembered, borrower(rollout)
    if not may_lend(pool.deployment, pool.spec):
        entry = replace(entry, borrowed=None, loan=None)
    elif entry.borrowed:
        entry = continued(pool.snapshot, pool.deployment, entry, run, now)
        if entry.borrowed and _rolls_out(rollout):
            entry = _given_back(entry, now)
    elif run is None:
        entry = replace(entry, loan=None)
    elif _due(rollout, run, now) == now:
        in_vain = entry.loan.in_vain if entry.loan else None
        nodes = tuple(sorted(_nodes(pool.snapshot, pool.name)))[:MOST_NODES]
        entry = replace(entry, borrowed=1, loan=Loan(run=run.name, since=timestamp(now), nodes=nodes, in_vain=in_vain))
    return replace(rollout, pool=replace(pool, remembered=entry))


def continued(
    snapshot: Snapshot, deployment: DeploymentSpec, entry: PoolStatus, run: Run | None, now: datetime
) -> PoolStatus:
    """The entry of a pool that has lent, with the loan while its run needs it. It ends with the run, when too few of
    the other servers are ready, and when it has been in vain for too long."""
    loan = entry.loan or Loan()
    if run is None or run.name != loan.run:
        return replace(entry, borrowed=None, loan=None)
    if (due := _misses_them_at(snapshot, deployment, entry.name, now)) and due <= now:
        return _given_back(entry, now)
    if not _waits(run):
        return replace(entry, loan=replace(loan, waiting_since="", in_vain=None))
    if _stands_still(snapshot, entry, run, now):
        return replace(entry, loan=replace(loan, waiting_since=""))
    since = loan.waiting_since or timestamp(now)
    if now < parse_time(since) + BLOCK:
        return replace(entry, loan=replace(loan, waiting_since=since))
    count = (loan.in_vain or 0) + 1
    pause = min(LONGEST_PAUSE, BLOCK * 2 ** min(count - 1, 10))
    return replace(entry, borrowed=None, loan=Loan(run=run.name, in_vain=count, not_before=timestamp(now + pause)))


def borrower(rollout: Rollout) -> Run | None:
    """The run of the present question that a loan would be for; None where a person has taken that back."""
    if held_by_a_person(rollout.pool):
        return None
    return next((run for run in rollout.pool.attempts if _may_measure(run)), None)


def lent_run(snapshot: Snapshot, entry: PoolStatus) -> Run | None:
    """The run that the pool has lent to, while it goes on."""
    name = entry.loan.run if entry.loan else ""
    found = snapshot.child("BenchmarkRun", name) if name else None
    run = Run(manifest=found) if found else None
    return run if run and _may_measure(run) else None


def changes_at(rollout: Rollout, now: datetime) -> datetime | None:
    """When a loan begins or ends without an event, or is worth looking at again; None if only an event can do that."""
    pool, run = rollout.pool, borrower(rollout)
    if run is None or not may_lend(pool.deployment, pool.spec):
        return None
    if pool.remembered.borrowed:
        return ends_at(pool.snapshot, pool.deployment, pool.remembered, run, now)
    due = _due(rollout, run, now)
    return due if due is None or due > now else now + ASK_AGAIN


def ends_at(
    snapshot: Snapshot, deployment: DeploymentSpec, entry: PoolStatus, run: Run, now: datetime
) -> datetime | None:
    """When the loan will have been in vain, or too few of the other servers ready, for too long."""
    since = entry.loan.waiting_since if entry.loan else ""
    in_vain = parse_time(since) + BLOCK if since else now + ASK_AGAIN if _waits(run) else None
    return earliest((in_vain, _misses_them_at(snapshot, deployment, entry.name, now)))


def note(rollout: Rollout, now: datetime) -> str:
    """What the pool does about its run's lack of accelerators; "" if there is none."""
    pool, run = rollout.pool, borrower(rollout)
    if run is None or not may_lend(pool.deployment, pool.spec):
        return ""
    if pool.remembered.borrowed:
        return f"one of the pool's {pool.spec.replicas} servers is lent to it"
    since, loan = run.lacks_accelerators_since, pool.remembered.loan or Loan()
    if since is None:
        return ""
    if loan.not_before and not loan.in_vain and parse_time(loan.not_before) > now:
        return f"the pool needed the server that was lent; the next loan is at {loan.not_before} or later"
    if loan.not_before and loan.in_vain:
        minutes = BLOCK // timedelta(minutes=1)
        return f"a server was lent in vain for {minutes} minutes; the next loan is at {loan.not_before}"
    if not _all_ready(rollout):
        return "the pool lends it a server once all of them are ready"
    if others := _in_the_way(pool.snapshot, run, _nodes(pool.snapshot, pool.name)):
        return f"the pool lends it a server after {', '.join(others)}, which measures on its nodes"
    return f"the pool lends it a server at {timestamp(since + PATIENCE)}"


def lent(entry: PoolStatus, spec: PoolSpec) -> str:
    """`1 of 2 servers, one is lent to RUN`; "" if none is."""
    if not entry.borrowed or not entry.loan or not spec.replicas:
        return ""
    return f"{spec.replicas - entry.borrowed} of {spec.replicas} servers, one is lent to {entry.loan.run}"


def annotation(entry: PoolStatus) -> dict[str, str]:
    """What the servers of a pool that lends say to all others."""
    return {LENT: " ".join((entry.loan.run, *entry.loan.nodes))} if entry.borrowed and entry.loan else {}


def elsewhere(pods: Iterable[Object], servers: Iterable[Object]) -> dict[str, frozenset[str]]:
    """`Snapshot.elsewhere`, of the pods and Deployments of all namespaces."""
    found: dict[str, frozenset[str]] = {}
    for pod in pods:
        labels, node = pod["metadata"].get("labels") or {}, (pod.get("spec") or {}).get("nodeName")
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node and not ended and labels.get(COMPONENT_LABEL) == "round":
            key = f"{pod['metadata'].get('namespace', '')}/{labels.get(RUN_LABEL, '')}"
            found[key] = found.get(key, frozenset()) | {node}
    for manifest in servers:
        run, *nodes = annotations(manifest).get(LENT, "").split() or [""]
        if run:
            key = f"{manifest['metadata'].get('namespace', '')}/{run}"
            found[key] = found.get(key, frozenset()) | set(nodes)
    return found


def _due(rollout: Rollout, run: Run, now: datetime) -> datetime | None:
    """When the pool lends to its run: now, later, or None while it cannot."""
    pool, since = rollout.pool, run.lacks_accelerators_since
    if since is None:
        return None
    loan = pool.remembered.loan or Loan()
    paused = parse_time(loan.not_before) if loan.not_before and loan.run == run.name else now
    due = max(since + PATIENCE, paused, now)
    if due > now:
        return due
    nodes = _nodes(pool.snapshot, pool.name)
    taken = frozenset[str]().union(*_others(pool.snapshot, run).values())
    return now if _all_ready(rollout) and nodes - taken else now + ASK_AGAIN


def _all_ready(rollout: Rollout) -> bool:
    """Whether every server that is asked for is ready: else less than minServing would be left, or a server that has no
    accelerators would be the one that goes."""
    servers, wanted = rollout.pool.servers, rollout.pool.spec.replicas
    return rollout.settled and servers is not None and servers.own_ready == servers.replicas == wanted


def _rolls_out(rollout: Rollout) -> bool:
    """Whether another revision is about to replace servers that are to stay."""
    return bool(rollout.pool.deployment.min_serving) and not rollout.settled and not rollout.has_served


def _given_back(entry: PoolStatus, now: datetime) -> PoolStatus:
    """The pool needs the server itself; the loan was not in vain."""
    run = entry.loan.run if entry.loan else ""
    return replace(entry, borrowed=None, loan=Loan(run=run, not_before=timestamp(now + BLOCK)))


def _misses_them_at(snapshot: Snapshot, deployment: DeploymentSpec, pool: str, now: datetime) -> datetime | None:
    """When fewer than minServing servers will have been ready for too long, unless one of them is ready before; None
    while as many are."""
    least, pods = deployment.min_serving, _staying(snapshot, pool)
    missing = sorted(_not_ready_since(pod) for pod in pods if condition(pod, "Ready") is None)
    if len(pods) - len(missing) >= least:
        return None
    return missing[max(0, len(pods) - least)] + MISSED if missing else now


def _not_ready_since(pod: Object) -> datetime:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    times = (one.get("lastTransitionTime") for one in conditions if one["type"] == "Ready")
    return parse_time(next(filter(None, times), None) or pod["metadata"]["creationTimestamp"])


def _may_measure(run: Run) -> bool:
    return run.under_way and not run.suspended and not run.outside_window


def _waits(run: Run) -> bool:
    return run.waits or run.refused is not None


def _stands_still(snapshot: Snapshot, entry: PoolStatus, run: Run, now: datetime) -> bool:
    """Whether it is no lack of room that a round does not begin: a server still drains, or another run has its turn."""
    nodes = frozenset(entry.loan.nodes) if entry.loan else frozenset[str]()
    draining = ending_until(_servers(snapshot, entry.name), now) is not None
    return draining or bool(_in_the_way(snapshot, run, nodes))


def _in_the_way(snapshot: Snapshot, run: Run, nodes: frozenset[str]) -> list[str]:
    """Other runs that measure, or have been lent a server, on these nodes."""
    return sorted(other for other, taken in _others(snapshot, run).items() if taken & nodes)


def _others(snapshot: Snapshot, run: Run) -> Mapping[str, frozenset[str]]:
    own = f"{snapshot.namespace}/{run.name}"
    return {other: nodes for other, nodes in snapshot.elsewhere.items() if other != own}


def _nodes(snapshot: Snapshot, pool: str) -> frozenset[str]:
    """The nodes of the pool's servers."""
    return frozenset(node for pod in _staying(snapshot, pool) if (node := (pod.get("spec") or {}).get("nodeName")))


def _staying(snapshot: Snapshot, pool: str) -> list[Object]:
    return [pod for pod in _servers(snapshot, pool) if "deletionTimestamp" not in pod["metadata"]]


def _servers(snapshot: Snapshot, pool: str) -> list[Object]:
    labels = {POOL_LABEL: pool, COMPONENT_LABEL: "server"}
    return [pod for pod in snapshot.of("Pod") if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
