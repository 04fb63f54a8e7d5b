"""Network policies and disruption budgets, made by the real controller on the API in memory."""

from dataclasses import replace

from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World

from paceline.kube import Manifest, Ref
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
