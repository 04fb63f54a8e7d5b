"""What the planners would do from here on: `paceline plan`.

The real planners are asked again and again, each pass as in the operator, and in between an imagined cluster goes on.
Nothing here knows what comes next; it only counts what came.
"""

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime

from paceline import api
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, POOL_LABEL, RUN_LABEL
from paceline.plan import deployment, run
from paceline.plan.objects import Object, condition, suspended
from paceline.plan.run.snapshot import Round
from paceline.plan.simulate import Assumptions, Cluster, Key, Tale, accelerators, key_of
from paceline.plan.step import Action, Adopt, Apply, Manifest, Plan
from paceline.render import Settings
from paceline.render.group import KIND as GROUPS

CLEAR: Tale = lambda number: 1.5  # noqa: E731
"""Every candidate is plainly faster: the gate decides at its first look."""
NOISY: Tale = lambda number: 1.5 if number % 2 else 0.7  # noqa: E731
"""No candidate is ever decided: all are in every round there can be."""

CLAIM = "PersistentVolumeClaim"
CHILDREN = (CLAIM, "Job", "Pod", "Deployment", GROUPS, "Service", "ControllerRevision", "BenchmarkRun")
WAITING = ("NoCapacity", "WaitingForCapacity")
NEVER = ("NotMeasurable",)
SETTINGS = Settings(image="paceline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one pool's question. A Job is a round; `reused` is the run that has answered the question before."""

    jobs: int = 0
    server_starts: int = 0
    accelerator_seconds: float = 0.0
    accelerators: int = 0
    """Of one round, on one node."""
    reused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """`steps`: what was applied or deleted, rounds aside, and why. `waiting`, `never` (what is not measured) and
    `stalled` are the planners' words."""

    pools: Mapping[str, Cost]
    steps: tuple[tuple[Key, str], ...]
    waiting: tuple[str, ...]
    never: tuple[str, ...]
    stalled: str
    serving: int
    """Accelerators of the servers in the end."""
    most_at_once: int
    """Rounds that had to take turns."""


@dataclass(kw_only=True)
class Story:
    """What has been seen so far."""

    costs: dict[str, Cost]
    steps: list[tuple[Key, str]] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    """That were made in this story: what they show is made up."""


def forecast(
    manifest: Object, there: Collection[Object], tale: Tale, assumptions: Assumptions, room: int | None, now: datetime
) -> Course:
    """From `manifest`, a deployment or a run, applied to a cluster that holds `there`, until nothing moves any more."""
    key = kind, name = key_of(manifest)
    before = next((dict(thing) for thing in there if key_of(thing) == key), {})
    label = OWNED[kind]
    named = ("BenchmarkRun", manifest["spec"].get("roundsOf"))
    children = [
        thing
        for thing in there
        if thing["kind"] == CLAIM or _labels(thing).get(label) == name or key_of(thing) == named
    ]
    metadata = {"namespace": "default", "uid": "not-yet-made", "generation": 1, **manifest["metadata"]}
    resource = {**manifest, "metadata": metadata | before.get("metadata", {}), "status": before.get("status", {})}
    cluster = Cluster(
        now=now,
        tale=tale,
        assumptions=assumptions,
        room=room,
        objects={key_of(thing): deepcopy(dict(thing)) for thing in (resource, *children)},
    )
    pools = [pool["name"] for pool in manifest["spec"].get("pools", ())] or [manifest["spec"]["pool"]]
    story = Story(costs={pool: Cost() for pool in pools})
    while _reconcile(cluster, story) or cluster.turn():
        pass
    return _course(cluster, story, cluster.objects[key]["status"])


def _reconcile(cluster: Cluster, story: Story) -> bool:
    """One pass over everything of ours. True if anything changed."""
    changed = False
    for key in [key for key in cluster.objects if key[0] in PLANNERS]:
        found, plan = cluster.objects[key], PLANNERS[key[0]](cluster, key[1])
        if plan.status is not None and plan.status != found.get("status"):
            found["status"], changed = deepcopy(dict(plan.status)), True
        for action in plan.actions:
            changed |= _act(cluster, story, action)
    return changed


def _act(cluster: Cluster, story: Story, action: Action) -> bool:
    if isinstance(action, Adopt):
        return False  # an imagined owner is never another
    if not isinstance(action, Apply):
        story.steps.append((("delete " + key_of(action.item)[0], key_of(action.item)[1]), action.why))
        return cluster.delete(action.item)
    kind, name = key_of(action.manifest)
    if not cluster.apply(action.manifest):
        return False
    if kind == "Job" and action.manifest["metadata"]["labels"][COMPONENT_LABEL] == "round":
        _count(cluster, story, action.manifest)
        return True
    story.steps.append(((kind, name), _hedged(story, action.why)))
    if kind == "BenchmarkRun":
        story.runs.add(name)
    return True


def _hedged(story: Story, why: str) -> str:
    """Numbers that a run of this story has shown are not repeated."""
    shown = next((name for name in story.runs if f": {name}: " in why), None)
    return f"{why.partition(':')[0]}, if {shown} shows it to be the fastest" if shown else why


def _count(cluster: Cluster, story: Story, job: Manifest) -> None:
    asked, pool = Round(job=job, pod=None).plan, job["metadata"]["labels"][POOL_LABEL]
    before, each = story.costs[pool], accelerators(job)
    story.costs[pool] = replace(
        before,
        jobs=before.jobs + 1,
        server_starts=before.server_starts + len(asked.arms),
        accelerator_seconds=before.accelerator_seconds + cluster.assumptions.of_round(asked) * each,
        accelerators=each,
    )


def _course(cluster: Cluster, story: Story, status: Object) -> Course:
    runs = {entry["name"]: (entry.get("verdict") or {}).get("benchmarkRun", "") for entry in status.get("pools", ())}
    costs = {
        pool: replace(cost, reused="" if runs.get(pool, "") in story.runs else runs.get(pool, ""))
        for pool, cost in story.costs.items()
    }
    conditions = status.get("conditions", ())
    return Course(
        pools=costs,
        steps=tuple(story.steps),
        waiting=tuple(c["message"] for c in conditions if c["reason"] in WAITING),
        never=tuple(c["message"] for c in conditions if c["reason"] in NEVER),
        stalled=_stalled(status),
        serving=cluster.serving,
        most_at_once=cluster.most_at_once,
    )


def _stalled(status: Object) -> str:
    """Of a deployment, why nothing goes on; of a run, why it could not be carried out."""
    verdict = status.get("verdict") or {}
    failed = verdict.get("message", "") if verdict.get("outcome") == "Error" else ""
    return str((condition({"status": status}, "Stalled") or {}).get("message", failed))


def _labels(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("labels") or {}


def _deployment(cluster: Cluster, name: str) -> Plan:
    manifest = cluster.objects["SpeculativeDeployment", name]
    spec = api.deployment(manifest)
    children = {kind: tuple(cluster.of(kind)) for kind in CHILDREN}
    seen = deployment.Snapshot(manifest=manifest, spec=spec, invalid="", children=children, settings=SETTINGS)
    return deployment.plan(seen, cluster.now)


def _run(cluster: Cluster, name: str) -> Plan:
    manifest = cluster.objects["BenchmarkRun", name]
    jobs = cluster.of("Job", RUN_LABEL, name)
    seen = run.Snapshot(
        manifest=manifest,
        spec=api.run(manifest),
        invalid="",
        rounds=tuple(Round(job=job, pod=cluster.pod_of(job)) for job in jobs),
        namespaces=(),
        suspended=suspended(manifest),
        settings=SETTINGS,
        source=cluster.objects.get(("BenchmarkRun", manifest["spec"].get("roundsOf", ""))),
    )
    return run.plan(seen, cluster.now)


PLANNERS: Mapping[str, Callable[[Cluster, str], Plan]] = {"SpeculativeDeployment": _deployment, "BenchmarkRun": _run}
OWNED = {"SpeculativeDeployment": DEPLOYMENT_LABEL, "BenchmarkRun": RUN_LABEL}
"""Kind → the label by which its children name it."""
