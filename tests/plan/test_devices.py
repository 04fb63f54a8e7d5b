"""User stories of accelerators that pods claim instead of counting them (as test_stories)."""

from dataclasses import replace
from typing import Any

from tests.support.containers import container
from tests.support.stories import told
from tests.support.world import World, example

from paceline.plan import run
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.step import Apply

SELECTOR = 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H200"'
TEMPLATE = "ResourceClaimTemplate"


def claiming(**more: Any) -> dict[str, Any]:
    manifest = example("latency")
    manifest["spec"]["accelerator"] |= {"deviceClassName": "gpu.nvidia.com", **more}
    return manifest


def claims(world: World, **labels: str) -> list[dict[str, Any]]:
    """What each template asks for."""
    return [one["spec"]["spec"]["devices"]["requests"][0]["exactly"] for one in world.cluster.of(TEMPLATE, **labels)]


def of_servers(world: World) -> list[dict[str, Any]]:
    return claims(world, deployment="qwen3-coder-next")


@told
def test_servers_and_rounds_claim_devices(world: World) -> None:
    """A ResourceClaimTemplate of the pool and one of its run; no pod has a limit on an extended resource."""
    world.apply(claiming(deviceSelectors=[SELECTOR]))
    world.prefetch_ends()
    world.servers_ready()
    asked = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 4}
    assert claims(world) == [asked | {"selectors": [{"cel": {"expression": SELECTOR}}]}] * 2
    for component in ("server", "round"):
        (pod,) = world.cluster.of("Pod", component=component)
        assert container(pod)["resources"] == {"claims": [{"name": "accelerators"}]}
        assert "nodeSelector" not in pod["spec"]
    (job,) = world.under_way("round")
    assert RoundJob(job=job, pod=None).plan.claimed
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "True AllPromoted")


@told
def test_a_round_waits_for_devices(world: World) -> None:
    """The scheduler only says that it cannot allocate them: that is waiting for capacity, as of a resource."""
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(claiming())
    world.prefetch_ends()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Measuring")) == ("True Serving", "False WaitingForCapacity")
    assert "gpu.nvidia.com" in world.message("Measuring")


@told
def test_where_servers_claim_one_is_lent(world: World) -> None:
    world.cluster.nodes = {"gpu-0": 8}
    manifest = claiming()
    manifest["spec"]["pools"][0]["replicas"] = 2
    manifest["spec"]["benchmark"] = {"capacityPolicy": "Borrow"}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    assert world.condition("Measuring") == "False WaitingForCapacity"
    world.until_wake()
    assert (world.condition("Measuring"), world.memory("latency")["borrowed"]) == ("True Measuring", 1)


@told
def test_no_server_finds_devices(world: World) -> None:
    """Ready names the fields that a person may change."""
    world.cluster.nodes = {"gpu-0": 2}
    world.apply(claiming(deviceSelectors=[SELECTOR]))
    world.prefetch_ends()
    world.servers_ready()
    assert world.condition("Ready") == "False NoCapacity"
    assert world.message("Ready").endswith(
        "(spec.accelerator.count: 4 on one node, spec.accelerator.deviceClassName: gpu.nvidia.com, "
        "spec.accelerator.deviceSelectors[0])"
    )


@told
def test_another_number_of_devices(world: World) -> None:
    """A template cannot be changed: another one is made, and the old one goes when no server names it any more."""
    world.apply(claiming())
    world.prefetch_ends()
    world.servers_ready()
    world.edit("two", lambda spec: spec["accelerator"].update(count=2, tensorParallelSize=2))
    assert sorted(one["count"] for one in of_servers(world)) == [2, 4]
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"
    assert [one["count"] for one in of_servers(world)] == [2]


@told
def test_from_a_resource_to_claims_and_back(world: World) -> None:
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.edit("claims", lambda spec: spec["accelerator"].update(deviceClassName="gpu.nvidia.com"))
    world.servers_ready()
    assert (world.condition("Ready"), len(of_servers(world))) == ("True Serving", 1)
    world.edit("a resource", lambda spec: spec["accelerator"].pop("deviceClassName"))
    world.servers_ready()
    assert (world.condition("Ready"), of_servers(world)) == ("True Serving", [])


@told
def test_the_cluster_has_no_claims(world: World) -> None:
    """Before Kubernetes 1.34, or without the right to see them: Stalled, with the way out; what serves goes on."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.absent = frozenset({TEMPLATE})
    world.edit("claims", lambda spec: spec["accelerator"].update(deviceClassName="gpu.nvidia.com"))
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True NoResourceClaims", "True Serving")
    assert "accelerator.resourceName" in world.message("Stalled")

    world.install(TEMPLATE)
    world.servers_ready()
    assert (world.condition("Stalled"), world.condition("Ready")) == ("", "True Serving")


@told
def test_a_server_of_several_nodes_claims_on_each(world: World) -> None:
    world.apply(claiming(nodes=2, tensorParallelSize=8))
    world.prefetch_ends()
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"
    names = {
        pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
        for pod in world.cluster.of("Pod", component="server")
    }
    assert names == {one["metadata"]["name"] for one in world.cluster.of(TEMPLATE)}


def test_a_run_made_by_hand_starts_no_round_where_nothing_can_be_claimed() -> None:
    """Its Job would wait for ever for a claim that nobody makes."""
    world = World()
    world.apply(claiming())
    world.prefetch_ends()
    world.servers_ready()
    (made,) = world.runs("latency")
    alone = {**made, "status": {}}
    snapshot = replace(world.run_snapshot(made["metadata"]["name"]), manifest=alone, jobs=())
    waits = run.plan(replace(snapshot, absent=frozenset({TEMPLATE})), world.cluster.now)
    assert waits.actions == ()
    assert waits.status is not None
    assert "accelerator.deviceClassName" in waits.status["progress"]["message"]
    begins = run.plan(snapshot, world.cluster.now).actions
    assert [one.manifest["kind"] for one in begins if isinstance(one, Apply)] == [TEMPLATE, "Job"]
