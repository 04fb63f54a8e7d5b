"""A SpeculativeDeployment and its children at one moment, as gathered by the controller."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from paceline import api
from paceline.api.reasons import Reason
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import DeploymentSpec
from paceline.core.manifest import Object
from paceline.core.names import POOL_LABEL
from paceline.core.record import kept_status
from paceline.plan import objects
from paceline.plan.deployment.models import Prefetch
from paceline.plan.objects import condition
from paceline.plan.step import parse_time
from paceline.render import Owner, Settings
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Judgement


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """`manifest` includes the values of its profile, whose name is removed. `spec` is None if it is invalid; `invalid`
    is then the reason in words, and `refused` the reason of the condition Stalled.

    `children` are objects by kind (Job, Pod, Deployment, LeaderWorkerSet, Service, ControllerRevision, BenchmarkRun,
    PersistentVolumeClaim): objects with our label, and others under a name that we want. `absent`: kinds that the
    cluster does not have.
    """

    manifest: Object
    spec: DeploymentSpec | None
    invalid: str
    children: Mapping[str, tuple[Object, ...]]
    settings: Settings
    refused: Reason = Reason.InvalidSpec
    absent: frozenset[str] = frozenset()
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Uid of an object that waits without giving a reason → its last Warning Event."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Kind and name of an object that the last pass wrote → why the API server refused it."""
    imported: tuple[Object, ...] = ()
    """BenchmarkRuns of this namespace measured without a cluster, of any owner; none if the installation does not allow
    these."""
    config_maps: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Name of a ConfigMap with prompts → its keys; None if it does not exist. Absent if the operator may not read
    it."""
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    """Pool → judgement of its servers' counters. The judged revision may no longer be served. Message and numbers
    change constantly, so status is updated only when `since` changes."""

    @cached_property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @cached_property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @cached_property
    def generation(self) -> int:
        return int(self.manifest["metadata"].get("generation", 1))

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        return objects.annotations(self.manifest)

    @cached_property
    def status(self) -> SpeculativeDeploymentStatus:
        return kept_status(SpeculativeDeploymentStatus, self.manifest.get("status"))

    @cached_property
    def owner(self) -> Owner:
        return Owner(
            kind="SpeculativeDeployment",
            name=self.name,
            namespace=self.namespace,
            uid=self.manifest["metadata"]["uid"],
        )

    @cached_property
    def prefetch(self) -> Prefetch | None:
        """None if the spec is invalid."""
        if self.spec is None:
            return None
        jobs, pods = tuple(self.of("Job")), tuple(self.of("Pod"))
        return Prefetch(spec=self.spec, owner=self.owner, status=self.status, namespace_jobs=jobs, namespace_pods=pods)

    @cached_property
    def cached_since(self) -> datetime | None:
        """When the models were last found to be on the volume; None while they are not."""
        ready = condition(self.manifest, "CacheReady")
        return parse_time(ready["lastTransitionTime"]) if ready else None

    def of(self, kind: str) -> list[Object]:
        """Objects of this kind, sorted by name: a plan must not depend on the order of a list."""
        return self._sorted.get(kind, [])

    def child(self, kind: str, name: str) -> Object | None:
        return next((c for c in self.children.get(kind, ()) if c["metadata"]["name"] == name), None)

    def owned(self, kind: str, pool: str) -> list[Object]:
        """Our objects of this kind and pool."""
        return self._owned.get((kind, pool), [])

    @cached_property
    def _sorted(self) -> Mapping[str, list[Object]]:
        return {
            kind: sorted(found, key=lambda child: str(child["metadata"]["name"]))
            for kind, found in self.children.items()
        }

    @cached_property
    def _owned(self) -> Mapping[tuple[str, str], list[Object]]:
        """Our objects by kind and pool; "" for objects of no pool."""
        found: dict[tuple[str, str], list[Object]] = {}
        for kind, children in self._sorted.items():
            for child in children:
                if any(owner.get("uid") == self.owner.uid for owner in child["metadata"].get("ownerReferences", ())):
                    pool = (child["metadata"].get("labels") or {}).get(POOL_LABEL, "")
                    found.setdefault((kind, pool), []).append(child)
        return found

    def of_no_pool(self, kinds: Collection[str], pools: Collection[str]) -> list[Object]:
        """Our objects of these kinds that belong to none of these pools."""
        return [
            child
            for kind in kinds
            for (of, pool), children in self._owned.items()
            if of == kind and pool not in pools
            for child in children
        ]

    @cached_property
    def foreign(self) -> list[Object]:
        """Children that do not name us as their owner."""
        ours = {id(child) for children in self._owned.values() for child in children}
        return [child for kind in sorted(self._sorted) for child in self._sorted[kind] if id(child) not in ours]

    def imported_of(self, pool: str) -> list[Object]:
        """The pool's imported runs, by name."""
        found = (run for run in self.imported if run["spec"].get("pool") == pool)
        return sorted(found, key=lambda run: str(run["metadata"]["name"]))

    def revisions(self, pool: str) -> Mapping[str, Object]:
        """Revision → the ControllerRevision with its rendering. Does not count one that was edited by hand and lacks
        its label or rendering."""
        kept = [child for child in self.owned("ControllerRevision", pool) if _has_rendering(child.get("data"))]
        by_revision = {child["metadata"]["labels"].get(REVISION_LABEL): child for child in kept}
        return {revision: child for revision, child in by_revision.items() if revision}

    def remembered(self, pool: str) -> PoolStatus:
        """The pool's entry in status."""
        return next((entry for entry in self.status.pools if entry.name == pool), PoolStatus(name=pool))


SpecRead = tuple[dict[str, Any], DeploymentSpec | None, str, Reason]
"""The first fields of a snapshot: manifest, spec, invalid, refused."""


def read_deployment(manifest: dict[str, Any], profile: Object | None, settings: Settings) -> SpecRead:
    """Read a deployment, with the values of the profile that it names; `profile` is None if it does not exist."""
    required = not settings.profile_required.isdisjoint(("*", manifest["metadata"].get("namespace")))
    try:
        whole = api.with_profile(manifest, profile, required=required)
    except api.InvalidManifestError as error:
        return manifest, None, str(error), error.reason
    try:
        return whole, api.deployment(whole), "", Reason.InvalidSpec
    except api.InvalidManifestError as error:
        of = f" (with the values of BenchmarkProfile {api.profile_of(manifest)})" if whole is not manifest else ""
        return whole, None, f"{error}{of}", error.reason


def _has_rendering(data: Any) -> bool:
    """Whether the data has at least the containers of the servers' pods."""
    try:
        return bool([container["name"] for container in data["template"]["spec"]["containers"]])
    except (KeyError, TypeError):
        return False
