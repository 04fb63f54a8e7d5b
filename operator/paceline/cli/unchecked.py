"""Notes about what `paceline validate` cannot check in a valid file; none of them blocks."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.api import Problem
from paceline.core import Arm, DeploymentSpec, RunSpec, by_server
from paceline.engines import ENGINES, known_problems
from paceline.plan.run.steps.check import unpinned

NVIDIA_LABEL = "nvidia.com/gpu.product"
BEGINNINGS = ("NVIDIA-", "Tesla-", "GRID-", "Quadro-")
"""Beginnings of the label's values: the driver's name of a card, with hyphens."""


def unchecked(spec: DeploymentSpec | RunSpec, with_models: bool) -> Iterator[Problem]:
    """`with_models`: whether the models' files are also checked."""
    engine, accelerator = spec.server.engine, spec.server.accelerator
    servers = [server for server, _ in by_server(spec.server, _arms(spec))]
    for own in {(one.engine.type, one.engine.version): one.engine for one in servers}.values():
        if not ENGINES[own.type].reads(own.version):
            newest = f"{own.type} {ENGINES[own.type].newest}"
            yield _note("spec.engine.version", f"{own.version} is not known: flags are checked as {newest} knows them")
    if NVIDIA_LABEL in accelerator.node_labels and not accelerator.product.startswith(BEGINNINGS):
        yield _note(
            "spec.accelerator.product",
            f"{accelerator.product} is not a name that GPU feature discovery gives the label {NVIDIA_LABEL}; its "
            f"names are like {_like(accelerator.product)}, and pods stay Pending until a node has the label as "
            "written",
        )
    ignored = dict.fromkeys(one for server in servers for one in ENGINES[server.engine.type].ignored(server))
    yield from (_note(f"spec.{path}", message) for path, message in ignored)
    if isinstance(spec, RunSpec):
        yield from (_note("", f"{message}; until then it is Stalled") for _, message in unpinned(spec))
    if engine.pod_template:
        yield _note(
            "spec.engine.podTemplate",
            "only what Paceline reads of it is checked; the API server checks it all: "
            "paceline render FILE | kubectl apply --dry-run=server -f -",
        )
    yield from (_note("", f"known problem, {known}") for known in known_of(spec))
    if not with_models and isinstance(spec, DeploymentSpec):
        parallel = accelerator.tensor_parallel_size
        divides = f", and whether its heads divide by {parallel} (tensor parallelism)" if parallel > 1 else ""
        yield _note(
            "",
            f"not checked without --models DIR: whether heads fit the target and everything fits in memory{divides}",
        )


def unnamed(written: Mapping[str, Any]) -> Iterator[Problem]:
    """Items that a deployment lists and no pool measures."""
    pools, why = written["pools"], "it is neither measured nor checked"
    for i, candidate in enumerate(written.get("candidates", ())):
        if not any(candidate["name"] in pool.get("candidates", [candidate["name"]]) for pool in pools):
            yield _note(f"spec.candidates[{i}]", f"no pool names {candidate['name']}: {why}")
    loads = [load for pool in pools for load in pool["load"]]
    for i, dataset in enumerate(written.get("benchmark", {}).get("datasets", ())):
        if not any(dataset["name"] in load.get("datasets", [dataset["name"]]) for load in loads):
            yield _note(f"spec.benchmark.datasets[{i}]", f"no load names {dataset['name']}: {why}")


def known_of(spec: DeploymentSpec | RunSpec) -> Iterator[str]:
    """Reported problems of this release with such drafts."""
    for server, arms in by_server(spec.server, _arms(spec)):
        yield from known_problems.found(ENGINES[server.engine.type].known_problems, server, arms)


def _arms(spec: DeploymentSpec | RunSpec) -> Iterator[Arm]:
    yield from spec.arms if isinstance(spec, RunSpec) else (arm for pool in spec.pools for arm in pool.arms)


_LABELS = {
    "H100": "NVIDIA-H100-80GB-HBM3",
    "H200": "NVIDIA-H200",
    "A100": "NVIDIA-A100-SXM4-80GB",
    "L40S": "NVIDIA-L40S",
    "B200": "NVIDIA-B200",
}


def _like(product: str) -> str:
    return next((label for card, label in _LABELS.items() if card in product.upper()), _LABELS["H100"])


def _note(path: str, message: str) -> Problem:
    return Problem(path=path, message=message, note=True)
