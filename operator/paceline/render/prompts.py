"""The files with a run's prompts, where the client of its rounds finds them. The server does not see them."""

from collections.abc import Iterator

from paceline.core import Dataset, RunSpec
from paceline.core.names import MODELS, snapshot_path
from paceline.render.common import Manifest

PROMPTS = "/prompts"
CONFIG_MAP = "configMap://"
CLAIM = "pvc://"


def prompt_files(run: RunSpec) -> dict[str, str]:
    """Dataset → its file in the client's container; built-in sets have none."""
    return {
        **{dataset.name: _on_the_cache(dataset) for dataset in _datasets(run) if dataset.of_the_hub},
        **{
            dataset.name: f"{MODELS if _in_the_cache(run, dataset) else _mount(run, dataset)}/{_path(dataset)}"
            for dataset in _files(run)
        },
    }


def prompt_volumes(run: RunSpec) -> list[Manifest]:
    """A claim that is mounted already, as the cache or for another dataset, is not mounted again: two volumes of one
    claim in a pod can keep each other from being mounted."""
    return [
        {"name": _volume(dataset), "configMap": _config_map(dataset)}
        if dataset.source.startswith(CONFIG_MAP)
        else {"name": _volume(dataset), "persistentVolumeClaim": {"claimName": _of(dataset), "readOnly": True}}
        for dataset in _mounted(run)
    ]


def prompt_mounts(run: RunSpec) -> list[Manifest]:
    return [
        {"name": _volume(dataset), "mountPath": _mount(run, dataset), "readOnly": True} for dataset in _mounted(run)
    ]


def _config_map(dataset: Dataset) -> Manifest:
    """Optional, or a pod that misses it would wait for ever and hold its accelerators; the client says that it is
    not there."""
    key = _path(dataset)
    return {"name": _of(dataset), "items": [{"key": key, "path": key}], "optional": True}


def _on_the_cache(dataset: Dataset) -> str:
    """What the prefetch brought: the volume is mounted for the models anyway."""
    assert dataset.commit, "a run is made after the prefetch has pinned its commits"
    return snapshot_path(dataset.source, dataset.commit)


def _datasets(run: RunSpec) -> tuple[Dataset, ...]:
    """One of each name: a dataset is measured at several concurrencies."""
    return tuple({workload.dataset.name: workload.dataset for workload in run.workloads}.values())


def _files(run: RunSpec) -> tuple[Dataset, ...]:
    """Of a ConfigMap or a claim."""
    return tuple(one for one in _datasets(run) if one.source.startswith((CONFIG_MAP, CLAIM)))


def _mounted(run: RunSpec) -> Iterator[Dataset]:
    """The datasets that bring a volume."""
    for dataset in _files(run):
        if not _in_the_cache(run, dataset) and _first(run, dataset) is dataset:
            yield dataset


def _in_the_cache(run: RunSpec, dataset: Dataset) -> bool:
    return dataset.source.startswith(f"{CLAIM}{run.server.cache.claim}/")


def _first(run: RunSpec, dataset: Dataset) -> Dataset:
    """Of the datasets on the same claim."""
    if dataset.source.startswith(CONFIG_MAP):
        return dataset
    return next(one for one in _files(run) if one.source.startswith(f"{CLAIM}{_of(dataset)}/"))


def _mount(run: RunSpec, dataset: Dataset) -> str:
    return f"{PROMPTS}/{_first(run, dataset).name}"


def _volume(dataset: Dataset) -> str:
    return f"paceline-prompts-{dataset.name}"


def _of(dataset: Dataset) -> str:
    """The ConfigMap or claim."""
    return dataset.source.partition("://")[2].partition("/")[0]


def _path(dataset: Dataset) -> str:
    return dataset.source.partition("://")[2].partition("/")[2]
