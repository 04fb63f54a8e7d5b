"""What nobody asks for any more gives its GPUs back at once, whatever else is wrong; and what has no room stops nobody
else."""

from typing import Any

from tests.support.stories import measuring, told
from tests.support.world import World, example

from paceline.plan.deployment.servers import unplaced_servers

NAME = "qwen3-coder-next"


def another_target(spec: dict[str, Any]) -> None:
    spec["target"].update(revision="v2")


@told
def test_a_run_of_an_old_question_ends_while_models_are_fetched(world: World) -> None:
    """Its answer could never be used: no round of it is started, and the one under way is stopped."""
    measuring(world, "latency")
    world.round_ends()
    world.edit("another target", another_target)
    (run,) = world.runs("latency")
    assert (world.condition("CacheReady"), world.condition("Failed", run)) == ("False Prefetching", "True Superseded")
    assert not world.under_way("round")

    world.prefetch_fails("no revision v2", source="hf://Qwen/Qwen3-Coder-Next", part="revision")
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True PrefetchFailed", "True Serving")
    assert not world.under_way("round")


def test_a_run_goes_on_while_models_of_another_pool_are_fetched() -> None:
    """For all that is known its question stays as it is."""
    world = World()
    measuring(world, "latency")
    more = {**example("throughput")["spec"]["pools"][0], "candidates": ["other"]}
    head = {"algorithm": "EAGLE3", "source": "hf://another/head"}
    other = {**example()["spec"]["candidates"][0], "name": "other", "draft": head}
    world.edit(
        "another pool with a head of its own",
        lambda spec: (
            spec["pools"][0].update(candidates=["wide"]),
            spec["pools"].append(more),
            spec["candidates"].append(other),
        ),
    )
    assert world.condition("CacheReady") == "False Prefetching"
    (run,) = world.runs("latency")
    assert (world.condition("Failed", run), len(world.under_way("round"))) == ("", 1)


def test_a_run_goes_on_while_a_typo_is_mended() -> None:
    """A spec that is refused asks nothing; what was asked before it may be asked again after it."""
    world = World()
    measuring(world, "latency")
    world.edit("--fast-please", lambda spec: spec["engine"]["args"].append("--fast-please"))
    assert world.condition("Stalled") == "True InvalidSpec"
    assert len(world.under_way("round")) == 1


def test_a_suspended_run_outlives_an_edit_that_is_taken_back() -> None:
    world = World()
    measuring(world, "latency")
    world.round_ends()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("another target", another_target)
    world.edit("the old one", lambda spec: spec["target"].pop("revision"))
    world.edit("go on", lambda spec: spec.update(suspend=False))
    (run,) = world.runs("latency")
    assert (world.condition("Failed", run), len(run["rounds"])) == ("", 1)


@told
def test_a_pool_is_removed_while_models_cannot_be_fetched(world: World) -> None:
    """Its servers and its run go at once."""
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()

    def change(spec: dict[str, Any]) -> None:
        spec["pools"] = [pool for pool in spec["pools"] if pool["name"] == "latency"]
        another_target(spec)

    world.edit("a pool is removed, and a target that is not there", change)
    assert [servers["metadata"]["name"] for servers in world.cluster.of("Deployment")] == [f"{NAME}-latency"]
    assert not world.runs("throughput")


# What has no room.


def of_four(**nodes: int) -> World:
    """A pool of four servers of four GPUs each."""
    world = World(nodes=nodes)
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = 4
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


def test_one_server_unplaced_servers_stops_neither_ready_nor_measuring() -> None:
    """An autoscaler asks for more than the cluster has: three serve, and when there is room the fourth joins them."""
    world = of_four(a=8, b=4)
    assert world.condition("Ready") == "True Serving"
    assert "3 of 4 servers" in world.message("Ready")
    assert (world.pool("latency")["readyReplicas"], len(world.runs("latency"))) == (3, 1)
    assert world.condition("Measuring") == "False WaitingForCapacity"

    world.cluster.nodes = {"a": 8, "b": 8, "c": 4}
    world.rounds_placed()
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    world.servers_ready()
    assert (world.condition("Promoted"), world.serving("latency")) == ("True AllPromoted", "wide")


def test_a_pool_of_which_no_server_has_room_does_not_serve() -> None:
    world = of_four(a=0)
    assert (world.condition("Ready"), world.runs("latency")) == ("False NoCapacity", [])


def test_a_server_over_two_nodes_is_one_server_unplaced_servers() -> None:
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    }
    labels = [{"leaderworkerset.sigs.k8s.io/group-index": str(number)} for number in (0, 0, 1)]
    pods = [
        {"metadata": {"name": f"pod-{n}", "labels": group}, "spec": {}, "status": {"conditions": [unscheduled]}}
        for n, group in enumerate(labels)
    ]
    assert unplaced_servers(pods) == 2
    assert unplaced_servers([{**pod, "metadata": {"name": pod["metadata"]["name"]}} for pod in pods]) == 3


def test_a_server_that_is_still_starting_is_waited_for() -> None:
    """That is no lack of room: the GPUs that are left are its own until it has started."""
    world = of_four(a=16)
    (first, *_) = world.cluster.of("Pod", component="server")
    first["status"]["phase"] = "Pending"
    world.settle("one restarts", 1)
    assert world.condition("Ready") == "False ServersStarting"
