"""How many servers there are, and how long each may take to start."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from tests.support.answers import Spoiled, half_failed
from tests.support.stories import promoted, told
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.plan.step import Action, Apply

DEPLOYMENT = ("Deployment", "qwen3-coder-next-latency")


def servers(world: World) -> Manifest:
    return world.cluster.objects[DEPLOYMENT]


def tries(world: World) -> int:
    """How often the kubelet asks a server whether it has started, every two seconds."""
    (container,) = servers(world)["spec"]["template"]["spec"]["containers"]
    return int(container["startupProbe"]["failureThreshold"])


def left_to_an_autoscaler(**promotion: str) -> Manifest:
    manifest = example("latency")
    del manifest["spec"]["pools"][0]["replicas"]
    manifest["spec"]["promotion"] = promotion
    return manifest


@told
def test_an_autoscalers_pool_that_waits_for_its_verdict(world: World) -> None:
    """No autoscaler acts on what is at zero: the first server is ours, the rest are its own."""
    world.apply(left_to_an_autoscaler(untilDecided="Nothing"))
    world.prefetch_ends()
    assert servers(world)["spec"]["replicas"] == 0
    assert world.condition("Ready") == "False NothingServes"

    for _ in range(3):
        world.round_ends()
    assert servers(world)["spec"]["replicas"] == 1
    assert world.condition("Ready") == "False ServersStarting"
    world.servers_ready()
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "wide")


def test_an_autoscalers_pool_whose_candidate_loses() -> None:
    """The baseline is served: that none of none was ready was no serving."""
    world = World()
    world.apply(left_to_an_autoscaler(untilDecided="Nothing"))
    world.prefetch_ends()
    for _ in range(2):
        world.round_ends(wide=half_failed, baseline=half_failed)
    assert world.outcome("latency") == "Error"
    assert (servers(world)["spec"]["replicas"], world.condition("Ready")) == (1, "False ServersStarting")
    world.servers_ready()
    assert world.serving("latency") == "baseline"


@pytest.mark.parametrize(
    ("spoiled", "arm"), [({}, "wide"), ({"wide": half_failed, "baseline": half_failed}, "baseline")]
)
def test_a_crash_before_the_first_server_is_asked_for(spoiled: dict[str, Spoiled], arm: str) -> None:
    """Status says what is to be served, and the operator dies, twice: still nothing serves."""
    world = World()
    world.apply(left_to_an_autoscaler(untilDecided="Nothing"))
    world.prefetch_ends()
    deaths = iter([True, True])
    world.crash = lambda actions: () if servers_are_to_serve(actions, arm) and next(deaths, False) else actions
    while world.under_way("round"):
        world.round_ends(**spoiled)
    assert next(deaths, "both came") == "both came"
    assert servers(world)["spec"]["replicas"] == 1
    assert world.condition("Ready") == "False ServersStarting"


def servers_are_to_serve(actions: Sequence[Action], arm: str) -> bool:
    asked = (one for one in actions if isinstance(one, Apply) and one.why.startswith(f"serve {arm}"))
    return any(one.manifest["kind"] == "Deployment" and one.manifest["spec"].get("replicas") != 0 for one in asked)


def test_what_an_autoscaler_scaled_to_zero_stays_there() -> None:
    world = World()
    world.apply(left_to_an_autoscaler())
    world.prefetch_ends()
    world.servers_ready()
    servers(world)["spec"]["replicas"] = 0
    world.settle("it scales to zero", 1)
    world.wait(60)
    assert servers(world)["spec"].get("replicas") in (0, None)


def test_a_longer_deadline_reaches_servers_that_are_being_started() -> None:
    """Or the kubelet goes on ending them at the old one. It makes no other revision of them."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    before = servers(world)["spec"]["template"]["metadata"]["labels"]
    assert tries(world) == timedelta(minutes=30).total_seconds() / 2
    world.edit("3h", lambda spec: spec.update(promotion={"progressDeadline": "3h"}))
    assert tries(world) == timedelta(hours=3).total_seconds() / 2
    assert servers(world)["spec"]["template"]["metadata"]["labels"] == before


def test_a_longer_deadline_reaches_the_second_server_though_the_first_is_ready() -> None:
    """For the kubelet would go on ending it; the first one starts anew with it."""
    world = World()
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = 2
    world.apply(manifest)
    world.prefetch_ends()
    world.server_ready("latency", 0)
    world.edit("3h", lambda spec: spec.update(promotion={"progressDeadline": "3h"}))
    assert tries(world) == timedelta(hours=3).total_seconds() / 2


def test_a_longer_deadline_restarts_no_server_that_serves() -> None:
    """It reaches them when none is ready any more, and would be started anew anyway."""
    world = World()
    promoted(world, "latency")
    world.edit("3h", lambda spec: spec.update(promotion={"progressDeadline": "3h"}))
    assert (world.condition("Ready"), tries(world)) == ("True Serving", 900)

    world.edit("the target moves", lambda spec: spec["target"].update(revision="v2"))  # nothing but meanwhile() acts
    assert (world.condition("Ready"), tries(world)) == ("True Serving", 900)

    world.server_lost("latency")
    assert tries(world) == 5400


@pytest.mark.parametrize("own", [{"failureThreshold": 7}, {"periodSeconds": 60}])
def test_a_probe_of_the_users_own_stays(own: dict[str, int]) -> None:
    world = World()
    manifest = example("latency")
    container = {"name": "server", "startupProbe": own}
    manifest["spec"]["engine"]["podTemplate"] = {"spec": {"containers": [container]}}
    world.apply(manifest)
    world.prefetch_ends()
    before = tries(world)
    world.edit("3h", lambda spec: spec.update(promotion={"progressDeadline": "3h"}))
    assert tries(world) == before


def scaled_by_an_autoscaler(manifest: Manifest) -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "by-queue", "namespace": "models"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": manifest["kind"], "name": DEPLOYMENT[1]}},
    }


@told
def test_an_autoscaler_decides_though_the_spec_has_a_number(world: World) -> None:
    """Nobody takes away what the other one has added; status says who decides, and what to do. Once the autoscaler is
    gone the number of the spec is that of the servers again."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.cluster.apply(scaled_by_an_autoscaler(servers(world)))
    world.settle("an autoscaler is made", 0)
    assert world.condition("Ready") == "True ReplicasIgnored"
    assert "by-queue" in world.message("Ready")

    servers(world)["spec"]["replicas"] = 2
    world.settle("it scales to two", 1)
    world.servers_ready()
    assert servers(world)["spec"]["replicas"] == 2
    assert world.pool("latency")["readyReplicas"] == 2

    world.delete("HorizontalPodAutoscaler", "by-queue")
    assert servers(world)["spec"]["replicas"] == 1
    assert world.condition("Ready") == "True Serving"


def test_an_autoscaler_decides_while_the_models_cannot_be_had() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.cluster.apply(scaled_by_an_autoscaler(servers(world)))
    servers(world)["spec"]["replicas"] = 2
    world.edit("another head", lambda spec: spec["draft"].update(source="hf://thoughtworks/another"))
    assert world.condition("CacheReady") == "False Prefetching"
    assert servers(world)["spec"]["replicas"] == 2


def test_an_autoscaler_of_something_else_is_nothing_to_us() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    other = scaled_by_an_autoscaler(servers(world))
    other["spec"]["scaleTargetRef"]["name"] = "qwen3-coder-next"
    world.cluster.apply(other)
    servers(world)["spec"]["replicas"] = 2
    world.settle("somebody scales by hand", 1)
    assert servers(world)["spec"]["replicas"] == 1
