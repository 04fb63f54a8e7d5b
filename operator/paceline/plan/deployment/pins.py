"""Which models and datasets a spec names, and the spec with each of them at a commit."""

from collections.abc import Mapping
from dataclasses import replace

from paceline.api.status import Artifact
from paceline.core import Arm, Dataset, DeploymentSpec, Draft, Model, Search, Workload
from paceline.fetching import FetchedModel

Key = tuple[str, str]
"""Source and revision."""
Commits = Mapping[Key, str]


def key_of(artifact: Model | Dataset | FetchedModel | Artifact) -> Key:
    return artifact.source, artifact.revision


def named_models(spec: DeploymentSpec) -> tuple[Model, ...]:
    """The target, then each head once."""
    heads = (arm.draft.model for pool in spec.pools for arm in pool.arms if arm.draft and arm.draft.model)
    return tuple(dict.fromkeys((spec.server.target, *heads)))


def models_of(spec: DeploymentSpec) -> tuple[Model, ...]:
    """Those that the prefetch brings, or finds on the volume: not those of images, which the kubelet brings."""
    return tuple(model for model in named_models(spec) if not model.address.digest)


def datasets_of(spec: DeploymentSpec) -> tuple[Dataset, ...]:
    """The hub's datasets that a pool is measured on, each file once."""
    used = (workload.dataset for pool in spec.pools for workload in pool.workloads if workload.dataset.of_the_hub)
    return tuple({key_of(dataset): dataset for dataset in used}.values())


def artifacts_of(spec: DeploymentSpec) -> tuple[Model | Dataset, ...]:
    """Everything that gets a commit."""
    return (*models_of(spec), *datasets_of(spec))


def pin(spec: DeploymentSpec, commits: Commits) -> DeploymentSpec:
    """The spec with each model and each dataset of the hub at its commit."""

    def model(unpinned: Model) -> Model:
        return replace(unpinned, commit=unpinned.address.digest or commits[key_of(unpinned)])

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
        return replace(unpinned, dataset=replace(unpinned.dataset, commit=commits[key_of(unpinned.dataset)]))

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
