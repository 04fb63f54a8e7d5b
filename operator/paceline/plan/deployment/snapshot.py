"""From what was gathered to what the steps read: one frozen view of the deployment, one of each pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from paceline.api import Reason, run_manifest_spec
from paceline.api.record import from_status
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import BASELINE, Arm, Dataset, DeploymentSpec, Model, PoolSpec, RunSpec, Server, Workload
from paceline.core.names import POOL_LABEL, child_name
from paceline.engines import ENGINES
from paceline.evidence import fingerprint, question
from paceline.plan.deployment.alike import loads_of, revision_among
from paceline.plan.deployment.capacity import all_there, short
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.runs import Run
from paceline.plan.objects import Object, condition, owned_by
from paceline.plan.pods import Trouble, paused, refused, trouble
from paceline.plan.step import parse_time
from paceline.render import Owner, Settings, group_name
from paceline.render.group import KIND as GROUPS
from paceline.render.serving import ARM_LABEL, REVISION_LABEL


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A SpeculativeDeployment and its children at one moment. `spec` is None where it cannot be read, `invalid` why.

    `children` are objects by kind (Job, Pod, Deployment, LeaderWorkerSet, Service, ControllerRevision, BenchmarkRun,
    PersistentVolumeClaim), ours by label or under a name that we want. `absent` are kinds that the cluster does not
    know.
    """

    manifest: Object
    spec: DeploymentSpec | None
    invalid: str
    children: Mapping[str, tuple[Object, ...]]
    settings: Settings
    absent: frozenset[str] = frozenset()
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Of what waits without saying why, by uid: the last that Events said of it."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What the API server refused of what the last pass wrote: by kind and name, in its words."""
    config_maps: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Of those that hold prompts, the keys; None: there is none of that name. Those that we may not read are absent."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.manifest["metadata"].get("annotations") or {}

    @cached_property
    def status(self) -> SpeculativeDeploymentStatus:
        return from_status(SpeculativeDeploymentStatus, self.manifest.get("status"))

    @property
    def owner(self) -> Owner:
        return Owner(
            kind="SpeculativeDeployment",
            name=self.name,
            namespace=self.namespace,
            uid=self.manifest["metadata"]["uid"],
        )

    def of(self, kind: str) -> list[Object]:
        """By name: what is planned must not depend on the order in which a list came."""
        return sorted(self.children.get(kind, ()), key=lambda child: str(child["metadata"]["name"]))

    def child(self, kind: str, name: str) -> Object | None:
        return next((c for c in self.children.get(kind, ()) if c["metadata"]["name"] == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """A pool's Deployment or LeaderWorkerSet: what it runs and how far it has come."""

    found: Object
    revision: str
    ready: int
    settled: bool
    """Every replica asked for is of this revision and ready, or has no room; and none of another is left."""
    trouble: Trouble | None
    asked: int
    """Replicas that its spec says by now."""
    own_ready: int
    """Those of this revision that are ready."""
    amiss: frozenset[Reason]
    """What the troubles of those of this revision make of Ready."""
    hopeless: bool
    """Every one of this revision fails for good."""

    @property
    def short(self) -> str:
        """How many of those asked for are missing, and why; "" if none is."""
        return short(self.ready, self.asked, self.trouble.what if self.trouble else "")


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One pool at one moment: asked for, remembered from last time, there now."""

    snapshot: Snapshot
    spec: PoolSpec
    server: Server
    remembered: PoolStatus
    """Its entry of status."""
    runs: tuple[Run, ...]
    servers: Servers | None
    kept: Mapping[str, Object]
    """Revision → its ControllerRevision."""
    wanted: Mapping[str, Any]
    """The spec of a run that would ask what is to be decided now."""
    question: str
    """Names what is to be decided now: what is measured, and by which rule."""
    loads: frozenset[int]
    """Largest concurrencies that its runs were made for."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def arms(self) -> Mapping[str, Arm]:
        return {arm.name: arm for arm in self.spec.arms}

    @property
    def run_spec(self) -> RunSpec:
        assert self.snapshot.spec is not None
        return _run_spec(self.snapshot.spec, self.spec, self.server)

    @cached_property
    def fingerprint(self) -> str:
        """Names what is measured to decide it."""
        return fingerprint(self.wanted)

    @cached_property
    def asked(self) -> tuple[Run, ...]:
        """Runs of the question of now, the latest attempt first."""
        of_now = [run for run in self.runs if run.question == self.question]
        return tuple(sorted(of_now, key=lambda run: run.attempt, reverse=True))

    @cached_property
    def decided(self) -> Run | None:
        """What answers it: of the question itself first, else of one about more candidates, the latest. No run that was
        asked for anew by a person, nor any before that one."""
        fresh = [run for run in self.runs if run.outcome and not run.stale and not self.given_up(run)]
        more = sorted((run for run in fresh if run.answers(self.wanted)), key=lambda run: run.finished_at)
        return next((run for run in (*self.asked, *reversed(more)) if run in fresh), None)

    def given_up(self, run: Run) -> bool:
        """A person has asked for another in its place."""
        return run.question == self.question and run.attempt <= self.retried

    @property
    def retried(self) -> int:
        """The last attempt at the question of now that a person has asked for anew."""
        anew = self.remembered.retried
        return anew.attempt or 0 if anew and anew.question == self.question else 0

    def revision(self, arm: Arm) -> str:
        return self._revisions[arm.name]

    @cached_property
    def _revisions(self) -> Mapping[str, str]:
        first = _known(self.remembered, self.servers)
        return {arm.name: revision_among(self.server, arm, first, self.kept, self.loads) for arm in self.spec.arms}


def models_of(spec: DeploymentSpec) -> tuple[Model, ...]:
    """Target first, then every head once."""
    heads = (arm.draft.model for pool in spec.pools for arm in pool.arms if arm.draft and arm.draft.model)
    return tuple(dict.fromkeys((spec.server.target, *heads)))


def datasets_of(spec: DeploymentSpec) -> tuple[Dataset, ...]:
    """Of the hub, those that some pool is measured on, each file once."""
    used = (workload.dataset for pool in spec.pools for workload in pool.workloads if workload.dataset.of_the_hub)
    return tuple({(one.source, one.revision): one for one in used}.values())


def to_bring(spec: DeploymentSpec) -> tuple[Model | Dataset, ...]:
    """All that is to have a commit."""
    return (*models_of(spec), *datasets_of(spec))


def pin(spec: DeploymentSpec, commits: Mapping[tuple[str, str], str]) -> DeploymentSpec:
    """The spec with every model and every dataset of the hub at its commit; `commits` by source and revision."""

    def model(asked: Model) -> Model:
        return replace(asked, commit=commits[asked.source, asked.revision])

    def arm(asked: Arm) -> Arm:
        if asked.draft is None or asked.draft.model is None:
            return asked
        return replace(asked, draft=replace(asked.draft, model=model(asked.draft.model)))

    def workload(asked: Workload) -> Workload:
        if not asked.dataset.of_the_hub:
            return asked
        commit = commits[asked.dataset.source, asked.dataset.revision]
        return replace(asked, dataset=replace(asked.dataset, commit=commit))

    return replace(
        spec,
        server=replace(spec.server, target=model(spec.server.target)),
        pools=tuple(
            replace(
                pool,
                arms=tuple(arm(asked) for asked in pool.arms),
                workloads=tuple(workload(asked) for asked in pool.workloads),
            )
            for pool in spec.pools
        ),
    )


def pools(snapshot: Snapshot, pinned: DeploymentSpec, now: datetime) -> tuple[Pool, ...]:
    return tuple(_pool(snapshot, pinned, spec, now) for spec in pinned.pools)


def children(snapshot: Snapshot, kind: str, pool: str) -> list[Object]:
    """Those of a pool that are ours."""
    return [
        child
        for child in snapshot.of(kind)
        if child["metadata"].get("labels", {}).get(POOL_LABEL) == pool and owned_by(child, snapshot.owner.uid)
    ]


def revisions(snapshot: Snapshot, pool: str) -> Mapping[str, Object]:
    """Revision → the ControllerRevision that keeps its rendering. One without its label, or without a rendering, keeps
    none: somebody else has had it in hand."""
    found = children(snapshot, "ControllerRevision", pool)
    named = {child["metadata"]["labels"].get(REVISION_LABEL): child for child in found if _keeps(child.get("data"))}
    return {revision: child for revision, child in named.items() if revision}


def _keeps(data: Any) -> bool:
    """A rendering: what the servers' pods are made from, at least."""
    try:
        return bool([container["name"] for container in data["template"]["spec"]["containers"]])
    except (KeyError, TypeError):
        return False


def _run_spec(spec: DeploymentSpec, pool: PoolSpec, server: Server) -> RunSpec:
    return RunSpec(
        pool=pool.name,
        server=server,
        arms=pool.arms,
        workloads=pool.workloads,
        gate=pool.gate,
        pod_labels=spec.run_pod_labels,
        gpu_hours=spec.run_gpu_hours,
        parity=spec.run_parity,
        timeouts=spec.run_timeouts,
    )


def _run(found: Object, remembered: PoolStatus, oldest: datetime, served: frozenset[str]) -> Run:
    """What the pool has gone by so far it goes on with: age alone starts no run. Where its status is lost, what is
    `served` tells: the arms of which its servers are. Rounds that were judged again are as old as they are."""
    run = Run(found=found)
    known = referred(replace(remembered, serving=None))
    ends = [end for end in (run.finished_at, *(one.finished_at for one in run.results)) if end]
    aged = bool(ends) and min(map(parse_time, ends)) < oldest
    lost = not remembered.target and (run.winner or BASELINE) in served
    stale = aged and run.outcome is not None and run.name not in known and not lost
    return replace(run, stale=stale, aged=aged)


def _known(remembered: PoolStatus, there: Servers | None) -> tuple[str, ...]:
    """Revisions that the pool goes by: what is to serve first, what is held, what serves."""
    entries = (remembered.target, remembered.hold, remembered.serving, there)
    return tuple(entry.revision for entry in entries if entry and entry.revision)


def _pool(snapshot: Snapshot, pinned: DeploymentSpec, spec: PoolSpec, now: datetime) -> Pool:
    remembered = entry_of(snapshot, spec.name)
    server = replace(
        pinned.server,
        largest_concurrency=max(workload.concurrency for workload in spec.workloads),
        # How the models were brought shapes no server: another proxy is no other question.
        cache=replace(pinned.server.cache, env=(), security_context={}),
    )
    spec = replace(spec, arms=ENGINES[server.engine.name].fewest_drafts_first(spec.arms))
    there = servers(snapshot, spec.name, now)
    wanted = run_manifest_spec(_run_spec(pinned, spec, server))
    kept, first = revisions(snapshot, spec.name), _known(remembered, there)
    measured = children(snapshot, "BenchmarkRun", spec.name)
    loads = loads_of(measured)
    served = frozenset(
        arm.name for arm in spec.arms if there and there.revision == revision_among(server, arm, first, kept, loads)
    )
    runs = tuple(_run(found, remembered, now - pinned.max_evidence_age, served) for found in measured)
    return Pool(
        snapshot=snapshot,
        spec=spec,
        server=server,
        remembered=remembered,
        runs=runs,
        servers=there,
        kept=kept,
        wanted=wanted,
        question=question(wanted),
        loads=loads,
    )


def entry_of(snapshot: Snapshot, pool: str) -> PoolStatus:
    """What status remembers of a pool."""
    return next((one for one in snapshot.status.pools if one.name == pool), PoolStatus(name=pool))


def referred(remembered: PoolStatus) -> set[str]:
    """Runs that a pool's entry names."""
    by_name = (one.benchmark_run for one in (remembered.verdict, remembered.progress) if one)
    as_evidence = (one.evidence for one in (remembered.target, remembered.serving) if one)
    return {name for name in (*by_name, *as_evidence) if name}


def serving(snapshot: Snapshot, pool: str) -> list[Object]:
    """What makes a pool's servers, of either kind and ours, the younger first: another number of nodes is another kind,
    and the older one is about to go."""
    names = {"Deployment": child_name(snapshot.name, pool), GROUPS: group_name(snapshot.name, pool)}
    there = (snapshot.child(kind, name) for kind, name in names.items())
    ours = [found for found in there if found and owned_by(found, snapshot.owner.uid)]
    return sorted(ours, key=lambda found: str(found["metadata"].get("creationTimestamp", "")), reverse=True)


def pod_template(found: Object) -> Object:
    """Of the pods that answer."""
    spec = found["spec"]
    template: Object = spec["leaderWorkerTemplate"]["leaderTemplate"] if found["kind"] == GROUPS else spec["template"]
    return template


def servers(snapshot: Snapshot, pool: str, now: datetime) -> Servers | None:
    """None where there are none, and where somebody else's stand under their name."""
    found = next(iter(serving(snapshot, pool)), None)
    if found is None:
        return None
    status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
    revision = pod_template(found)["metadata"].get("labels", {}).get(REVISION_LABEL, "")
    pods = [
        pod
        for pod in snapshot.of("Pod")
        if pod["metadata"].get("labels", {}).get(POOL_LABEL) == pool
        and pod["metadata"]["labels"].get(REVISION_LABEL) == revision
        and ARM_LABEL in pod["metadata"]["labels"]
    ]
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    troubles = [trouble([pod], snapshot.warnings, now) for pod in staying]
    of_all = refused(found, snapshot.warnings) or paused(found)
    found_wrong = of_all or trouble(pods, snapshot.warnings, now)
    ready = status.get("readyReplicas", 0)
    return Servers(
        found=found,
        revision=revision,
        ready=ready,
        settled=_observed(status) >= found["metadata"].get("generation", 1) and all_there(status, wanted, pods),
        trouble=told(snapshot, found_wrong),
        asked=wanted,
        own_ready=sum(condition(pod, "Ready") is not None for pod in staying),
        amiss=frozenset(one.says for one in (of_all, *troubles) if one),
        hopeless=bool(troubles) and all(one is not None and one.fatal for one in troubles),
    )


def told(snapshot: Snapshot, found: Trouble | None) -> Trouble | None:
    """With the field of the spec that names what is missing."""
    return replace(found, what=with_field(found.what, snapshot.manifest["spec"])) if found else None


def _observed(status: Mapping[str, Any]) -> int:
    """The generation that a status speaks of. LeaderWorkerSet before v0.9 says it in its conditions alone."""
    said = (condition.get("observedGeneration", 0) for condition in status.get("conditions", ()))
    return int(status.get("observedGeneration") or max(said, default=0))
