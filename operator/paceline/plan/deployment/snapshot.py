"""A SpeculativeDeployment and its children at one moment, as the controller gathered them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from paceline import api
from paceline.api.reasons import Reason
from paceline.api.record import kept_status
from paceline.api.status import PoolStatus, SpeculativeDeploymentStatus
from paceline.core import DeploymentSpec
from paceline.core.names import POOL_LABEL
from paceline.plan import objects
from paceline.plan.deployment.dropped import remembered
from paceline.plan.deployment.prefetch import Prefetch
from paceline.plan.objects import Object, condition, owned_by
from paceline.plan.step import parse_time
from paceline.render import Owner, Settings
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Judgement


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """`manifest` has the values of its profile, and names none. `spec` is None where it cannot be read; `invalid` then
    says why, as `refused` of the condition Stalled.

    `children` are objects by kind (Job, Pod, Deployment, LeaderWorkerSet, Service, ControllerRevision, BenchmarkRun,
    PersistentVolumeClaim): ours by label, and others under a name that we want. `absent` are kinds that the cluster
    does not know.
    """

    manifest: Object
    spec: DeploymentSpec | None
    invalid: str
    children: Mapping[str, tuple[Object, ...]]
    settings: Settings
    refused: Reason = Reason.InvalidSpec
    absent: frozenset[str] = frozenset()
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Uid of an object that waits without giving a reason → its last Warning among the Events."""
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Kind and name of an object that the last pass wrote → why the API server refused it."""
    elsewhere: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """NAMESPACE/RUN, of all namespaces → the nodes on which it measures, or on which its pool has lent it a server."""
    imported: tuple[Object, ...] = ()
    """BenchmarkRuns of this namespace that bring their rounds along, whoever owns them; none where the installation
    allows none."""
    config_maps: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Name of a ConfigMap with prompts → its keys; None if it does not exist. Those that the operator may not read are
    left out."""
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    """Pool → what its servers' counters show. Its revision may be one that the pool no longer serves; its message and
    numbers are of now, so what is written of it is written when `since` changes."""

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
        return objects.annotations(self.manifest)

    @cached_property
    def status(self) -> SpeculativeDeploymentStatus:
        return kept_status(SpeculativeDeploymentStatus, self.manifest.get("status"))

    @property
    def owner(self) -> Owner:
        return Owner(
            kind="SpeculativeDeployment",
            name=self.name,
            namespace=self.namespace,
            uid=self.manifest["metadata"]["uid"],
        )

    @cached_property
    def prefetch(self) -> Prefetch | None:
        """None where the spec cannot be read."""
        if self.spec is None:
            return None
        jobs, pods = tuple(self.of("Job")), tuple(self.of("Pod"))
        return Prefetch(spec=self.spec, owner=self.owner, status=self.status, namespace_jobs=jobs, namespace_pods=pods)

    @property
    def cached_since(self) -> datetime | None:
        """When the models were last found to be on the volume; None while they are not."""
        ready = condition(self.manifest, "CacheReady")
        return parse_time(ready["lastTransitionTime"]) if ready else None

    def of(self, kind: str) -> list[Object]:
        """Sorted by name: a plan must not depend on the order of a list."""
        return sorted(self.children.get(kind, ()), key=lambda child: str(child["metadata"]["name"]))

    def child(self, kind: str, name: str) -> Object | None:
        return next((c for c in self.children.get(kind, ()) if c["metadata"]["name"] == name), None)

    def owned(self, kind: str, pool: str) -> list[Object]:
        """Our objects of a pool."""
        return [
            child
            for child in self.of(kind)
            if child["metadata"].get("labels", {}).get(POOL_LABEL) == pool and owned_by(child, self.owner.uid)
        ]

    def imported_of(self, pool: str) -> list[Object]:
        """In the order of their names."""
        found = (run for run in self.imported if run["spec"].get("pool") == pool)
        return sorted(found, key=lambda run: str(run["metadata"]["name"]))

    def revisions(self, pool: str) -> Mapping[str, Object]:
        """Revision → the ControllerRevision that keeps its rendering. One that was edited by hand, and so lacks its
        label or its rendering, does not count."""
        kept = [child for child in self.owned("ControllerRevision", pool) if _has_rendering(child.get("data"))]
        by_revision = {child["metadata"]["labels"].get(REVISION_LABEL): child for child in kept}
        return {revision: child for revision, child in by_revision.items() if revision}

    def remembered(self, pool: str) -> PoolStatus:
        """The pool's entry of status."""
        return remembered(self.status, pool)


Read = tuple[dict[str, Any], DeploymentSpec | None, str, Reason]
"""The first fields of a snapshot: manifest, spec, invalid, refused."""


def read(manifest: dict[str, Any], profile: Object | None, settings: Settings) -> Read:
    """A deployment with the values of the profile that it names, None if there is none of that name."""
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
    """Whether it has at least the containers of the servers' pods."""
    try:
        return bool([container["name"] for container in data["template"]["spec"]["containers"]])
    except (KeyError, TypeError):
        return False
