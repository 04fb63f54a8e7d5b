"""The question of a file: a pool at its commits as the BenchmarkRun that the operator would make, or a BenchmarkRun
unchanged. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline import api
from paceline.core import BASELINE, Arm, Dataset, DeploymentSpec, Model, ModelFacts, RunSpec, Scheme, Server
from paceline.core.manifest import Manifest, Object
from paceline.core.names import child_name, snapshot_path
from paceline.engines.nodes import unmeasurable
from paceline.evidence import fingerprint
from paceline.plan.deployment import Snapshot
from paceline.plan.deployment.checks import each_once, model_problems
from paceline.plan.deployment.models import pin
from paceline.plan.deployment.pool import pools
from paceline.plan.deployment.runs import Run
from paceline.render import Settings
from paceline.render import benchmark_run as owned_run
from paceline.render.common import API_VERSION

_RUN = "BenchmarkRun"
IN_MEMORY = {"namespace": "default", "uid": "not-in-a-cluster"}
"""Metadata of an object that is in no API server."""
LOCAL_SETTINGS = Settings(image="paceline")


class QuestionError(ValueError):
    """The file has nothing to measure; the text names the field and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQuestion:
    """One pool of a SpeculativeDeployment, with the other pools removed from its manifest; or a BenchmarkRun."""

    manifest: Object
    spec: DeploymentSpec | RunSpec

    @property
    def server(self) -> Server:
        return self.spec.server

    @property
    def searches(self) -> bool:
        """Whether the question takes two runs: a search, and then a gate about the search's result."""
        return isinstance(self.spec, DeploymentSpec) and self.spec.pools[0].search is not None

    @property
    def models(self) -> tuple[Model, ...]:
        """The target, then each head once."""
        heads = (arm.draft.model for arm in self.arms if arm.draft and arm.draft.model)
        return tuple(dict.fromkeys((self.server.target, *heads)))

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Datasets that are not built in, each once."""
        others = (one for one in self._datasets if one.address.scheme is not Scheme.BUILTIN)
        return tuple({one.name: one for one in others}.values())

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.spec.arms if isinstance(self.spec, RunSpec) else self.spec.pools[0].arms

    @property
    def _datasets(self) -> tuple[Dataset, ...]:
        workloads = self.spec.workloads if isinstance(self.spec, RunSpec) else self.spec.pools[0].workloads
        return tuple(workload.dataset for workload in workloads)


def asked(manifest: Object, pool: str | None) -> PoolQuestion:
    """The question in the manifest. Raises QuestionError."""
    if manifest["kind"] == _RUN:
        spec = api.run(manifest)
        if pool not in (None, spec.pool):
            raise QuestionError(f"--pool: the run is of {spec.pool}, not of {pool}")
        return _measurable(PoolQuestion(manifest=manifest, spec=spec))
    names = [one["name"] for one in manifest["spec"]["pools"]]
    if pool is None and len(names) > 1:
        raise QuestionError(f"--pool: name one of {', '.join(names)}; each is a run of its own")
    chosen = [one for one in manifest["spec"]["pools"] if pool in (None, one["name"])]
    if not chosen:
        raise QuestionError(f"--pool: there is no {pool}; there are {', '.join(names)}")
    alone = {**manifest, "spec": {**manifest["spec"], "pools": chosen}}
    return _measurable(PoolQuestion(manifest=alone, spec=api.deployment(alone)))


def _measurable(question: PoolQuestion) -> PoolQuestion:
    if why := unmeasurable(question.server):
        raise QuestionError(f"spec.{why}")
    return question


def found_wrong(question: PoolQuestion, facts: Mapping[str, ModelFacts]) -> tuple[tuple[str, bool], ...]:
    """Preflight's findings in a pool's models, each with whether it keeps the operator from measuring the pool."""
    if isinstance(question.spec, RunSpec):
        return ()
    return each_once(model_problems(question.spec, question.manifest["spec"], facts))


def run_to_measure(
    question: PoolQuestion, commits: Mapping[tuple[str, str], str], now: datetime, search: Object | None = None
) -> Manifest:
    """The run that answers the question, without a status. A pool's run has the spec that the operator would write, and
    `now` in its name, because the cluster may have another one of another day. For a pool with a search it is the
    search and, once `search` has found a candidate, the gate about that candidate."""
    metadata = question.manifest["metadata"]
    if isinstance(question.spec, RunSpec):
        return _run(str(metadata["name"]), question.manifest["spec"])
    manifest = {**question.manifest, "metadata": {**IN_MEMORY, **metadata}}
    snapshot = Snapshot(manifest=manifest, spec=question.spec, invalid="", children={}, settings=LOCAL_SETTINGS)
    if search:
        kept = owned_run(snapshot.owner, question.spec.pools[0].name, search["metadata"]["name"], search["spec"], {})
        snapshot = replace(snapshot, children={_RUN: (kept | {"status": search["status"]},)})
    (view,) = pools(snapshot, pin(question.spec, commits), now)
    if all(name == BASELINE for name in view.arms):
        raise QuestionError(f"spec.pools: {view.name} has no candidates: there is nothing to compare")
    spec = api.run_manifest_spec(view.run_spec)
    return _run(child_name(metadata["name"], view.name, fingerprint(spec), f"{now:%Y%m%d-%H%M}"), spec)


def found_by(search: Object) -> str:
    """The candidate that a search found; "" if it found none or is still running."""
    return Run(manifest=search).found


def _run(name: str, spec: Mapping[str, Any]) -> Manifest:
    """The run without rounds measured before. The operator gives its own runs other names."""
    asked = {key: value for key, value in spec.items() if key != "measured"}
    return {"apiVersion": API_VERSION, "kind": _RUN, "metadata": {"name": name}, "spec": asked}


def paths(
    question: PoolQuestion, commits: Mapping[tuple[str, str], str], places: Mapping[tuple[str, str], Path]
) -> dict[str, str]:
    """A model's path in a round's pod → its local path."""
    return {
        snapshot_path(model.source, commits[model.source, model.revision]): str(places[model.source, model.revision])
        for model in question.models
    }
