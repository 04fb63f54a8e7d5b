"""ConfigMaps with prompts that are missing: found before a round takes accelerators."""

from collections.abc import Iterator

from paceline.core import DeploymentSpec
from paceline.plan.deployment.pool import Pool

CONFIG_MAP = "configMap://"


def config_maps(spec: DeploymentSpec) -> tuple[str, ...]:
    """Names of the ConfigMaps that any pool is measured with."""
    sources = (workload.dataset.source for pool in spec.pools for workload in pool.workloads)
    named = (source.removeprefix(CONFIG_MAP).partition("/")[0] for source in sources if source.startswith(CONFIG_MAP))
    return tuple(dict.fromkeys(named))


def missing(pool: Pool) -> tuple[str, ...]:
    """A sentence for each of the pool's datasets that is missing. ConfigMaps that may not be read count as present."""
    return tuple(dict.fromkeys(_missing(pool)))


def _missing(pool: Pool) -> Iterator[str]:
    written = (pool.snapshot.manifest["spec"].get("benchmark") or {}).get("datasets") or ()
    field = {dataset["name"]: f"spec.benchmark.datasets[{n}].source" for n, dataset in enumerate(written)}
    for dataset in (workload.dataset for workload in pool.spec.workloads):
        name, _, key = dataset.source.removeprefix(CONFIG_MAP).partition("/")
        if not dataset.source.startswith(CONFIG_MAP) or name not in pool.snapshot.config_maps:
            continue
        keys = pool.snapshot.config_maps[name]
        place = field.get(dataset.name, "spec.benchmark.datasets")
        if keys is None:
            yield f"{place}: there is no ConfigMap {name} in namespace {pool.snapshot.namespace}"
        elif key not in keys:
            yield f"{place}: ConfigMap {name} has no key {key}; it has {', '.join(sorted(keys)) or 'none'}"
