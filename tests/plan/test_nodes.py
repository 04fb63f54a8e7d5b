"""User stories of servers that take several nodes (as test_stories)."""

from typing import Any

from tests.support.stories import measuring, told
from tests.support.world import World, example

NAME = "qwen3-coder-next"
QUOTA = "exceeded quota: nogpu, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=0, limited: 0"


def over_two_nodes() -> dict[str, Any]:
    manifest = example("latency")
    manifest["spec"]["accelerator"] |= {"nodes": 2, "tensorParallelSize": 8}
    return manifest


@told
def test_a_server_takes_two_nodes(world: World) -> None:
    """A LeaderWorkerSet serves the baseline. No run can compare anything, and status says so instead of waiting."""
    world.apply(over_two_nodes())
    world.prefetch_ends()
    assert world.condition("Ready") == "False ServersStarting"

    world.servers_ready()
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "baseline")
    assert (world.condition("Decided"), world.condition("Measuring")) == (
        "False NotMeasurable",
        "False NothingToMeasure",
    )
    assert "accelerator.nodes" in world.message("Decided")
    assert (world.runs("latency"), world.condition("Stalled")) == ([], "")


@told
def test_leader_worker_set_is_not_installed(world: World) -> None:
    """Stalled, with the command that installs it; models are brought meanwhile, and once it is there it serves."""
    world.absent = frozenset({"LeaderWorkerSet"})
    world.apply(over_two_nodes())
    world.prefetch_ends()
    assert (world.condition("Stalled"), world.condition("Ready")) == (
        "True NoLeaderWorkerSet",
        "False NotStarted",
    )
    assert "kubectl apply --server-side -f https://github.com/kubernetes-sigs/lws/" in world.message("Stalled")

    world.install("LeaderWorkerSet")
    world.servers_ready()
    assert (world.condition("Stalled"), world.condition("Ready")) == ("", "True Serving")


@told
def test_another_number_of_nodes(world: World) -> None:
    """From one node to two and back: the other kind goes when its successor is made. Until LeaderWorkerSet is
    installed what serves goes on."""
    world.absent = frozenset({"LeaderWorkerSet"})
    measuring(world, "latency")
    two = over_two_nodes()["spec"]["accelerator"]
    world.edit("two nodes", lambda spec: spec.update(accelerator=two))
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True NoLeaderWorkerSet", "True Serving")

    world.install("LeaderWorkerSet")
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"
    assert (len(world.cluster.of("Deployment")), len(world.cluster.of("LeaderWorkerSet"))) == (0, 1)

    world.edit("one node", lambda spec: spec["accelerator"].update(nodes=1, tensorParallelSize=4))
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Measuring")) == ("True Serving", "True Measuring")
    assert (len(world.cluster.of("Deployment")), len(world.cluster.of("LeaderWorkerSet"))) == (1, 0)


@told
def test_a_node_of_a_server_has_no_room(world: World) -> None:
    """In the scheduler's own words, whichever of a server's pods it is."""
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(over_two_nodes())
    world.prefetch_ends()
    world.servers_ready()
    assert world.condition("Ready") == "False NoCapacity"


@told
def test_a_quota_refuses_a_server_over_two_nodes(world: World) -> None:
    """Only Events of its StatefulSets tell. As of a Deployment: named within a minute, Stalled at the deadline, over
    when the quota is."""
    world.apply(over_two_nodes())
    world.faults.refuses["server"] = QUOTA
    world.prefetch_ends()
    assert world.condition("Ready") == "False ServersStarting"
    world.wait(1)
    assert world.condition("Ready") == "False PodRefused"
    assert world.message("Ready").endswith(f"refused: {QUOTA}")

    world.wait(30)
    assert world.condition("Stalled") == "True PodRefused"

    world.faults.refuses.clear()
    world.servers_ready()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "")
