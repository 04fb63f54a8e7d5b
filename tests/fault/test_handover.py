"""A Deployment that fills the cluster hands its GPUs over to an imported resource, as docs/migration.md says."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support.migration import CASES

from paceline.cli.importing.resource import Options, imported
from paceline.controller.kinds import BENCHMARK_RUN
from paceline.kube import Manifest, Ref
from paceline.kube.resources import DEPLOYMENT, JOB, POD

OLD = Ref(DEPLOYMENT, NAMESPACE, "old")
APP = {"app": "qwen3-coder-next"}
"""The selector of the old Service: the Deployment's pods had it, and the imported resource's have it, too."""
LOADS = 300.0
"""Seconds until a server is ready."""
TICK = 15.0
MOMENT = 2 * TICK
"""Seconds that a reconcile, a scheduler and kubelets take together, at most, in this world."""


def old(replicas: int) -> Manifest:
    """Four GPUs a server, on nodes that have four."""
    found = CASES[4].deployment
    template, selector = found["spec"]["template"], found["spec"]["template"]["spec"]["nodeSelector"]
    template["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": selector["nvidia.com/gpu.product"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template}
    metadata = {"name": OLD.name, "namespace": NAMESPACE}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def serving(world: World, replicas: int, nodes: int) -> int:
    """The Deployment has that many nodes for itself, and the imported resource was applied. Returns where the history
    of what follows begins."""
    for ref in [Ref(world.cluster.kinds["v1", "Node"], "", f"gpu-{n}") for n in range(nodes, 4)]:
        world.cluster.delete(ref)
    world.nature.ready = lambda pod: (world.now() - world.nature.started[pod["metadata"]["uid"]]).seconds >= LOADS
    world.nature.truths = {"latency": {"baseline": {"chat": 100.0}, "current": {"chat": 140.0}}}
    world.apply(old(replicas))
    await world.settle()
    assert answering(world) == replicas
    begun = len(list(history(world)))
    world.operate()
    manifest = imported(old(replicas), Options(name=NAME, pool="latency")).manifest
    manifest["spec"]["benchmark"] = {
        "datasets": [{"name": "chat", "source": "builtin://chat"}],
    }
    manifest["spec"]["gate"] = {"decideAfterRounds": [2]}
    manifest["spec"]["pools"][0]["load"] = [{"concurrency": [1]}]
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world.apply(manifest)
    await world.settle()
    return begun


def answering(world: World) -> int:
    """Pods that the Service sends requests to."""
    return sum(map(is_ready, world.cluster.peek(POD)))


def is_ready(pod: Manifest) -> bool:
    conditions = {one["type"]: one["status"] for one in pod.get("status", {}).get("conditions", ())}
    labels = pod["metadata"].get("labels", {})
    return APP.items() <= labels.items() and conditions.get("Ready") == "True"


def history(world: World) -> Iterator[int]:
    """How many answered, after each change of a pod."""
    ready: dict[str, bool] = {}
    for change in world.cluster.changes:
        if change.ref.resource == POD:
            ready[change.ref.name] = change.new is not None and is_ready(change.new)
            yield sum(ready.values())


def scaled(world: World, replicas: int) -> None:
    world.apply(old(replicas))


def hand_over(world: World, replicas: int) -> None:
    world.edit(lambda spec: spec["pools"][0].update(replicas=replicas))


def told(story: Callable[[World], Awaitable[None]]) -> None:
    """The kubelets ask every now and then whether a server is ready."""

    async def kubelets(world: World) -> None:
        while True:
            await asyncio.sleep(TICK)
            world.nature.step()

    async def main() -> None:
        async with World() as world:
            ticking = asyncio.create_task(kubelets(world))
            try:
                await story(world)
            finally:
                ticking.cancel()

    run(main())


def test_what_was_imported_disturbs_nothing_when_it_is_applied() -> None:
    """The models are fetched; no server waits for a GPU, and no round."""

    async def story(world: World) -> None:
        begun = await serving(world, 4, 4)
        pods = world.cluster.peek(POD)
        assert set(list(history(world))[begun:]) == {4}
        assert [pod for pod in pods if pod["status"]["phase"] == "Pending"] == []
        assert world.cluster.list(BENCHMARK_RUN).items == []
        (fetch,) = world.cluster.list(JOB).items
        assert fetch["status"]["succeeded"] == 1

    told(story)


def test_one_after_another_loses_one_server_at_a_time() -> None:
    """Every moment all but one answer; then the pool lends a server for the measurement."""
    replicas = 3

    async def story(world: World) -> None:
        begun = await serving(world, replicas, replicas)
        for handed in range(1, replicas + 1):
            scaled(world, replicas - handed)
            hand_over(world, handed)
            await world.settle()
            assert answering(world) == replicas
        assert min(list(history(world))[begun:]) == replicas - 1

        world.cluster.delete(OLD)
        borrow = {"capacityPolicy": "Borrow", "minServing": replicas - 1}
        world.edit(lambda spec: (spec.update(suspend=False), spec["benchmark"].update(borrow)))
        await world.settle()
        (entry,) = world.found()["status"]["pools"]
        assert (entry["verdict"]["outcome"], entry["verdict"]["winner"]) == ("Promote", "current")
        assert answering(world) == replicas
        assert min(list(history(world))[begun:]) == replicas - 1

    told(story)


def test_a_single_server_without_a_free_gpu_is_missing_while_its_successor_loads() -> None:
    async def story(world: World) -> None:
        await serving(world, 1, 1)
        scaled(world, 0)
        hand_over(world, 1)
        asked = world.loop.time()
        await world.reach(lambda world: answering(world) == 0)
        await world.reach(lambda world: answering(world) == 1)
        assert LOADS <= world.loop.time() - asked <= LOADS + MOMENT

    told(story)


def test_a_single_server_with_a_free_gpu_is_never_missing() -> None:
    async def story(world: World) -> None:
        begun = await serving(world, 1, 2)
        hand_over(world, 1)
        await world.settle()
        assert answering(world) == 2
        scaled(world, 0)
        await world.settle()
        assert (answering(world), min(list(history(world))[begun:])) == (1, 1)

    told(story)
