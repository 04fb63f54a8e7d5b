"""Predicts what the planners would do from now on if everything succeeds: `paceline plan`.

The real planners reconcile a simulated cluster (`plan.simulation`) until nothing changes; between two passes servers
get ready, and prefetches and rounds end. This module does not know the next step: the steps are what the planners
applied.
"""

import math
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from paceline.api import run as parsed
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core import CapacityPolicy, Purpose, RunSpec, Workload, source_run
from paceline.core.manifest import Manifest, Object
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, POOL_LABEL, RUN_LABEL
from paceline.core.record import from_status
from paceline.engines.pod_template import CONCLUDE
from paceline.evidence import ArmCommand, RoundPlan, encode
from paceline.plan.costs import Assumptions, EvidenceCost, RoundCost
from paceline.plan.deployment.loan import LOAN_PATIENCE
from paceline.plan.deployment.servers import one_more_waits, pod_template
from paceline.plan.deployment.workload import STARTUP_PATIENCE as SURGE_PATIENCE
from paceline.plan.interruptions import Interruption, Watch
from paceline.plan.objects import condition, finished
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.simulation import controllers, kubelet, reconciler
from paceline.plan.simulation.answers import fetch_request, fetched, round_result
from paceline.plan.simulation.cluster import ROUND, SERVERS, Cluster, Handle, handle_of, passes_admission
from paceline.plan.simulation.scheduler import accelerators, is_round
from paceline.plan.step import Action, Adopt, Apply
from paceline.plan.trouble import UNALLOCATED

Scenario = Callable[[int], float]
"""Round → the throughput of every candidate, relative to the baseline."""
ALL_FASTER: Scenario = lambda number: 1.5  # noqa: E731
"""The gate decides at its first look."""
UNDECIDED_SCENARIO: Scenario = lambda number: 1.5 if number % 2 else 0.7  # noqa: E731
"""No candidate is ever decided: all are in every possible round."""

_NODE = "simulated"
"""One node for all: accelerators are only a number here."""
_CLAIM = "PersistentVolumeClaim"
MOST_WAITS = 64
"""Maximum number of times that time advances for a loan: once per run."""
OWNED = {"SpeculativeDeployment": DEPLOYMENT_LABEL, "BenchmarkRun": RUN_LABEL}
"""Kind → the label that names the owner on its children."""
WAITING = ("NoCapacity", "WaitingForCapacity")
_NEVER = ("NotMeasurable",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """`steps`: what was applied or deleted, except rounds, with the reason of each. `waiting`, `never` (pools that
    cannot be measured) and `stalled` are messages of the planners' conditions."""

    pools: Mapping[str, EvidenceCost]
    asked: Mapping[str, RunSpec]
    """Pool → the run that it would make, if it measures and is not only searching."""
    steps: tuple[tuple[Handle, str], ...]
    waiting: tuple[str, ...]
    never: tuple[str, ...]
    stalled: str
    serving: int
    """Accelerators held by ready servers at the end."""
    most_at_once: int
    """Number of rounds that must take turns because they fit one by one but not together; 0 if none must."""
    interruptions: tuple[Interruption, ...]


@dataclass(kw_only=True)
class Simulation:
    """A cluster in which everything succeeds, and the planners' actions so far. `free`: accelerators available for all
    objects here."""

    cluster: Cluster
    scenario: Scenario
    assumptions: Assumptions
    free: float
    costs: dict[str, EvidenceCost]
    watch: Watch
    steps: list[tuple[Handle, str]] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    """BenchmarkRuns created here: their measurements are invented."""
    asked: dict[str, RunSpec] = field(default_factory=dict)
    """Pool → its last run that is created here and is no search."""
    most_at_once: int = 0
    waited: int = 0
    due: datetime | None = None
    """When the planner of a pool that may lend a server runs next."""


def forecast(
    manifest: Object,
    existing: Collection[Object],
    scenario: Scenario,
    assumptions: Assumptions,
    free: int | None,
    now: datetime,
    *,
    beside: bool = False,
) -> Forecast:
    """Apply `manifest`, a deployment or a run, to a cluster that holds `existing` and reconcile until nothing changes.

    `free`: number of free accelerators, not counting those held by servers of `existing`; None: unlimited. `beside`:
    `free` comes on top of the accelerators of the deployment's servers; and runs that wait for free accelerators get
    them eventually, so that the steps after a verdict are included. benchmark.window is assumed to be open.
    """
    stored = _stored(manifest, existing)
    available = math.inf if free is None else free + (_of_servers(manifest) if beside else _held(stored))
    simulation = Simulation(
        cluster=Cluster(
            now=now,
            nodes={_NODE: available},
            objects={handle_of(one): deepcopy(dict(one)) for one in stored},
            one_round_per_node=False,
            unplaced={"message": f"no accelerators are left for it: {_lacking(manifest)}"},
            admit=_with_room if beside and not _borrows(manifest) else passes_admission,
        ),
        scenario=scenario,
        assumptions=assumptions,
        free=available,
        costs={pool: EvidenceCost() for pool in _pools(manifest)},
        watch=Watch(start_seconds=assumptions.start_seconds),
    )
    _start_servers(simulation.cluster)
    while _reconcile(simulation) or _advance(simulation):
        pass
    return _forecast(simulation, simulation.cluster.objects[handle_of(manifest)]["status"])


def _stored(manifest: Object, existing: Collection[Object]) -> list[Object]:
    """What the API server holds once `manifest` is applied: `manifest`, and those of the `existing` objects that the
    planner of its kind reads."""
    key = kind, name = handle_of(manifest)
    before = next((dict(stored) for stored in existing if handle_of(stored) == key), {})
    source = ("BenchmarkRun", source_run(manifest["spec"]))
    children = [
        stored
        for stored in existing
        if stored["kind"] == _CLAIM
        or (stored["metadata"].get("labels") or {}).get(OWNED[kind]) == name
        or handle_of(stored) == source
    ]
    metadata = {"namespace": "default", "uid": "not-yet-made", "generation": 1, **manifest["metadata"]}
    benchmark = {key: value for key, value in manifest["spec"].get("benchmark", {}).items() if key != "window"}
    if "benchmark" in manifest["spec"]:
        manifest = {**manifest, "spec": {**manifest["spec"], "benchmark": benchmark}}
    resource = {**manifest, "metadata": metadata | before.get("metadata", {}), "status": before.get("status", {})}
    return [resource, *children]


def _held(stored: Collection[Object]) -> int:
    """Accelerators of existing servers."""
    objects = {handle_of(one): one for one in stored}
    servers = (one for one in stored if one["kind"] == "Deployment")
    return sum(accelerators(pod_template(one), objects) * one["spec"].get("replicas", 1) for one in servers)


def _of_servers(manifest: Object) -> int:
    """Accelerators that the deployment's servers take."""
    accelerator = manifest["spec"]["accelerator"]
    replicas = sum(pool.get("replicas", 1) for pool in manifest["spec"].get("pools", ()))
    return int(replicas * accelerator["count"] * accelerator.get("nodes", 1))


def _lacking(manifest: Object) -> str:
    accelerator = manifest["spec"]["accelerator"]
    if "deviceClassName" in accelerator:
        return UNALLOCATED
    return f"Insufficient {accelerator.get('resourceName', 'nvidia.com/gpu')}"


def _borrows(manifest: Object) -> bool:
    return bool(manifest["spec"].get("benchmark", {}).get("capacityPolicy") == CapacityPolicy.BORROW)


def _with_room(_owner: Object, pod: Manifest) -> Manifest:
    """Admit a round's pod without accelerators."""
    if not is_round(pod):
        return pod
    arms = [{**container, "resources": {}} for container in pod["spec"]["initContainers"]]
    return {**pod, "spec": {**pod["spec"], "initContainers": arms, "resourceClaims": []}}


def _pools(manifest: Object) -> list[str]:
    return [pool["name"] for pool in manifest["spec"].get("pools", ())] or [manifest["spec"]["pool"]]


def _start_servers(cluster: Cluster) -> None:
    """Start the existing servers, because listings of a cluster seldom include their pods."""
    controllers.step(cluster)
    _servers_get_ready(cluster)
    controllers.step(cluster)


# The operator's part.


def _reconcile(simulation: Simulation) -> bool:
    """One pass over all of our objects. True if anything changed."""
    cluster, changed = simulation.cluster, False
    simulation.due = None
    for key in reconciler.owned_handles(cluster):
        if key not in cluster.objects:
            continue  # a run that its deployment has just deleted
        stored, plan = cluster.objects[key], reconciler.plan_of(cluster, key)
        if key[0] == "SpeculativeDeployment" and _may_lend(stored, cluster):
            simulation.due = plan.requeue_at
        if plan.status is not None and plan.status != stored.get("status"):
            stored["status"], changed = deepcopy(dict(plan.status)), True
        for action in plan.actions:
            changed |= _carry_out(simulation, action)
    return changed


def _may_lend(deployment: Object, cluster: Cluster) -> bool:
    """Whether a run waits for accelerators and no pool has lent a server yet."""
    lent = any(pool.get("internal", {}).get("borrowed") for pool in (deployment.get("status") or {}).get("pools", ()))
    statuses = (from_status(BenchmarkRunStatus, run.get("status")) for run in cluster.of("BenchmarkRun"))
    waits = any(status.progress and status.progress.waits_for_accelerators for status in statuses)
    return _borrows(deployment) and not lent and waits


def _carry_out(simulation: Simulation, action: Action) -> bool:
    if isinstance(action, Apply) and action.manifest["kind"] in SERVERS:
        before = simulation.cluster.objects.get(handle_of(action.manifest))
        ready = (before or {}).get("status", {}).get("readyReplicas", 0)
        simulation.watch.applied(deepcopy(before), action.manifest, ready, simulation.cluster.now)
    if not reconciler.apply_action(simulation.cluster, action):
        return False
    if isinstance(action, Apply):
        _note(simulation, action.manifest, action.why)
    elif not isinstance(action, Adopt):
        kind, name = handle_of(action.item)
        simulation.steps.append(((f"delete {kind}", name), action.why))
    return True


def _note(simulation: Simulation, applied: Manifest, why: str) -> None:
    """Count a round as a cost, and everything else as a step."""
    kind, name = handle_of(applied)
    if kind == "Job" and applied["metadata"]["labels"][COMPONENT_LABEL] == "round":
        _count(simulation, applied)
        return
    if kind == ROUND:
        return
    simulation.steps.append(((kind, name), _hedged(simulation, why)))
    if kind == "BenchmarkRun":
        simulation.runs.add(name)
        asked = parsed(applied)
        if asked.purpose is not Purpose.SEARCH:
            simulation.asked[asked.pool] = asked


def _hedged(simulation: Simulation, why: str) -> str:
    """The reason without an invented run's numbers."""
    run = next((name for name in simulation.runs if f": {name}: " in why), None)
    return f"{why.partition(':')[0]}, if {run} shows it to be the fastest" if run else why


def _count(simulation: Simulation, job: Manifest) -> None:
    plan, pool = RoundJob(job=job, pod=None).plan, job["metadata"]["labels"][POOL_LABEL]
    each = accelerators(pod_template(job), simulation.cluster.objects)
    before, assumed = simulation.costs[pool], simulation.assumptions
    search = _and(before.search or EvidenceCost(), plan, each, assumed) if plan.cells else before.search
    simulation.costs[pool] = replace(_and(before, plan, each, assumed), search=search)


def _and(before: EvidenceCost, plan: RoundPlan, each: int, assumed: Assumptions) -> EvidenceCost:
    """The cost with one more round, on `each` accelerators."""
    return replace(
        before,
        jobs=before.jobs + 1,
        server_starts=before.server_starts + len(plan.arms),
        accelerator_seconds=before.accelerator_seconds + assumed.of_round(plan) * each,
        by_round=(*before.by_round, RoundCost(assumed.of_starts(plan) * each, assumed.of_loads(plan) * each)),
        accelerators=each,
        requests={workload.name: workload.dataset.requests for workload in plan.workloads},
    )


# The cluster's part.


def _advance(simulation: Simulation) -> bool:
    """Let the next event outside the operator happen. False if there is none."""
    cluster = simulation.cluster
    return (
        controllers.step(cluster)
        or _prefetch_ends(cluster)
        or _servers_get_ready(cluster)
        or _one_more_waits(cluster)
        or _round_ends(simulation)
        or _loan_is_due(simulation)
    )


def _prefetch_ends(cluster: Cluster) -> bool:
    """A prefetch ends at once. Commits are invented and facts unknown, so preflight finds nothing."""
    job = next((job for job in cluster.of("Job", component="fetch") if not finished(job)), None)
    if job is not None:
        kubelet.end_job(cluster, job, "fetch", 0, fetched(fetch_request(job)))
    return job is not None


def _servers_get_ready(cluster: Cluster) -> bool:
    """Servers get ready at once: the start of a server that nothing waits for takes no time."""
    starting = [pod for pod in _placed_servers(cluster) if pod["status"]["phase"] != "Running"]
    for pod in starting:
        kubelet.mark_ready(pod)
    return bool(starting)


def _one_more_waits(cluster: Cluster) -> bool:
    """A roll-out waits for accelerators for one additional server, until the planner gives up."""
    waits = any(one_more_waits(one, cluster.owned("Pod", one), {}, cluster.now) for one in cluster.of("Deployment"))
    cluster.now += SURGE_PATIENCE if waits else timedelta()
    return waits


def _round_ends(simulation: Simulation) -> bool:
    """End the oldest round under way, after its assumed time."""
    cluster = simulation.cluster
    pods = [pod for pod in cluster.of("Pod") if is_round(pod) and pod["status"]["phase"] in ("Pending", "Running")]
    left = simulation.free - _accelerators(cluster, _placed_servers(cluster))
    fitting = [each for pod in pods if (each := accelerators(pod, cluster.objects)) <= left]
    if sum(fitting) > left:
        simulation.most_at_once = max(simulation.most_at_once, len(fitting))
    jobs = (job for job in cluster.of("Job", component="round") if not finished(job))
    job = next((job for job in jobs if any("nodeName" in pod["spec"] for pod in cluster.owned("Pod", job))), None)
    if job is None:
        return False
    plan, began = RoundJob(job=job, pod=None).plan, cluster.now.timestamp()

    def speed(arm: ArmCommand, workload: Workload) -> float:
        tokens = workload.dataset.requests * workload.dataset.max_tokens
        baseline = tokens / simulation.assumptions.of_workload(workload)
        return baseline * (simulation.scenario(plan.round) if arm.candidate else 1)

    cluster.now += timedelta(seconds=simulation.assumptions.of_round(plan))
    assumed = simulation.assumptions
    result = round_result(
        plan,
        speed,
        assumed.start_seconds,
        began,
        cluster.now.timestamp(),
        spread=assumed.spread_of,
        prompts={workload.dataset.name: assumed.size_of(workload) for workload in plan.workloads},
    )
    kubelet.end_job(cluster, job, CONCLUDE, 0, encode(result))
    return True


def _loan_is_due(simulation: Simulation) -> bool:
    """Advance the time until a pool lends a server to its run."""
    if simulation.due is None or simulation.due - simulation.cluster.now > LOAN_PATIENCE:
        return False
    simulation.cluster.now, simulation.due = simulation.due, None
    simulation.waited += 1
    return simulation.waited <= MOST_WAITS


def _placed_servers(cluster: Cluster) -> list[Manifest]:
    return [pod for pod in cluster.of("Pod", component="server") if pod["spec"].get("nodeName") == _NODE]


def _accelerators(cluster: Cluster, pods: Collection[Object]) -> int:
    return sum(accelerators(pod, cluster.objects) for pod in pods)


# The results.


def _forecast(simulation: Simulation, status: Object) -> Forecast:
    verdicts = {entry["name"]: entry.get("verdict") or {} for entry in status.get("pools", ())}
    runs = {pool: (verdict.get("evidence") or {}).get("run", "") for pool, verdict in verdicts.items()}
    costs = {
        pool: replace(cost, reused="" if runs.get(pool, "") in simulation.runs else runs.get(pool, ""))
        for pool, cost in simulation.costs.items()
    }
    conditions = status.get("conditions", ())
    return Forecast(
        pools=costs,
        asked=simulation.asked,
        steps=tuple(simulation.steps),
        waiting=tuple(c["message"] for c in conditions if c["reason"] in WAITING),
        never=tuple(c["message"] for c in conditions if c["reason"] in _NEVER),
        stalled=_stalled(status),
        serving=_accelerators(simulation.cluster, _placed_servers(simulation.cluster)),
        most_at_once=simulation.most_at_once,
        interruptions=simulation.watch.over(
            {
                found["metadata"]["labels"][POOL_LABEL]: found
                for kind in SERVERS
                for found in simulation.cluster.of(kind)
            }
        ),
    )


def _stalled(status: Object) -> str:
    """Why a deployment is stalled, or why a run failed."""
    verdict = status.get("verdict") or {}
    failed = verdict.get("message", "") if verdict.get("outcome") == "Error" else ""
    return str((condition({"status": status}, "Stalled") or {}).get("message", failed))
