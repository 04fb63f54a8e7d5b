"""Checks of a deployment before its pools: its spec, its kinds, what it no longer asks for, and whether its models
fit."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline import core
from paceline.api import Cause, Reason
from paceline.api.status import EffectiveGate
from paceline.core import DeploymentSpec
from paceline.core.manifest import Object
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL
from paceline.core.text import percentage
from paceline.engines import refusals_of_spec
from paceline.plan.deployment.companions import PROTECTION, ROUTES, settings_of_protection, unrouted
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.models import named_models
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import WITHOUT_CLAIMS
from paceline.plan.step import Adopt, Delete, StepResult
from paceline.preflight import ModelFacts, findings
from paceline.render.devices import RESOURCE_CLAIM_TEMPLATE as CLAIM_TEMPLATE
from paceline.render.group import GROUPS
from paceline.render.pull import COMPONENT

_KINDS = ("Deployment", GROUPS, "Service", "BenchmarkRun", "ControllerRevision", CLAIM_TEMPLATE, *PROTECTION, *ROUTES)
_RELEASE = "v0.10.0"
"""The latest release of kubernetes-sigs/lws in August 2026; any since v0.5 will do."""
_INSTALL = (
    f"kubectl apply --server-side -f https://github.com/kubernetes-sigs/lws/releases/download/{_RELEASE}/manifests.yaml"
)
NEVER_OWNED = {"Pod", "PersistentVolumeClaim"}
"""Kinds that a SpeculativeDeployment does not own."""


def check_spec(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block while the spec cannot be read, or while an engine refuses an argument in it."""
    if snapshot.spec is None:
        return StepResult(causes=(Cause(snapshot.refused, None, snapshot.invalid),), blocks=True)
    refused = refusals_of_spec.refused(snapshot.spec, snapshot.manifest["spec"])
    if refused:
        note = "; ".join(f"{refusal.path}: {refusal.message}" for refusal in refused)
        return StepResult(causes=(Cause(Reason.InvalidSpec, None, note),), blocks=True)
    return StepResult(status=_of_deployment(snapshot.spec))


def end_dropped_pools(snapshot: Snapshot, _: datetime) -> StepResult:
    """Delete every object of a pool that is no longer in the spec."""
    if snapshot.spec is None:
        return StepResult()
    pools = {pool.name for pool in snapshot.spec.pools}
    dropped = snapshot.of_no_pool(_KINDS, pools)
    # The prefetch belongs to no pool, and stays.
    jobs = snapshot.of_no_pool(["Job"], pools)
    dropped += [job for job in jobs if job["metadata"]["labels"].get(COMPONENT_LABEL) == COMPONENT]
    return StepResult(actions=tuple(Delete(child, "its pool is no longer in spec.pools") for child in dropped))


def report_refusals(snapshot: Snapshot, _: datetime) -> StepResult:
    """Stalled for each refused write of the last pass. The write is retried, and other pools continue."""
    spec = snapshot.manifest.get("spec")
    notes = (f"{kind} {name}: {with_field(why, spec)}" for (kind, name), why in snapshot.refusals.items())
    return StepResult(causes=tuple(Cause(Reason.WriteRefused, None, note) for note in notes))


def check_draft(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block each pool whose models do not fit each other or the spec, as far as the prefetch's facts show; other
    findings become notes."""
    prefetch = snapshot.prefetch
    if prefetch is None:
        return StepResult()
    every = model_problems(prefetch.spec, snapshot.manifest["spec"], prefetch.facts)
    if blocking := [problem for problem in every if problem.blocks]:
        note = "; ".join(dict.fromkeys(problem.text for problem in blocking))
        cause = Cause(Reason.PreflightFailed, None, note)
        return StepResult(causes=(cause,), blocked_pools=frozenset(problem.pool for problem in blocking))
    return StepResult(notes=(*dict.fromkeys(problem.text for problem in every), *_unread(prefetch.spec)))


def _unread(spec: DeploymentSpec) -> Iterator[str]:
    """Models without facts: an image's files are not read before its servers start."""
    for model in named_models(spec):
        if model.address.digest:
            yield f"{model.source}: an image's files are not read, so its sizes, layers and memory are not checked"


def check_kinds(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block if servers need a kind that the cluster lacks: for claimed devices, or for several nodes."""
    spec = snapshot.spec
    if spec and spec.server.accelerator.claims and CLAIM_TEMPLATE in snapshot.absent:
        return StepResult(causes=(Cause(Reason.NoResourceClaims, None, f"spec.{WITHOUT_CLAIMS}"),), blocks=True)
    if spec is None or spec.server.accelerator.nodes == 1 or GROUPS not in snapshot.absent:
        return StepResult()
    note = f"spec.accelerator.nodes is {spec.server.accelerator.nodes}; install it: {_INSTALL}"
    return StepResult(causes=(Cause(Reason.NoLeaderWorkerSet, None, note),), blocks=True)


def report_missing_companions(snapshot: Snapshot, _: datetime) -> StepResult:
    """Note each requested companion that cannot be created; the servers serve without it."""
    wanted = settings_of_protection(snapshot.settings)
    missing = {kind: value for kind, value in wanted.items() if kind in snapshot.absent}
    unmade = (
        f"no {kind} is made for servers: the operator may not list them; use the ClusterRole of its own release's "
        f"chart, or switch them off ({value})"
        for kind, value in missing.items()
    )
    return StepResult(notes=(*unmade, *dict.fromkeys(unrouted(snapshot))))


def _of_deployment(spec: core.DeploymentSpec) -> dict[str, Any]:
    server = spec.server
    return {
        "served_name": server.served_name,
        "engine": f"{server.engine.type} {server.engine.version}",
        "claim_name": server.cache.claim or "",
    }


def of_pools(spec: core.DeploymentSpec) -> dict[str, dict[str, Any]]:
    """Pool → fields of its entry."""
    return {pool.name: _of_pool(pool) for pool in spec.pools}


def _of_pool(pool: core.PoolSettings) -> dict[str, Any]:
    gate = EffectiveGate(
        min_improvement=percentage(pool.gate.min_improvement),
        max_regression=percentage(pool.gate.max_regression),
        max_slowdown=percentage(pool.gate.max_slowdown),
        confidence=percentage(pool.gate.confidence),
        decide_after_rounds=pool.gate.decide_after_rounds,
    )
    return {"candidates": tuple(arm.name for arm in pool.arms[1:]), "gate": gate}


OF_NO_POOL: dict[str, Any] = {"candidates": (), "gate": None}
"""The entry's fields while the spec is invalid."""


def orphans(snapshot: Snapshot) -> tuple[Adopt, ...]:
    """Adopt children with our label whose owner is a former object of our name, or missing. Velero does not restore
    references to owners (pkg/restore/restore.go, resetMetadata); `kubectl delete --cascade=orphan` removes them."""
    owner = snapshot.owner
    return tuple(
        Adopt(child, owner.reference, f"its owner {owner.name} was restored under another uid")
        for child in snapshot.foreign
        if child["kind"] not in NEVER_OWNED
        and (child["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL) == owner.name
        and ((owner.kind, owner.name) in _owners(child) or _without_owner(child))
        and "deletionTimestamp" not in child["metadata"]
        and (child["kind"], child["metadata"]["name"]) not in snapshot.refusals
    )


def _without_owner(child: Object) -> bool:
    """Whether the object has no owner and its labels show that the operator created it, but not for a run."""
    labels = child["metadata"]["labels"].items()
    return labels >= MANAGED_BY.items() and RUN_LABEL not in dict(labels) and not _owners(child)


def _owners(child: Object) -> set[tuple[str, str]]:
    return {(owner.get("kind", ""), owner.get("name", "")) for owner in child["metadata"].get("ownerReferences", ())}


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """`text` starts with the field. `blocks`: the pool cannot be served with this problem."""

    text: str
    blocks: bool
    pool: str


def model_problems(
    spec: DeploymentSpec, written: Mapping[str, Any], facts: Mapping[str, ModelFacts]
) -> tuple[ModelProblem, ...]:
    """Problems of every pool. `written` is the manifest's spec as submitted; `facts` are by source."""
    found: list[ModelProblem] = []
    for pool in spec.pools:
        largest = max(workload.concurrency for workload in pool.workloads)
        server = replace(spec.server, max_concurrency=largest)
        place = refusals_of_spec.in_pool(written, pool.name)
        for finding in findings(server, pool.arms, facts):
            path = f"spec.{finding.path}" if finding.arm is None else place(finding.arm, finding.path)
            text = f"{path}: {finding.problem}; {finding.why}; {finding.fix}"
            found.append(ModelProblem(text, finding.blocks, pool.name))
    return tuple(found)


def each_once(found: Iterable[ModelProblem]) -> tuple[tuple[str, bool], ...]:
    """Text, and whether it blocks; without duplicates, because pools may share a problem."""
    return tuple(dict.fromkeys((one.text, one.blocks) for one in found))
