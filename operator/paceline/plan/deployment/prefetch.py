"""The Job that downloads a deployment's models and datasets, what it has reported, and what status has kept of that."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from paceline.api.status import SpeculativeDeploymentStatus
from paceline.core import DeploymentSpec, ModelFacts
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL
from paceline.fetching import FetchResult, read_facts
from paceline.plan.deployment.pins import Commits, artifacts_of, datasets_of, key_of, models_of
from paceline.plan.objects import Object, condition, owned_by
from paceline.plan.pods import terminated
from paceline.render import Owner, fetch_name
from paceline.render.cache import fetch_inputs

JOB_NAME = "batch.kubernetes.io/job-name"


@dataclass(frozen=True, kw_only=True)
class Prefetch:
    """The prefetch of one spec. `namespace_jobs` and `namespace_pods` may be anyone's."""

    spec: DeploymentSpec
    owner: Owner
    status: SpeculativeDeploymentStatus
    namespace_jobs: tuple[Object, ...]
    namespace_pods: tuple[Object, ...]

    @cached_property
    def job(self) -> Object | None:
        """The Job of this very spec."""
        name = fetch_name(self.owner, self.spec.server, models_of(self.spec), datasets_of(self.spec))
        return next((job for job in self.namespace_jobs if job["metadata"]["name"] == name), None)

    @property
    def jobs(self) -> list[Object]:
        """Every prefetch of this deployment, those of older specs included."""
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
        """Name of a Job → the first message of its pods that can be read; each is decoded once."""
        reports = {name: _first_report(pods) for name, pods in self._pods.items()}
        return {name: report for name, report in reports.items() if report}

    @property
    def report(self) -> FetchResult | None:
        """The result of the Job of this spec, while its pod is there."""
        if self.job is None or condition(self.job, "Complete") is None:
            return None
        return self._reports.get(self.job["metadata"]["name"])

    @cached_property
    def inputs(self) -> str:
        """Hash of the models and their place, by which status keeps their commits."""
        return fetch_inputs(self.spec.server, models_of(self.spec))

    @property
    def recorded(self) -> Commits:
        """Commits from status that still apply. Models are pinned as a set, keyed by `modelsHash`; each dataset is
        pinned on its own, so changing one never resolves the other again."""
        same = self.status.models_hash == self.inputs
        found = (artifact for artifact in self.status.artifacts if artifact.is_dataset or same)
        return {key_of(artifact): artifact.commit for artifact in found}

    @cached_property
    def commits(self) -> Commits | None:
        """From the Job that has just ended, or from status; None while neither has all of them."""
        if report := self.report:
            return {key_of(artifact): artifact.commit for artifact in (*report.models, *report.datasets)}
        recorded = self.recorded
        return recorded if all(key_of(artifact) in recorded for artifact in artifacts_of(self.spec)) else None

    @cached_property
    def facts(self) -> Mapping[str, ModelFacts]:
        """Source → what a prefetch of these very models has read of them: from its Job, or from status once the Job is
        gone. Empty before either."""
        models = {key_of(model) for model in models_of(self.spec)}
        for report in (self._reports.get(job["metadata"]["name"]) for job in self.jobs):
            if report and models == {key_of(model) for model in report.models}:
                return report.facts
        recorded = [artifact for artifact in self.status.artifacts if not artifact.is_dataset]
        if models != {key_of(model) for model in recorded}:
            return {}
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
    """None for facts that this release does not believe."""
    with suppress(TypeError, ValueError):
        return read_facts(written)
    return None
