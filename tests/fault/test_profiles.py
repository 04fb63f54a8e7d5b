"""A profile and the deployments that name it, seen by the real controller's watches on the API in memory."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.plan.test_profiles import NAME as PROFILE
from tests.plan.test_profiles import naming, profile

from paceline.controller.kinds import BENCHMARK_PROFILE, BENCHMARK_RUN
from paceline.kube import Manifest, Ref
from paceline.kube.resources import DEPLOYMENT, JOB


def here(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return {**manifest, "metadata": {"name": name, "namespace": NAMESPACE}}


def alone() -> dict[str, Any]:
    """Without a profile."""
    manifest = naming()
    del manifest["spec"]["benchmark"]
    return manifest


def stalled(world: World) -> str:
    conditions = world.found()["status"]["conditions"]
    return next((one["reason"] for one in conditions if one["type"] == "Stalled"), "")


def rounds(world: World) -> int:
    return sum("round" in one["metadata"]["labels"].values() for one in world.cluster.list(JOB).items)


def servers(world: World) -> list[Manifest]:
    return [one["spec"] for one in world.cluster.list(DEPLOYMENT).items]


def test_who_names_it_is_woken_by_each_change_of_it() -> None:
    async def told() -> None:
        async with World() as world:
            world.apply(here(naming(), NAME))
            world.operate()
            await world.settle()
            assert (stalled(world), servers(world)) == ("ProfileNotFound", [])
            world.apply(here(profile(), PROFILE))
            await world.settle()
            assert world.found()["status"]["summary"].startswith("latency=wide")
            before = rounds(world), servers(world)

            world.apply(here(profile(gate={"decideAfterRounds": [3, 5, 8], "minImprovement": "4%"}), PROFILE))
            await world.settle()
            assert len(world.cluster.list(BENCHMARK_RUN).items) == 2
            assert (rounds(world), servers(world)) == before

            world.cluster.delete(Ref(BENCHMARK_PROFILE, NAMESPACE, PROFILE))
            await world.settle()
            assert (stalled(world), rounds(world), servers(world)) == ("ProfileNotFound", *before)

    run(told())


def test_a_cluster_without_the_kind_holds_nobody_else_up() -> None:
    """An operator of this release with the CRDs of the one before."""

    async def told() -> None:
        async with World() as world:
            world.cluster.absent |= {BENCHMARK_PROFILE}
            world.apply(here(alone(), NAME))
            world.operate()
            await world.settle()
            assert world.found()["status"]["summary"].startswith("latency=")
            world.edit(lambda spec: spec.update(benchmark={"profileRef": {"name": PROFILE}}))
            await world.settle()
            assert stalled(world) == "ProfileNotFound"
            world.cluster.absent.clear()
            world.apply(here(profile(), PROFILE))
            await asyncio.sleep(60)
            await world.settle()
            assert stalled(world) == ""

    run(told())


def test_where_the_installation_requires_one_a_deployment_without_is_not_measured() -> None:
    async def told() -> None:
        async with World() as world:
            world.settings = replace(world.settings, profile_required=frozenset((NAMESPACE,)))
            world.apply(here(alone(), NAME))
            world.operate()
            await world.settle()
            assert (stalled(world), rounds(world)) == ("ProfileRequired", 0)

    run(told())
