"""Network policies and disruption budgets, made by the real controller on the API in memory."""

import asyncio
from dataclasses import replace
from typing import Any

from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support.memory import MemoryApi
from tests.support.memory.api import Write

from paceline.controller.cluster import GUARDS
from paceline.controller.kinds import BENCHMARK_RUN
from paceline.kube import Forbidden, Listing, Manifest, Ref, Resource
from paceline.kube.resources import DISRUPTION_BUDGET, NETWORK_POLICY
from paceline.render import Settings

GUARDED = Settings(image="paceline", network_policies=frozenset({"servers", "rounds"}), disruption_budgets=True)
LATENCY = f"{NAME}-latency"


def names(world: World) -> dict[str, list[str]]:
    kinds = (NETWORK_POLICY, DISRUPTION_BUDGET)
    return {kind.kind: sorted(one["metadata"]["name"] for one in world.cluster.list(kind).items) for kind in kinds}


async def promoted(*foreign: Manifest) -> World:
    async with World() as world:
        for manifest in foreign:
            world.apply(manifest)
        world.settings = GUARDED
        world.apply(example("latency"))
        world.operate()
        await world.settle()
    return world


def test_a_pool_and_its_run_have_their_guards_before_the_first_round_is_there() -> None:
    world = run(promoted())
    ours = names(world)
    assert ours["PodDisruptionBudget"] == [LATENCY]
    of_run, of_pool = sorted(ours["NetworkPolicy"], key=len, reverse=True)
    assert of_pool == LATENCY
    assert of_run.startswith(f"{LATENCY}-")
    written = [(write.ref.resource.kind, write.ref.name) for write in world.lives[-1].api.writes]
    rounds = [i for i, (kind, name) in enumerate(written) if kind == "Job" and name.startswith(LATENCY)]
    assert written.index(("NetworkPolicy", of_run)) < rounds[0]
    assert written.count(("NetworkPolicy", of_pool)) == written.count(("PodDisruptionBudget", LATENCY)) == 1


def test_switched_off_they_go_from_pools() -> None:
    before = run(promoted())

    async def again() -> World:
        async with before.twin() as world:
            world.settings = replace(GUARDED, network_policies=frozenset(), disruption_budgets=False)
            world.operate()
            await world.settle()
        return world

    left = names(run(again()))
    assert left["PodDisruptionBudget"] == []
    assert LATENCY not in left["NetworkPolicy"]


def test_one_of_somebody_elses_is_left_as_it_is() -> None:
    theirs = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": LATENCY, "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"paceline.dev/pool": "latency"}}},
    }
    world = run(promoted(theirs))
    found = world.cluster.get(Ref(DISRUPTION_BUDGET, NAMESPACE, LATENCY))
    assert found is not None
    assert found["spec"] == theirs["spec"]
    assert world.found()["status"]["pools"][0]["serving"]


class Older(MemoryApi):
    """The rights of a release that knew no guards, until they are those of this one."""

    older = True

    async def list(self, resource: Resource, namespace: str | None = None, *more: Any, **others: Any) -> Listing:
        self._check(resource)
        return await super().list(resource, namespace, *more, **others)

    async def get(self, ref: Ref) -> Manifest | None:
        self._check(ref.resource)
        return await super().get(ref)

    def writes_nothing_of_theirs(self, write: Write) -> None:
        self._check(write.ref.resource)

    def _check(self, resource: Resource) -> None:
        if self.older and resource in GUARDS:
            raise Forbidden(403, "Forbidden", f"{resource.plural} is forbidden")


def test_an_operator_with_the_rights_of_an_older_release_serves_and_says_what_is_missing() -> None:
    """Servers go without; a round waits, for it is never without its policy. When the rights come, all goes on."""

    async def told() -> None:
        async with World() as world:
            lives: list[Older] = []

            def life(of: World) -> MemoryApi:
                api = Older(of.cluster)
                api.before = api.writes_nothing_of_theirs
                lives.append(api)
                return api

            world.settings = GUARDED
            world.apply(example("latency"))
            world.operate(life)
            await asyncio.sleep(1200)
            status = world.found()["status"]
            said = {one["type"]: one["status"] for one in status["conditions"]}
            assert said["Ready"] == "True"
            policies, budgets = status["notes"]
            assert "networkPolicies.servers" in policies
            assert "disruptionBudgets" in budgets
            (measures,) = world.cluster.list(BENCHMARK_RUN).items
            (condition,) = (one for one in measures["status"]["conditions"] if one["type"] == "Complete")
            assert "its NetworkPolicy is refused" in condition["message"]

            lives[-1].older = False
            await world.settle()
            assert LATENCY in names(world)["NetworkPolicy"]
            assert names(world)["PodDisruptionBudget"] == [LATENCY]
            assert "notes" not in world.found()["status"]
            assert world.found()["status"]["pools"][0]["serving"]["arm"] != "baseline"

    run(told())
