"""What keeps a deployment from having a status is told all the same: by an Event, for there is no other place."""

import asyncio

import pytest
from prometheus_client import REGISTRY
from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support.memory import MemoryApi, Write

from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.kube import ApiError, Forbidden, Invalid, Unavailable
from paceline.kube.resources import EVENT, REVISION
from paceline.render.serving import REVISION_LABEL

TOO_LONG = Invalid(422, "Invalid", "status.pools[0].verdict.message: Too long: may not be more than 32768 bytes")
NO_RIGHT = Forbidden(403, "Forbidden", "speculativedeployments.paceline.dev/status: may not be patched")
TOO_LARGE = ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
TOO_LARGE_FOR_ETCD = Unavailable(500, "Unknown", "etcdserver: request is too large")


@pytest.mark.parametrize("answer", [TOO_LONG, NO_RIGHT, TOO_LARGE, TOO_LARGE_FOR_ETCD])
def test_a_status_that_is_refused_is_told(answer: ApiError) -> None:
    def before(write: Write) -> None:
        if write.ref.resource == SPECULATIVE_DEPLOYMENT:
            raise answer

    async def story() -> None:
        counted = refusals()
        async with World() as world:
            world.operate(lambda there: MemoryApi(there.cluster, before=before))
            world.apply(example("latency"))
            await asyncio.sleep(600)
            (told,) = warnings(world)
            assert refusals() > counted
            assert (told.partition(":")[0], str(answer) in told) == ("StatusRefused", True)

    run(story())


def test_what_the_operator_cannot_make_out_is_told() -> None:
    """A run's status that somebody else has written: no schema can say all that a planner counts with."""

    async def story() -> None:
        async with World() as world:
            world.operate()
            world.apply(example("latency"))
            await world.reach(lambda there: bool(promoted(there)))
            (found,) = world.cluster.list(BENCHMARK_RUN).items
            found["status"]["completionTime"] = "yesterday"
            world.cluster.update(found, subresource="status")
            world.edit(lambda spec: spec["pools"][0].update(replicas=2))
            await asyncio.sleep(600)
            (told,) = warnings(world)
            assert told.startswith("OperatorFailed: ")
            assert world.complaints
            world.complaints.clear()

    run(story())


def test_a_revision_whose_label_was_taken_off_is_kept_anew() -> None:
    """By hand, and of the very revision that serves."""

    async def story() -> None:
        async with World() as world:
            world.operate()
            world.apply(example("latency"))
            await world.reach(lambda there: bool(promoted(there)))
            for found in world.cluster.list(REVISION).items:
                del found["metadata"]["labels"][REVISION_LABEL]
                world.cluster.update(found)
            world.edit(lambda spec: spec["pools"][0].update(replicas=2))
            await world.settle()
            assert warnings(world) == []
            kept = [found["metadata"]["labels"].get(REVISION_LABEL) for found in world.cluster.list(REVISION).items]
            assert promoted(world) in kept

    run(story())


def promoted(world: World) -> str:
    """The revision that serves by what was shown; "" before."""
    (pool,) = (world.found().get("status") or {}).get("pools") or [{}]
    serving = pool.get("serving") or {}
    return str(serving["revision"]) if serving.get("evidence") else ""


def refusals() -> float:
    """Of deployments, as exported."""
    return REGISTRY.get_sample_value("paceline_status_refusals_total", {"kind": "speculativedeployments"}) or 0.0


def warnings(world: World) -> list[str]:
    """Those about the deployment."""
    said = world.cluster.list(EVENT, NAMESPACE).items
    ours = [one for one in said if one["involvedObject"]["name"] == NAME and one["type"] == "Warning"]
    return [f"{one['reason']}: {one['message']}" for one in ours]
