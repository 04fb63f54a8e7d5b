"""A pool lends a server to its run where no node has room for a round, and gets it back whatever happens."""

from datetime import timedelta
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.planned import deployment_pools
from tests.support.stories import told
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.plan.simulation.scheduler import accelerators
from paceline.plan.step import timestamp

NAME = "qwen3-coder-next"
LATENCY = ("Deployment", f"{NAME}-latency")
FULL = {"gpu-0": 8}
"""Room for the pool's two servers, and nothing else."""


def borrowing(name: str = NAME, replicas: int = 2, **benchmark: Any) -> Manifest:
    manifest = example("latency")
    manifest["metadata"]["name"] = name
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["benchmark"] |= {"capacityPolicy": "Borrow", **benchmark}
    return manifest


def full(world: World, **options: Any) -> World:
    """A pool that serves on a node that has room for nothing else; told is what comes after."""
    world.cluster.nodes = FULL
    world.apply(borrowing(**options))
    world.prefetch_ends()
    world.servers_ready()
    return world


def lent(world: World, **options: Any) -> World:
    full(world, **options).wait(1)
    assert memory(world)["borrowed"] == 1
    return world


def entry(world: World) -> Any:
    return world.pool("latency")


def memory(world: World) -> Any:
    return world.memory("latency")


def replicas(world: World) -> int:
    return int(world.cluster.objects[LATENCY]["spec"]["replicas"])


def in_use(world: World) -> int:
    pods = [pod for pod in world.cluster.of("Pod") if pod["status"]["phase"] in ("Pending", "Running")]
    return sum(accelerators(pod, world.cluster.objects) for pod in pods if "nodeName" in pod["spec"])


@told
def test_a_full_node_lends_a_server_to_its_run(world: World) -> None:
    """First the run waits for half a minute; then one server of two is given up for as long as the run takes."""
    full(world)
    assert (world.condition("Measuring"), replicas(world)) == ("False WaitingForCapacity", 2)
    assert "NVIDIA-H200" in world.message("Measuring")
    assert "2026-11-21T10:06:30Z" in world.message("Measuring")

    world.until_wake()
    assert (world.condition("Measuring"), world.condition("Ready")) == ("True Measuring", "True Serving")
    assert (replicas(world), memory(world)["borrowed"]) == (1, 1)
    assert "qwen3-coder-next-latency-" in world.message("Ready")
    for _ in range(3):
        assert (in_use(world), replicas(world), world.condition("Ready")) == (8, 1, "True Serving")
        world.round_ends()
    assert (replicas(world), "borrowed" in memory(world), "loan" in memory(world)) == (2, False, False)
    for _ in range(2):  # the second one in the place of the last old one
        world.servers_ready()
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "True AllPromoted")


def test_where_a_node_has_room_nothing_is_lent() -> None:
    world = World(nodes={"gpu-0": 8, "gpu-1": 4})
    world.apply(borrowing())
    world.prefetch_ends()
    world.servers_ready()
    world.wait(10)
    assert (world.condition("Measuring"), replicas(world)) == ("True Measuring", 2)


def test_a_round_that_waits_for_less_than_half_a_minute_is_lent_nothing() -> None:
    world = full(World())
    world.cluster.nodes = {**FULL, "gpu-1": 4}
    world.settle("another node has room", 0)
    world.wait(1)
    assert (world.condition("Measuring"), replicas(world)) == ("True Measuring", 2)


def test_the_only_server_goes_only_where_that_is_written(says: Says) -> None:
    world = World(nodes={"gpu-0": 4})
    world.apply(borrowing(replicas=1, minServing=0))
    world.prefetch_ends()
    world.servers_ready()
    world.wait(1)
    assert (replicas(world), world.condition("Ready")) == (0, "False NothingServes")
    says(world.message("Ready"))
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert (replicas(world), world.condition("Ready"), world.serving("latency")) == (1, "True Serving", "wide")


def test_a_server_that_is_not_ready_is_no_reason_to_give_up_another(says: Says) -> None:
    world = full(World())
    world.server_lost("latency", 1)
    world.wait(5)
    assert replicas(world) == 2
    says(world.message("Measuring"))
    world.server_ready("latency", 1)
    assert replicas(world) == 1


def suspend(world: World) -> None:
    world.edit("suspend", lambda spec: spec.update(suspend=True))


def wait_policy(world: World) -> None:
    world.edit("Wait", lambda spec: (spec["benchmark"].pop("capacityPolicy"), spec["benchmark"].pop("minServing", 0)))


def an_argument_of_ours(world: World) -> None:
    """The spec is invalid, and its run ends."""
    world.edit("an argument", lambda spec: spec["engine"]["args"].append("--port=1"))
    world.cluster.delete(*next(key for key in world.cluster.objects if key[0] == "BenchmarkRun"))
    world.settle("its run is deleted", 0)


def another_head_that_cannot_be_brought(world: World) -> None:
    world.edit("another head", lambda spec: spec["draft"].update(source="hf://other/Head"))
    world.prefetch_fails("no such repository")


def the_run_is_deleted_while_suspended(world: World) -> None:
    suspend(world)
    world.delete(*next(key for key in world.cluster.objects if key[0] == "BenchmarkRun"))


def abort(world: World) -> None:
    world.annotate("abort.paceline.dev/latency", "now")


def the_runs_end(world: World) -> None:
    for _ in range(3):
        world.round_ends()


WAYS = (suspend, wait_policy, an_argument_of_ours, another_head_that_cannot_be_brought,
        the_run_is_deleted_while_suspended, abort, the_runs_end)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_comes_back_whatever_happens(way: Any) -> None:
    world = lent(World())
    assert replicas(world) == 1
    way(world)
    assert (replicas(world), "borrowed" in memory(world)) == (2, False)


def test_a_status_that_is_lost_gives_back_too() -> None:
    world = lent(World())
    world.cluster.objects["SpeculativeDeployment", NAME].pop("status")
    world.away = False
    world.settle("the status is lost", 0)
    assert replicas(world) == 2


def rival(world: World) -> None:
    """A pod of nobody's that takes what is given up."""
    manifest = {"kind": "Pod", "metadata": {"name": "rival", "labels": {}}}
    limits = {"resources": {"limits": {"nvidia.com/gpu": "4"}}}
    world.cluster.apply({**manifest, "spec": {"containers": [{"name": "idle", **limits}]}})
    world.cluster.objects["Pod", "rival"]["status"] = {"phase": "Pending"}


@told
def test_a_loan_in_vain_comes_back_after_ten_minutes(world: World) -> None:
    """Somebody else takes the accelerators. The replica returns as soon as there is room for it, and the next loan
    comes ten minutes after that was known; if that is in vain, too, after twenty."""
    full(world)
    rival(world)
    world.wait(1)
    assert (memory(world)["borrowed"], world.condition("Measuring")) == (1, "False WaitingForCapacity")
    world.until_wake()
    assert (replicas(world), memory(world)["loan"]["inVain"]) == (2, 1)
    assert "2026-11-21T10:27:00Z" in world.message("Measuring")

    world.delete("Pod", "rival")
    world.servers_ready()
    assert (world.condition("Ready"), replicas(world)) == ("True Serving", 2)
    world.wait(5)
    assert (replicas(world), world.condition("Measuring")) == (1, "True Measuring")
    assert "inVain" not in memory(world)["loan"]


def test_loans_in_vain_become_rare() -> None:
    """Four in the first hour and a half, then one in two hours."""
    world = full(World())
    began, loans = world.cluster.now, set()
    rival(world)
    for _ in range(80):
        if not memory(world).get("borrowed") and "nodeName" in world.cluster.objects["Pod", "rival"]["spec"]:
            world.delete("Pod", "rival")
            world.servers_ready()
            rival(world)
        world.wait(10)
        if memory(world).get("borrowed"):
            loans.add(memory(world)["loan"]["since"])
    hours = (world.cluster.now - began).total_seconds() / 3600
    assert hours > 12
    assert 6 < len(loans) <= 5 + hours / 2


@told
def test_two_deployments_borrow_on_one_node(world: World) -> None:
    """Their rounds take turns on what one of them lends, and both have their servers in the end."""
    world.cluster.nodes = {"gpu-0": 16}
    for name in ("first", "second"):
        world.apply(borrowing(name))
        world.prefetch_ends()
        world.servers_ready()
    for _ in range(12):
        world.wait(1)
        if any("nodeName" in world.pod_of(job)["spec"] for job in world.under_way("round")):
            world.round_ends()
        world.servers_ready()
    for name in ("first", "second"):
        servers = world.cluster.objects["Deployment", f"{name}-latency"]
        assert (servers["spec"]["replicas"], servers["status"]["readyReplicas"]) == (2, 2)
        status = world.cluster.objects["SpeculativeDeployment", name]["status"]
        assert status["pools"][0]["serving"]["arm"] == "wide"


def an_autoscaler(world: World) -> None:
    target = {"apiVersion": "apps/v1", "kind": LATENCY[0], "name": LATENCY[1]}
    metadata = {"name": "by-queue", "namespace": "models", "labels": {}}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    world.cluster.apply({"kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec})
    world.settle("an autoscaler is made", 0)


def left_to_an_autoscaler(world: World) -> None:
    def change(spec: Any) -> None:
        del spec["pools"][0]["replicas"], spec["benchmark"]["capacityPolicy"], spec["benchmark"]["minServing"]

    world.edit("no replicas", change)


@pytest.mark.parametrize("way", [an_autoscaler, left_to_an_autoscaler])
def test_a_pool_that_an_autoscaler_takes_over_gets_back_its_last_server(way: Any) -> None:
    """An autoscaler does nothing about a pool at zero."""
    world = World(nodes={"gpu-0": 4})
    world.apply(borrowing(replicas=1, minServing=0))
    world.prefetch_ends()
    world.servers_ready()
    world.wait(1)
    assert replicas(world) == 0
    way(world)
    assert (replicas(world), "borrowed" in memory(world)) == (1, False)
    world.wait(60)
    assert replicas(world) == 1


def test_a_server_on_a_silent_node_does_not_drain_for_ever() -> None:
    """Its pod stays Terminating, and its accelerators are not given back: the loan is in vain."""
    world = lent(World())
    world.cluster.nodes = {"gpu-0": 4}
    for pod in world.cluster.of("Pod", component="round"):
        pod["spec"].pop("nodeName", None)
        pod["status"] = {"phase": "Pending"}
    kept = next(iter(world.cluster.of("Pod", component="server")))
    metadata = {**kept["metadata"], "name": "gone", "uid": "gone", "ownerReferences": []}
    gone = {**kept, "metadata": metadata | {"deletionTimestamp": timestamp(world.cluster.now + timedelta(minutes=4))}}
    world.cluster.apply(gone)
    world.cluster.objects["Pod", "gone"] |= {"spec": {**kept["spec"], "nodeName": "silent"}, "status": kept["status"]}
    world.settle("its node is silent", 1)
    assert "waitingSince" not in memory(world)["loan"], "it drains"
    world.wait(5)
    assert "waitingSince" in memory(world)["loan"]
    world.wait(11)
    assert ("borrowed" in memory(world), memory(world)["loan"]["inVain"]) == (False, 1)


@pytest.mark.parametrize("surge", ["Never", "Auto"])
def test_it_comes_back_before_a_roll_out_could_replace_the_only_server_left(surge: str) -> None:
    """A person has promoted a candidate; of two servers one may be away, but not of one."""
    world = World(nodes=FULL)
    manifest = borrowing()
    manifest["spec"]["promotion"] = {"surge": surge}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.wait(1)
    assert (memory(world)["borrowed"], replicas(world)) == (1, 1)
    (pool,) = deployment_pools(world)
    world.annotate("promote-anyway.paceline.dev/latency", pool.revision(pool.arms["wide"]) + "@someone")
    assert (replicas(world), "borrowed" in memory(world)) == (2, False)
    assert memory(world)["loan"].keys() == {"run", "notBefore"}


def test_it_comes_back_when_the_servers_left_do_not_serve() -> None:
    world = lent(World())
    (server,) = world.cluster.of("Pod", component="server")
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(world.cluster.now)}
    server["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}, not_ready]
    world.settle("it is not ready", 0)
    assert (replicas(world), memory(world)["borrowed"]) == (1, 1), "it may be back in a moment"
    world.until_wake()
    assert (replicas(world), "borrowed" in memory(world)) == (2, False)
    assert memory(world)["loan"].keys() == {"run", "notBefore"}


def test_it_comes_back_when_they_do_not_serve_while_the_spec_is_refused() -> None:
    world = lent(World())
    world.edit("an argument", lambda spec: spec["engine"]["args"].append("--port=1"))
    world.server_lost("latency", 0)
    world.wait(1)
    assert (replicas(world), "borrowed" in memory(world)) == (2, False)


def test_a_candidate_promoted_while_the_only_server_is_lent_serves_once_it_is_back() -> None:
    world = World(nodes={"gpu-0": 4})
    world.apply(borrowing(replicas=1, minServing=0))
    world.prefetch_ends()
    world.servers_ready()
    world.wait(1)
    (pool,) = deployment_pools(world)
    world.annotate("promote-anyway.paceline.dev/latency", f"{pool.revision(pool.arms['wide'])}@monday")
    assert (replicas(world), memory(world)["target"]["arm"]) == (0, "wide")
    assert (world.serving("latency"), len(entry(world)["history"])) == ("baseline", 1)
    while world.under_way("round"):
        world.round_ends()
    world.servers_ready()
    assert (world.serving("latency"), entry(world)["history"][0]["reason"]) == ("wide", "PromotedAnyway")
