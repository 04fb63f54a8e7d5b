"""What a quota or Pod Security refuses is told in the cluster's own words, asked for again, and Stalled in the end."""

import json

from tests.support.stories import measuring, told
from tests.support.world import World, example

NAME = "qwen3-coder-next"
QUOTA = "exceeded quota: nogpu, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=0, limited: 0"
RESTRICTED = 'violates PodSecurity "restricted:latest": runAsNonRoot != true'


@told
def test_a_quota_refuses_the_servers(world: World) -> None:
    """Told at once, for the Deployment knows; Stalled at the deadline; once it is lifted all goes on by itself."""
    world.apply(example("latency"))
    world.faults.refuses["server"] = QUOTA
    world.prefetch_ends()
    assert world.condition("Ready") == "False PodRefused"
    assert QUOTA in world.message("Ready")
    assert (world.condition("Stalled"), world.status()["state"]) == ("", "PodRefused")

    world.wait(30)
    assert world.condition("Stalled") == "True PodRefused"
    assert QUOTA in world.message("Stalled")
    assert (world.status()["state"], world.condition("Reconciling")) == ("Stalled:PodRefused", "")

    world.faults.refuses.clear()
    world.servers_ready()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "")


def refused_servers() -> World:
    world = World()
    world.apply(example("latency"))
    world.faults.refuses["server"] = QUOTA
    world.prefetch_ends()
    return world


def servers(world: World) -> tuple[int, str]:
    (servers,) = world.cluster.of("Deployment")
    return servers["metadata"]["generation"], json.dumps(servers["spec"])


def asked_again(world: World, since: int) -> int:
    """How many passes after the first so many have written the Deployment."""
    written = [action for shown in world.told[since:] for action in shown.actions]
    return sum(action.startswith("Apply Deployment") for action in written)


@told
def test_pod_security_refuses_the_prefetch(world: World) -> None:
    """A Job does not say so itself: its Events are asked for when it has had no pod for half a minute."""
    world.faults.refuses["fetch"] = RESTRICTED
    world.apply(example("latency"))
    assert world.condition("CacheReady") == "False Prefetching"
    world.wait(1)
    assert (world.condition("CacheReady"), world.condition("Reconciling")) == (
        "False PrefetchWaiting",
        "True PrefetchWaiting",
    )
    assert RESTRICTED in world.message("CacheReady")

    world.wait(30)
    assert (world.condition("Stalled"), world.condition("Reconciling")) == ("True PodRefused", "")


@told
def test_a_quota_refuses_a_round(world: World) -> None:
    """It serves and measures nothing, and says why; Stalled at the deadline; no wake is missed when it is lifted."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.faults.refuses["round"] = QUOTA
    world.servers_ready()
    world.wait(1)
    (run,) = world.runs("latency")
    assert (world.condition("Measuring"), world.condition("Complete", run)) == ("False PodRefused", "False PodRefused")
    assert QUOTA in world.message("Measuring")

    world.wait(30)
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True PodRefused")

    world.faults.refuses.clear()
    world.rounds_placed()
    assert (world.condition("Measuring"), world.condition("Stalled")) == ("True Measuring", "")


def test_a_later_round_that_is_refused_is_waited_for_as_a_first_one_is() -> None:
    """It holds nothing, and nobody is kept off a node by it: no try is spent, however long it takes."""
    world = World()
    measuring(world, "latency")
    world.faults.refuses["round"] = QUOTA
    world.round_ends()
    world.wait(24 * 60)
    (run,) = world.runs("latency")
    assert world.condition("Complete", run) == "False PodRefused"
    world.faults.refuses.clear()
    world.rounds_placed()
    for _ in range(2):
        world.round_ends()
    (run,) = world.runs("latency")
    assert [record.get("reason", "") for record in run["rounds"]] == ["", "", ""]


def test_whoever_may_not_read_events_tells_where_to_look() -> None:
    world = World(sees_events=False)
    world.faults.refuses["fetch"] = RESTRICTED
    world.apply(example("latency"))
    (job,) = world.cluster.of("Job")
    world.wait(1)
    assert f"kubectl describe job {job['metadata']['name']}" in world.message("CacheReady")


@told
def test_what_the_api_server_does_not_let_us_write_is_told(world: World) -> None:
    """Nothing else says it: the object is not there, so no controller speaks of it."""
    world.apply(example())
    world.prefetch_ends()
    quota = 'services "qwen3-coder-next-latency" is forbidden: exceeded quota: services=10, used: services=10'
    world.refusals = {("Service", f"{NAME}-latency"): quota}
    world.wait(1)
    assert world.condition("Stalled") == "True Refused"
    assert quota in world.message("Stalled")

    world.refusals = {}
    world.wait(1)
    assert world.condition("Stalled") == ""
