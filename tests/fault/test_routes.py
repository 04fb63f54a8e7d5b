"""Routes to pools, made by the real controller on the API in memory."""

import asyncio

from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World

from paceline.controller.kinds import HTTP_ROUTE, INFERENCE_POOL
from paceline.kube import Manifest, Ref

LATENCY = f"{NAME}-latency"


def routed() -> Manifest:
    manifest = example("latency")
    manifest["spec"]["gateway"] = {"parentRefs": [{"name": "inference"}]}
    manifest["spec"]["pools"][0]["endpointPickerRef"] = {"name": "picker"}
    return manifest


def names(world: World) -> dict[str, list[str]]:
    kinds = (HTTP_ROUTE, INFERENCE_POOL)
    return {kind.kind: [one["metadata"]["name"] for one in world.cluster.list(kind).items] for kind in kinds}


def test_they_come_and_go_with_the_spec_and_are_ours() -> None:
    async def told() -> None:
        async with World() as world:
            world.apply(routed())
            world.operate()
            await world.settle()
            assert names(world) == {"HTTPRoute": [LATENCY], "InferencePool": [LATENCY]}
            for kind in (HTTP_ROUTE, INFERENCE_POOL):
                (made,) = world.cluster.list(kind).items
                assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == [world.found()["metadata"]["uid"]]
            world.edit(lambda spec: (spec.pop("gateway"), spec["pools"][0].pop("endpointPickerRef")))
            await world.settle()
            assert names(world) == {"HTTPRoute": [], "InferencePool": []}

    run(told())


def test_one_of_somebody_elses_is_left_as_it_is() -> None:
    async def told() -> None:
        async with World() as world:
            metadata = {"name": LATENCY, "namespace": NAMESPACE}
            world.apply({"apiVersion": HTTP_ROUTE.api_version, "kind": "HTTPRoute", "metadata": metadata, "spec": {}})
            world.apply(routed())
            world.operate()
            await world.settle()
            found = world.cluster.get(Ref(HTTP_ROUTE, NAMESPACE, LATENCY))
            assert found is not None
            assert found.get("spec", {}) == {}
            assert any("HTTPRoute" in note and "not managed" in note for note in world.found()["status"]["notes"])
            assert world.found()["status"]["pools"][0]["serving"]

    run(told())


def test_kinds_that_are_not_installed_hold_nothing_up_and_are_noticed_when_they_come() -> None:
    async def told() -> None:
        async with World() as world:
            world.cluster.absent |= {HTTP_ROUTE, INFERENCE_POOL}
            world.apply(routed())
            world.operate()
            await world.settle()
            status = world.found()["status"]
            assert len([note for note in status["notes"] if "is created: the cluster lacks" in note]) == 2
            assert status["pools"][0]["serving"]
            world.cluster.absent.clear()
            await asyncio.sleep(60)
            await world.settle()
            assert names(world) == {"HTTPRoute": [LATENCY], "InferencePool": [LATENCY]}

    run(told())
