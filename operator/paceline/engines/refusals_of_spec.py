"""Refusals of a whole spec, with their paths in the manifest."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paceline.core import INCUMBENT, Arm, DeploymentSpec, PoolSettings, RunSpec, Server, Workload, by_server
from paceline.core.kept import by_value
from paceline.engines import (
    ENGINES,
    engines_with,
    load_rules,
    lora,
    nodes,
    pod_template,
    request_rules,
    simulated,
)
from paceline.engines.grid import shared_refusals
from paceline.engines.refusal import Refusal

Locate = Callable[[str, str], str]
"""An arm's name and a path below the arm → the path in the manifest."""


@by_value(256)
def refused(spec: DeploymentSpec | RunSpec, written: Mapping[str, Any]) -> tuple[Refusal, ...]:
    """All refusals of engine, pod template and nodes, without duplicates and with complete paths; `written` is the
    manifest's spec as the user wrote it."""
    if (engine := spec.server.engine.type) not in ENGINES:
        message = f"{engine} is not served yet; known: {', '.join(ENGINES)}"
        return (Refusal(rule="engine-known", path="spec.engine.type", message=message),)
    if isinstance(spec, RunSpec):
        place = in_run(spec.arms)
        arms = tuple(arm for arm in spec.arms if arm.name != INCUMBENT)  # that one serves already
        return (
            *_placed(spec.server, arms, place),
            *_shared(spec.server, spec.workloads),
            *_of_own(spec.server, arms, spec.workloads, place),
            *_of_workloads(spec),
            *nodes.never_measured(spec),
        )
    pools = (_of_pool(spec.server, pool, written) for pool in spec.pools)
    loads = [workload for pool in spec.pools for workload in pool.workloads]
    refusals = (
        *(refusal for pool_refusals in pools for refusal in pool_refusals),
        *_shared(spec.server, loads),
        *_of_datasets(spec, written),
        *_of_pickers(spec),
        *nodes.never_served(spec),
    )
    return tuple(dict.fromkeys(refusals))


def in_pool(written: Mapping[str, Any], pool: str) -> Locate:
    """Paths of a pool's arms in a SpeculativeDeployment. Arms of a search and candidates without a draft get the path
    of the spec's draft."""
    entries = _entries(written, pool)
    candidates = {
        candidate["name"]: (f"spec.candidates[{i}]", "draft" in candidate)
        for i, candidate in enumerate(written.get("candidates", ()))
    }
    searched = next((f"spec.pools[{i}].search" for i, entry in entries if "search" in entry), "")

    def place(arm: str, below: str) -> str:
        path, has_draft = candidates.get(arm, (searched or "spec.candidates", False))
        return f"spec.{below}" if below.startswith("draft") and not has_draft else f"{path}.{below}"

    return place


def _of_pool(server: Server, pool: PoolSettings, written: Mapping[str, Any]) -> Iterator[Refusal]:
    """A search omits single arms that the engine refuses; the user must change what it refuses for all arms, or for a
    named candidate."""
    place = in_pool(written, pool.name)
    if pool.search is None:
        yield from _placed(server, pool.arms, place)
        yield from _of_own(server, pool.arms, pool.workloads, place)
        return
    ((number, entry),) = _entries(written, pool.name)
    every = [candidate["name"] for candidate in written.get("candidates", ())]
    names = set(entry.get("candidates", every))
    named = tuple(arm for arm in pool.arms if arm.draft is None or arm.name in names)
    yield from _placed(server, named, place)
    for refusal in shared_refusals(server, pool.arms[1:]):
        yield replace(refusal, path=f"spec.{refusal.path}")
    if not any(arm.tree and arm.tree in pool.search for arm in pool.arms):
        yield Refusal(
            rule="search-finds-trees",
            path=f"spec.pools[{number}].search",
            message=f"with these arguments, {server.engine.type} {server.engine.version} cannot run any tree in these "
            "ranges: a chain (topK 1) needs numDraftTokens = numSteps + 1, a branching tree at least numSteps + 2",
        )


def _entries(written: Mapping[str, Any], pool: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The pool as the user wrote it, with its index; at most one, because names are unique."""
    return [(i, entry) for i, entry in enumerate(written.get("pools", ())) if entry["name"] == pool]


def in_run(arms: Sequence[Arm]) -> Locate:
    """Paths of the arms of a BenchmarkRun."""
    index = {arm.name: i for i, arm in enumerate(arms)}
    return lambda arm, below: f"spec.arms[{index[arm]}].{below}"


def _shared(server: Server, workloads: Sequence[Workload]) -> Iterator[Refusal]:
    """Refusals for the loads of all pools, and for the environment of all arms."""
    for refusal in _of_loads(server, workloads):
        yield Refusal(rule=refusal.rule, path=f"spec.{refusal.path}", message=refusal.message)


def _of_own(shared: Server, arms: Sequence[Arm], workloads: Sequence[Workload], place: Locate) -> Iterator[Refusal]:
    """The same for arms with an engine of their own."""
    template = {name for _, name in simulated.of_the_template(shared)}
    for server, (arm,) in by_server(shared, arms)[1:]:
        for name in (str(one["name"]) for one in server.engine.env if one not in shared.engine.env):
            if name in template:
                message = f"{name} is set in spec.engine.podTemplate, which wins: take it out there"
                yield Refusal(rule="own-variable", path=place(arm.name, "engine.env"), message=message)
        for refusal in _of_loads(server, workloads):
            yield replace(refusal, path=_path_of_own(shared, arm, refusal.path, place))


def _of_loads(server: Server, workloads: Sequence[Workload]) -> tuple[Refusal, ...]:
    adapter = ENGINES[server.engine.type]
    return (
        *simulated.refusals(server),
        *load_rules.refusals(adapter, server, workloads),
        *lora.refusals(adapter, server, workloads),
    )


def _path_of_own(shared: Server, arm: Arm, path: str, place: Locate) -> str:
    """Where a person mends an arm's own engine: its own arguments by their index; else the engine as a whole, because
    what is written there is merged with what is written for all."""
    assert arm.engine
    if path.startswith("engine.args[") and arm.engine.args == shared.engine.args:
        return place(arm.name, "engine.args")
    if path.startswith("engine.env["):
        return place(arm.name, "engine.env")
    own = path.startswith(("engine.args", "engine.type", "engine.version"))
    return place(arm.name, path) if own else f"spec.{path}"


def _of_workloads(spec: RunSpec) -> Iterator[Refusal]:
    for load, found in _requests(spec.server, spec.arms, spec.workloads):
        yield replace(found, path=f"spec.workloads[{spec.workloads.index(load)}].{found.path}")


def _requests(server: Server, arms: Sequence[Arm], loads: Sequence[Workload]) -> Iterator[tuple[Workload, Refusal]]:
    for own, group in by_server(server, arms):
        yield from request_rules.refusals(ENGINES[own.engine.type], group, loads)


def _of_pickers(spec: DeploymentSpec) -> Iterator[Refusal]:
    """An InferencePool has one port for all of its servers, also while those of one engine replace another's."""
    for n, pool in enumerate(spec.pools):
        servers = (server for server, arms in by_server(spec.server, pool.arms) if arms)
        ports = {server.engine.type: ENGINES[server.engine.type].port for server in servers}
        if pool.endpoint_picker_ref and len({*ports.values()}) > 1:
            listen = " and ".join(f"{engine} at {port}" for engine, port in ports.items())
            message = f"knows one port, but {listen} listen: leave it out, or name candidates of one engine"
            yield Refusal(rule="picker-port", path=f"spec.pools[{n}].endpointPickerRef", message=message)


def _of_datasets(spec: DeploymentSpec, written: Mapping[str, Any]) -> Iterator[Refusal]:
    """A default dataset, which the user did not write, is never refused."""
    names = [one["name"] for one in written.get("benchmark", {}).get("datasets", ())]
    for pool in spec.pools:
        for load, found in _requests(spec.server, pool.arms, pool.workloads):
            yield replace(found, path=f"spec.benchmark.datasets[{names.index(load.dataset.name)}].{found.path}")


def _placed(shared: Server, arms: tuple[Arm, ...], place: Locate) -> Iterator[Refusal]:
    able = engines_with(lambda capabilities: capabilities.several_nodes)
    for server, group in by_server(shared, arms):
        adapter = ENGINES[server.engine.type]
        for refusal in (
            *adapter.refusals(server, group),
            *adapter.parallel(server),
            *nodes.refusals(server, able),
            *pod_template.refusals(server, adapter),
        ):
            if refusal.arm is not None:
                path = place(refusal.arm, refusal.path)
            elif server is shared or refusal.path.startswith("engine.podTemplate"):
                path = f"spec.{refusal.path}"
            else:
                path = _path_of_own(shared, group[0], refusal.path, place)
            yield Refusal(rule=refusal.rule, path=path, message=refusal.message)
