"""Roll-outs with one server more than the pool has, where there is room for it, and in place where there is none."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.test_properties import measure, quick, ready, refuse, resume, suspend
from tests.support.down import NAME, another_image, arm, hold, the_old_image
from tests.support.messages import Says
from tests.support.stories import measuring, promoted
from tests.support.world import World, example

from paceline.plan.deployment.servers import one_more_waits
from paceline.plan.objects import condition
from paceline.plan.simulation.scheduler import accelerators
from paceline.plan.step import parse_time, timestamp

ROOMY = {"gpu-0": 8, "gpu-1": 8, "gpu-2": 8, "gpu-3": 8}


@dataclass(repr=False)
class Watched(World):
    """Counts at every step of the cluster: ready servers of each pool that has served, GPUs beyond what there are."""

    fewest: dict[str, int] = field(default_factory=dict)
    beyond: float = 0

    def _advance_cluster(self) -> None:
        super()._advance_cluster()
        for entry in (self._deployed().get("status") or {}).get("pools", ()):
            if "serving" in entry:
                pods = self.cluster.of("Pod", component="server", pool=entry["name"])
                now = sum(pod["status"]["phase"] == "Running" for pod in pods)
                self.fewest[entry["name"]] = min(now, self.fewest.get(entry["name"], now))
        for node, capacity in self.cluster.nodes.items():
            taken = [pod for pod in self.cluster.of("Pod") if pod["spec"].get("nodeName") == node]
            holding = [pod for pod in taken if pod["status"]["phase"] in ("Pending", "Running")]
            self.beyond = max(self.beyond, sum(accelerators(pod, self.cluster.objects) for pod in holding) - capacity)


def won(world: World, replicas: int = 1, nodes: dict[str, int] | None = None, **promotion: str) -> None:
    """A candidate has won, and is to replace the baseline; `nodes` are those there are from then on."""
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["promotion"] = promotion
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(2):
        world.round_ends()
    if nodes is not None:
        world.cluster.nodes = nodes
    world.round_ends()
    assert arm(world) == "wide"


def full(world: World) -> dict[str, int]:
    """Nodes that have nothing beside the servers that serve now."""
    servers = world.cluster.of("Pod", component="server")
    return {
        node: sum(accelerators(pod, world.cluster.objects) for pod in servers if pod["spec"]["nodeName"] == node)
        for node in world.nodes
    }


def without_room(replicas: int = 1) -> Watched:
    """The candidate's first server finds no room: what the run held, another tenant took."""
    world = Watched()
    won(world, replicas)
    for pod in world.cluster.of("Pod", component="server"):
        if pod["status"]["phase"] == "Pending":
            world.cluster.delete("Pod", pod["metadata"]["name"])
    world.cluster.nodes = full(world)
    world.settle("another tenant takes what was free", 0)
    return world


def strategy(world: World) -> tuple[int, int]:
    (servers,) = world.cluster.of("Deployment")
    rolling = servers["spec"]["strategy"]["rollingUpdate"]
    return rolling["maxSurge"], rolling["maxUnavailable"]


def surge(world: World) -> Any:
    return world.memory("latency")["target"].get("surge")


def servers(world: World) -> list[tuple[str, str]]:
    """Arm and phase of each."""
    pods = world.cluster.of("Pod", component="server")
    return sorted((pod["metadata"]["labels"]["paceline.dev/arm"], pod["status"]["phase"]) for pod in pods)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_where_there_is_room_no_server_is_missing_for_a_moment(replicas: int, says: Says) -> None:
    world = Watched(nodes=ROOMY)
    won(world, replicas)
    assert world.condition("Ready") == "True Serving"
    says(world.message("Ready"))
    for _ in range(replicas):
        world.servers_ready()
    assert servers(world) == [("wide", "Running")] * replicas
    assert (world.serving("latency"), surge(world)) == ("wide", "Tried")
    assert (world.fewest["latency"], world.beyond) == (replicas, 0)


def test_without_room_the_server_more_is_withdrawn_after_a_minute(says: Says) -> None:
    """Told with the scheduler's words meanwhile; what serves, serves until then."""
    world = without_room()
    assert servers(world) == [("baseline", "Running"), ("wide", "Pending")]
    assert world.condition("Ready") == "True Serving"
    says(world.message("Reconciling"))
    began = world.cluster.now
    world.until_wake()
    assert (world.cluster.now - began).total_seconds() == 60
    assert (surge(world), strategy(world)) == ("Withdrawn", (0, 1))
    assert servers(world) == [("wide", "Pending")]
    says(world.message("Reconciling"))
    world.servers_ready()
    assert (world.serving("latency"), world.beyond) == ("wide", 0)


def test_what_was_withdrawn_is_not_tried_again_by_the_same_roll_out() -> None:
    world = without_room(replicas=2)
    world.until_wake()
    world.cluster.nodes = ROOMY
    world.servers_ready()
    world.wait(60)
    assert (world.serving("latency"), surge(world), strategy(world)) == ("wide", "Withdrawn", (0, 1))
    world.edit("image", another_image)
    assert (surge(world), strategy(world)) == ("Tried", (1, 0))


def test_room_within_the_minute_is_used() -> None:
    world = without_room()
    world.wait(0)
    world.cluster.nodes = ROOMY
    world.settle("another tenant leaves", 0)
    world.servers_ready()
    assert (world.serving("latency"), surge(world), world.fewest) == ("wide", "Tried", {"latency": 1})


def test_a_quota_that_refuses_one_more_withdraws_it_too() -> None:
    world = Watched(nodes=ROOMY)
    measuring(world, "latency")
    world.faults.refuses["server"] = "exceeded quota: gpus, requested: 4, used: 4, limited: 4"
    for _ in range(3):
        world.round_ends()
    assert servers(world) == [("baseline", "Running")]
    assert "exceeded quota" in world.message("Reconciling")
    world.wait(1)
    assert (surge(world), strategy(world), servers(world)) == ("Withdrawn", (0, 1), [])
    world.faults.refuses.clear()
    world.wait(1)
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_a_volume_that_only_one_node_may_have_withdraws_it_too() -> None:
    """It has a node, and its volume is on another one: only Events say so."""
    world = Watched(nodes=ROOMY)
    won(world)
    (pod,) = [pod for pod in world.cluster.of("Pod", component="server") if pod["status"]["phase"] == "Pending"]
    creating = {"name": "server", "state": {"waiting": {"reason": "ContainerCreating"}}}
    pod["status"]["containerStatuses"] = [creating]
    world.faults.events[pod["metadata"]["uid"]] = "Multi-Attach error for volume pvc-1: already used by pods"
    world.wait(1)
    assert "Multi-Attach error" in world.message("Reconciling")
    assert servers(world) == [("baseline", "Running"), ("wide", "Pending")]
    world.wait(1)
    assert (surge(world), servers(world)) == ("Withdrawn", [("wide", "Pending")])


def a_misspelt_secret(world: World) -> None:
    """The pod has a node, and not its volume."""
    world.edit("image", another_image)
    (pod,) = [pod for pod in world.cluster.of("Pod", component="server") if pod["status"]["phase"] == "Pending"]
    pod["status"]["containerStatuses"] = [{"name": "server", "state": {"waiting": {"reason": "ContainerCreating"}}}]
    world.faults.events[pod["metadata"]["uid"]] = 'MountVolume.SetUp failed: secret "misspelt" not found'


def a_policy(world: World) -> None:
    world.faults.refuses["server"] = 'violates PodSecurity "restricted:latest": unrestricted capabilities'
    world.edit("image", another_image)


@pytest.mark.parametrize("change", [a_misspelt_secret, a_policy])
def test_one_more_that_could_not_start_in_place_either_takes_nothing_down(change: Callable[[World], None]) -> None:
    """It misses its deadline, and is held, beside what serves."""
    world = Watched(nodes=ROOMY)
    promoted(world, "latency")
    change(world)
    for _ in range(60):
        world.wait(1)
    assert (arm(world), hold(world), servers(world)) == ("wide", "NotReady", [("wide", "Running")])
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True NotReady")
    assert world.fewest == {"latency": 1}


def test_a_candidate_that_crashes_takes_nothing_down() -> None:
    world = Watched(nodes=ROOMY)
    won(world)
    world.server_exits("latency", 2, "error: argument --speculative-eagle-topk: invalid choice: 4")
    assert (arm(world), hold(world), servers(world)) == ("baseline", "NotReady", [("baseline", "Running")])
    assert (world.condition("Ready"), world.fewest) == ("True Serving", {"latency": 1})


def test_beside_a_server_that_is_not_ready_none_more_is_tried(says: Says) -> None:
    """It would wait beside what it is to replace."""
    world = Watched(nodes=ROOMY)
    won(world, surge="Never")
    world.server_exits("latency", 2, "error")
    assert (arm(world), hold(world)) == ("baseline", "NotReady")
    world.edit("surge", lambda spec: spec.update(promotion={"surge": "Auto"}))
    world.servers_ready()
    world.server_lost("latency")
    world.edit("image", another_image)
    assert (surge(world), strategy(world)) == ("Skipped", (0, 1))
    says(world.message("Reconciling"))


def test_never_replaces_in_place_at_once() -> None:
    world = Watched(nodes=ROOMY)
    won(world, surge="Never")
    assert (strategy(world), servers(world), surge(world)) == ((0, 1), [("wide", "Pending")], None)


def test_servers_of_several_nodes_are_replaced_in_place() -> None:
    world = Watched(nodes=ROOMY)
    manifest = example("latency")
    manifest["spec"]["accelerator"]["nodes"] = 2
    world.apply(manifest)
    world.prefetch_ends()
    (group,) = world.cluster.of("LeaderWorkerSet")
    assert group["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_models_that_are_to_come_do_not_keep_one_more_waiting() -> None:
    """No step of the pool runs until then."""
    world = without_room()
    world.edit("another head", lambda spec: spec["draft"].update(revision="other"))
    world.wait(0)
    assert (surge(world), servers(world)) == ("Withdrawn", [("wide", "Pending")])


def test_a_crash_between_decision_and_deed_repeats_the_deed() -> None:
    world = without_room()
    world.crash = lambda actions: ()
    world.cluster.now = world.cluster.now.replace(minute=world.cluster.now.minute + 2)
    world.reconcile(("SpeculativeDeployment", NAME))
    assert (surge(world), strategy(world)) == ("Withdrawn", (1, 0))
    world.crash = lambda actions: actions
    world.wait(0)
    assert (surge(world), strategy(world)) == ("Withdrawn", (0, 1))


NO_NODE = "2 node(s) didn't match Pod's node affinity/selector"
ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
"""Kubernetes, pkg/scheduler/framework/plugins/volumerestrictions."""


def pod(why: str = "0/2 nodes are available", **status: Any) -> dict[str, Any]:
    unplaced = {"conditions": [{"type": "PodScheduled", "status": "False", "message": why}]}
    return {"metadata": {"name": "one", "uid": "1"}, "spec": {}, "status": {**unplaced, **status}}


def ending(at: str = "10:00:00") -> dict[str, Any]:
    placed = pod(conditions=[])
    return {**placed, "metadata": {"name": "old", "uid": "2", "deletionTimestamp": f"2026-11-21T{at}Z"}}


@pytest.mark.parametrize(
    ("status", "pods", "waits"),
    [
        ({"replicas": 3, "updatedReplicas": 1}, [pod()], True),
        ({"replicas": 2, "updatedReplicas": 2}, [pod()], False),  # one of those asked for
        ({"replicas": 3, "updatedReplicas": 1}, [pod(), ending()], False),
        ({"replicas": 3, "updatedReplicas": 1}, [pod(), ending("09:59:00")], True),  # its node is silent
        ({"replicas": 3, "updatedReplicas": 1}, [pod(conditions=[])], False),
        ({"replicas": 3, "updatedReplicas": 1}, [pod(why=NO_NODE)], False),
        ({"replicas": 3, "updatedReplicas": 1}, [pod(why=ONE_POD)], True),
    ],
    ids=[
        "one more",
        "an autoscaler's",
        "an old one drains",
        "one never ends",
        "placed",
        "no such node",
        "a volume in use",
    ],
)
def test_when_one_more_waits(status: dict[str, int], pods: list[Any], waits: bool) -> None:
    """A server that drains still holds its accelerators, for as long as its requests last."""
    deployment = {"metadata": {"uid": "d"}, "spec": {"replicas": 2}, "status": status}
    assert one_more_waits(deployment, pods, {}, parse_time("2026-11-21T10:00:30Z")) == waits


def test_a_pod_that_never_ends_keeps_no_roll_out_waiting() -> None:
    """Its node is silent, so what it holds is not given back."""
    world = without_room()
    (old,) = [pod for pod in world.cluster.of("Pod", component="server") if pod["status"]["phase"] == "Running"]
    silent = {
        "name": "silent",
        "uid": "silent",
        "deletionTimestamp": timestamp(world.cluster.now),
        "ownerReferences": [],
    }
    world.cluster.apply({**deepcopy(old), "metadata": {**deepcopy(old["metadata"]), **silent}})
    world.wait(0)
    assert surge(world) == "Tried"
    world.until_wake()
    world.until_wake()
    assert (surge(world), strategy(world)) == ("Withdrawn", (0, 1))


def gate(world: World) -> None:
    world.edit("gate", lambda spec: spec["gate"].update({"minImprovement": "1%"}))


def image(world: World) -> None:
    world.edit("image", another_image)


def image_back(world: World) -> None:
    world.edit("image", the_old_image)


def minute(world: World) -> None:
    world.wait(1)


QUIET: list[Callable[[World], None]] = [measure, measure, ready, ready, refuse, gate, image, image_back, minute]


@quick
@given(st.lists(st.sampled_from([*QUIET, suspend, resume]), max_size=9))
def test_where_there_is_room_no_history_costs_a_server(history: list[Callable[[World], None]]) -> None:
    """Unless a server fails. And no GPU is given twice."""
    world = Watched(nodes=ROOMY)
    measuring(world, "latency")
    for event in history:
        event(world)
    assert (world.fewest, world.beyond) == ({"latency": 1}, 0)
    assert condition(world._deployed(), "Ready")


def test_an_old_server_that_is_drained_half_way_is_told(says: Says) -> None:
    """It served until then, so it is why nothing does."""
    world = World(nodes=ROOMY)
    won(world)
    assert servers(world) == [("baseline", "Running"), ("wide", "Pending")]
    (old,) = (pod for pod in world.cluster.of("Pod", component="server") if pod["status"]["phase"] == "Running")
    gone = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API"}
    old["metadata"]["deletionTimestamp"] = timestamp(world.cluster.now)
    old["status"] = {"phase": "Pending", "conditions": [gone]}
    world.wait(1)
    assert world.condition("Ready") == "False Evicted"
    assert old["spec"]["nodeName"] in world.message("Ready")
    says(world.message("Ready"))
