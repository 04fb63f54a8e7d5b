"""The models and datasets of a spec: their names, their known commits, and what a prefetch reported.

Each is pinned separately: another head does not resolve the target again.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from paceline.api.status import CachedArtifact, SpeculativeDeploymentStatus
from paceline.core import Arm, Dataset, DeploymentSpec, Draft, Model, ModelFacts, Scheme, Search, Workload
from paceline.core.manifest import Object
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL
from paceline.fetching import FetchedModel, FetchResult, read_facts
from paceline.plan.objects import condition, owned_by
from paceline.plan.trouble import terminated
from paceline.render import Owner, fetch_name

ArtifactKey = tuple[str, str]
"""Source and revision."""
Commits = Mapping[ArtifactKey, str]
COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_UNKNOWN = "0" * 40
"""Commit of a model or dataset that is not resolved yet."""
JOB_NAME = "batch.kubernetes.io/job-name"


def key_of(artifact: Model | Dataset | FetchedModel | CachedArtifact) -> ArtifactKey:
    return artifact.source, artifact.revision


def named_models(spec: DeploymentSpec) -> tuple[Model, ...]:
    """The target, then each head once."""
    heads = (arm.draft.model for pool in spec.pools for arm in pool.arms if arm.draft and arm.draft.model)
    return tuple(dict.fromkeys((spec.server.target, *heads)))


def models_of(spec: DeploymentSpec) -> tuple[Model, ...]:
    """Models that the prefetch downloads or finds on the volume; not those in images, which the kubelet pulls."""
    return tuple(model for model in named_models(spec) if not model.address.digest)


def datasets_of(spec: DeploymentSpec) -> tuple[Dataset, ...]:
    """The hub's datasets that pools are measured on, each file once."""
    used = (workload.dataset for pool in spec.pools for workload in pool.workloads if workload.dataset.of_the_hub)
    return tuple({key_of(dataset): dataset for dataset in used}.values())


def config_maps(spec: DeploymentSpec) -> tuple[str, ...]:
    """Names of the ConfigMaps with prompts of any pool."""
    sources = (workload.dataset.address for pool in spec.pools for workload in pool.workloads)
    return tuple(dict.fromkeys(source.name for source in sources if source.scheme is Scheme.CONFIG_MAP))


def artifacts_of(spec: DeploymentSpec) -> tuple[Model | Dataset, ...]:
    """All models and datasets with a commit."""
    return (*models_of(spec), *datasets_of(spec))


def pin(spec: DeploymentSpec, commits: Commits) -> DeploymentSpec:
    """The spec with each model and each dataset of the hub at its commit; at a placeholder if that is unknown."""

    def commit(unpinned: Model | Dataset) -> str:
        return commits.get(key_of(unpinned), _UNKNOWN)

    def model(unpinned: Model) -> Model:
        return replace(unpinned, commit=unpinned.address.digest or commit(unpinned))

    def draft(unpinned: Draft | None) -> Draft | None:
        if unpinned is None or unpinned.model is None:
            return unpinned
        return replace(unpinned, model=model(unpinned.model))

    def arm(unpinned: Arm) -> Arm:
        return replace(unpinned, draft=draft(unpinned.draft))

    def search(unpinned: Search | None) -> Search | None:
        if unpinned is None:
            return None
        return replace(unpinned, draft=draft(unpinned.draft) or unpinned.draft)

    def workload(unpinned: Workload) -> Workload:
        if not unpinned.dataset.of_the_hub:
            return unpinned
        return replace(unpinned, dataset=replace(unpinned.dataset, commit=commit(unpinned.dataset)))

    return replace(
        spec,
        server=replace(spec.server, target=model(spec.server.target)),
        pools=tuple(
            replace(
                pool,
                arms=tuple(map(arm, pool.arms)),
                search=search(pool.search),
                workloads=tuple(map(workload, pool.workloads)),
            )
            for pool in spec.pools
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Prefetch:
    """The prefetch of one spec. `namespace_jobs` and `namespace_pods` may include foreign ones."""

    spec: DeploymentSpec
    owner: Owner
    status: SpeculativeDeploymentStatus
    namespace_jobs: tuple[Object, ...]
    namespace_pods: tuple[Object, ...]

    @cached_property
    def job(self) -> Object | None:
        """The Job of exactly this spec."""
        name = fetch_name(self.owner, self.spec.server, models_of(self.spec), datasets_of(self.spec))
        return next((job for job in self.namespace_jobs if job["metadata"]["name"] == name), None)

    @cached_property
    def jobs(self) -> list[Object]:
        """Every prefetch of this deployment, including those of older specs."""
        return [
            job
            for job in self.namespace_jobs
            if job["metadata"].get("labels", {}).get(COMPONENT_LABEL) == "fetch" and owned_by(job, self.owner.uid)
        ]

    def pods(self, job: Object) -> list[Object]:
        return self._pods.get(job["metadata"]["name"], [])

    @cached_property
    def _pods(self) -> Mapping[str, list[Object]]:
        """Name of a Job → its pods."""
        pods: dict[str, list[Object]] = {}
        for pod in self.namespace_pods:
            labels = pod["metadata"].get("labels", {})
            if labels.get(DEPLOYMENT_LABEL) == self.owner.name and JOB_NAME in labels:
                pods.setdefault(labels[JOB_NAME], []).append(pod)
        return pods

    @cached_property
    def _reports(self) -> Mapping[str, FetchResult]:
        """Name of a Job → the first readable message of its pods; each is decoded once."""
        reports = {name: _first_report(pods) for name, pods in self._pods.items()}
        return {name: report for name, report in reports.items() if report}

    @cached_property
    def report(self) -> FetchResult | None:
        """The result of this spec's Job, while its pod exists."""
        if self.job is None or condition(self.job, "Complete") is None:
            return None
        return self._reports.get(self.job["metadata"]["name"])

    @cached_property
    def volume(self) -> str:
        """The claim or host path with models and datasets."""
        return self.spec.server.cache.claim or self.spec.server.cache.host_path or ""

    @cached_property
    def known(self) -> Commits:
        """Commits that were resolved once and are not resolved again, wherever the files are now."""
        named = {key_of(one): one.revision for one in artifacts_of(self.spec) if COMMIT.fullmatch(one.revision)}
        recorded = {key_of(artifact): artifact.commit for artifact in self.status.artifacts}
        return {**named, **recorded, **self._reported}

    @cached_property
    def missing(self) -> frozenset[ArtifactKey]:
        """Models and datasets that are not on the volume at a known commit."""
        here = self.status.artifacts if self.status.volume == self.volume else ()
        there = {*map(key_of, here), *self._reported}
        return frozenset(key_of(artifact) for artifact in artifacts_of(self.spec)) - there

    @cached_property
    def _reported(self) -> Commits:
        """Commits from the Job that has just ended."""
        report = self.report
        return {key_of(one): one.commit for one in (*report.models, *report.datasets)} if report else {}

    @cached_property
    def facts(self) -> Mapping[str, ModelFacts]:
        """Source → a prefetch's facts about a model: from the Job of exactly these models, or from status once the Job
        is gone."""
        models = {key_of(model) for model in models_of(self.spec)}
        for report in (self._reports.get(job["metadata"]["name"]) for job in self.jobs):
            if report and models == {key_of(model) for model in report.models}:
                return report.facts
        recorded = (artifact for artifact in self.status.artifacts if key_of(artifact) in models)
        facts = {model.source: _facts(model.facts) for model in recorded if model.facts}
        return {source: read for source, read in facts.items() if read}


def _first_report(pods: Iterable[Object]) -> FetchResult | None:
    return next((report for pod in pods if (report := _report(pod))), None)


def _report(pod: Object) -> FetchResult | None:
    ended = terminated(pod, "fetch")
    if ended and ended.get("exitCode") == 0:
        with suppress(ValueError):
            return FetchResult.from_message(ended.get("message", ""))
    return None


def _facts(written: Mapping[str, Any]) -> ModelFacts | None:
    """The facts in status; None if this release considers them invalid."""
    with suppress(TypeError, ValueError):
        return read_facts(written)
    return None
