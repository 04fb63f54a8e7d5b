"""The files with a run's prompts, in the client's container. The server cannot see them."""

from collections.abc import Iterator

from paceline.core import Dataset, RunSpec, Scheme
from paceline.core.manifest import Manifest
from paceline.core.names import MODELS, snapshot_path

_PROMPTS = "/prompts"


def prompt_files(run: RunSpec) -> dict[str, str]:
    """Dataset → its file in the client's container; built-in sets have none."""
    return {
        **{dataset.name: _on_the_cache(dataset) for dataset in _datasets(run) if dataset.of_the_hub},
        **{
            dataset.name: f"{MODELS if _in_the_cache(run, dataset) else _mount(run, dataset)}/{dataset.address.path}"
            for dataset in _files(run)
        },
    }


def prompt_volumes(run: RunSpec) -> list[Manifest]:
    """One volume per ConfigMap or claim. A claim that is mounted already, as the cache or for another dataset, is not
    mounted again: two volumes of one claim can block each other in a pod."""
    return [
        {"name": _volume(dataset), "configMap": _config_map(dataset)}
        if dataset.address.scheme is Scheme.CONFIG_MAP
        else {
            "name": _volume(dataset),
            "persistentVolumeClaim": {"claimName": dataset.address.name, "readOnly": True},
        }
        for dataset in _mounted(run)
    ]


def prompt_mounts(run: RunSpec) -> list[Manifest]:
    return [
        {"name": _volume(dataset), "mountPath": _mount(run, dataset), "readOnly": True} for dataset in _mounted(run)
    ]


def _config_map(dataset: Dataset) -> Manifest:
    """The volume is optional: otherwise a pod whose ConfigMap is missing would wait forever and hold its accelerators.
    The client reports the missing file."""
    key = dataset.address.path
    return {"name": dataset.address.name, "items": [{"key": key, "path": key}], "optional": True}


def _on_the_cache(dataset: Dataset) -> str:
    """A file that the prefetch downloaded. The volume is mounted for the models anyway."""
    assert dataset.commit, "a run is made after the prefetch has pinned its commits"
    return snapshot_path(dataset.source, dataset.commit)


def _datasets(run: RunSpec) -> tuple[Dataset, ...]:
    """The datasets without duplicates, because a dataset may be measured at several concurrencies."""
    return tuple({workload.dataset.name: workload.dataset for workload in run.workloads}.values())


def _files(run: RunSpec) -> tuple[Dataset, ...]:
    """The datasets in a ConfigMap or on a claim."""
    return tuple(one for one in _datasets(run) if one.address.scheme in (Scheme.CONFIG_MAP, Scheme.CLAIM))


def _mounted(run: RunSpec) -> Iterator[Dataset]:
    """The datasets that need their own volume."""
    for dataset in _files(run):
        if not _in_the_cache(run, dataset) and _first(run, dataset) is dataset:
            yield dataset


def _in_the_cache(run: RunSpec, dataset: Dataset) -> bool:
    return dataset.address.scheme is Scheme.CLAIM and dataset.address.name == run.server.cache.claim


def _first(run: RunSpec, dataset: Dataset) -> Dataset:
    """The first dataset on the same claim, whose volume the others share; each ConfigMap dataset has its own mount."""
    source = dataset.address
    if source.scheme is Scheme.CONFIG_MAP:
        return dataset
    return next(one for one in _files(run) if (one.address.scheme, one.address.name) == (source.scheme, source.name))


def _mount(run: RunSpec, dataset: Dataset) -> str:
    return f"{_PROMPTS}/{_first(run, dataset).name}"


def _volume(dataset: Dataset) -> str:
    return f"paceline-prompts-{dataset.name}"
