"""ConfigMaps with prompts that are missing: found before a round takes accelerators."""

from collections.abc import Iterator

from paceline.core import DeploymentSpec, Scheme
from paceline.plan.deployment.pool import Pool


def config_maps(spec: DeploymentSpec) -> tuple[str, ...]:
    """Names of the ConfigMaps that any pool is measured with."""
    sources = (workload.dataset.address for pool in spec.pools for workload in pool.workloads)
    return tuple(dict.fromkeys(source.name for source in sources if source.scheme is Scheme.CONFIG_MAP))


def missing(pool: Pool) -> tuple[str, ...]:
    """A sentence for each of the pool's datasets that is missing. ConfigMaps that may not be read count as present."""
    return tuple(dict.fromkeys(_missing(pool)))


def _missing(pool: Pool) -> Iterator[str]:
    written = (pool.snapshot.manifest["spec"].get("benchmark") or {}).get("datasets") or ()
    field = {dataset["name"]: f"spec.benchmark.datasets[{n}].source" for n, dataset in enumerate(written)}
    for dataset in (workload.dataset for workload in pool.spec.workloads):
        source = dataset.address
        name, key = source.name, source.path
        if source.scheme is not Scheme.CONFIG_MAP or name not in pool.snapshot.config_maps:
            continue
        keys = pool.snapshot.config_maps[name]
        place = field.get(dataset.name, "spec.benchmark.datasets")
        if keys is None:
            yield f"{place}: there is no ConfigMap {name} in namespace {pool.snapshot.namespace}"
        elif key not in keys:
            yield f"{place}: ConfigMap {name} has no key {key}; it has {', '.join(sorted(keys)) or 'none'}"
