"""Of two pools that search the same trees the second waits for the first (0075): whatever else happens meanwhile, it
neither begins beside it nor waits for a search that does not go on, and takes no points that are no evidence."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.plan.test_search_shared import answered, begun, ended, search_of, two_pools
from tests.support.world import World

IMAGE = "registry.example.com/sglang@sha256:"
FEW = {"numSteps": {"min": 1, "max": 4}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 8}}


def searches(world: World, pool: str) -> list[Any]:
    return [run for run in world.runs(pool) if run["spec"]["purpose"] == "Search"]


def small() -> dict[str, Any]:
    """Thirteen candidates."""
    manifest = two_pools()
    for pool in manifest["spec"]["pools"]:
        pool["search"] = deepcopy(FEW)
    return manifest


def shallower(spec: Any) -> None:
    for pool in spec["pools"]:
        pool["search"]["numSteps"]["max"] = 3


def verbose(spec: Any) -> None:
    spec["engine"]["args"].append("--log-requests")


# It begins with the other, and waits for it.


def test_a_first_search_that_was_suspended_goes_on_and_is_waited_for() -> None:
    world = begun(small())
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("resume", lambda spec: spec.update(suspend=False))
    assert world.runs("latency") == []
    assert world.pool("latency")["progress"]["step"] == "WaitingForSearch"


def test_where_the_window_opens_for_both_the_second_waits() -> None:
    manifest = small()
    manifest["spec"]["benchmark"]["window"] = {"schedule": "0 20 * * *", "duration": "10h"}
    world = begun(manifest)
    assert world.pool("latency")["progress"]["step"] == "WaitingForWindow"
    world.wait(11 * 60)
    assert (len(world.runs("throughput")), world.runs("latency")) == (1, [])


@pytest.mark.parametrize("change", [shallower, verbose])
def test_an_edit_after_both_have_ended_makes_them_share_again(change: Callable[[Any], None]) -> None:
    """Trees of other ranges, on the servers that are there; or other servers, of the same trees."""
    world = ended(begun(small()))
    world.edit("both search anew", change)
    world.servers_ready()
    assert (len(searches(world, "throughput")), len(searches(world, "latency"))) == (2, 1)
    assert searches(world, "throughput")[-1]["spec"]["sharedWorkloads"]
    ended(world)
    assert searches(world, "latency")[-1]["spec"]["roundsOf"] == searches(world, "throughput")[-1]["metadata"]["name"]


# It does not wait for what does not go on.


def refused(world: World) -> None:
    world.faults.refuses["round"] = "exceeded quota: gpus"


def without_room(world: World) -> None:
    world.cluster.nodes = {"gpu-0": 8}


@pytest.mark.parametrize("trouble", [refused, without_room])
def test_a_round_that_does_not_start_keeps_the_other_pool_no_longer_than_the_progress_deadline(
    trouble: Callable[[World], None],
) -> None:
    manifest = small()
    for pool in manifest["spec"]["pools"]:
        pool["replicas"] = 1
    manifest["spec"]["benchmark"]["capacityPolicy"] = "Wait"
    world = World()
    trouble(world)
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.wait(10)
    assert (len(world.runs("throughput")), world.runs("latency")) == (1, [])
    world.wait(30)
    assert len(world.runs("latency")) == 1


def test_a_pool_whose_name_is_taken_is_not_waited_for() -> None:
    world = World()
    name = {"name": "qwen3-coder-next-throughput", "namespace": "models", "labels": {}}
    world.cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": name, "spec": {}})
    world.apply(small())
    world.prefetch_ends()
    world.servers_ready()
    assert (world.runs("throughput"), len(world.runs("latency"))) == ([], 1)


# Points that are no evidence.


def test_points_older_than_the_evidence_may_be_are_measured_anew() -> None:
    manifest = small()
    late = manifest["spec"]["pools"][0]
    world = ended(begun(manifest))
    world.edit("without latency", lambda spec: spec["pools"].pop(0))
    for run in list(world.runs("latency")):
        world.delete("BenchmarkRun", run["metadata"]["name"])
    world.wait(40 * 24 * 60)
    world.edit("with it again", lambda spec: spec["pools"].insert(0, late))
    world.servers_ready()
    assert "roundsOf" not in search_of(world, "latency")["spec"]


def test_points_of_an_image_that_was_moved_are_measured_anew() -> None:
    world = World(image=f"{IMAGE}{'a' * 64}")
    world.apply(small())
    world.prefetch_ends()
    world.servers_ready()
    world.servers_run(world.image)
    ended(world)
    world.image = f"{IMAGE}{'b' * 64}"
    world.servers_run(world.image)
    while world.under_way("round"):
        answered(world)
    world.edit("another budget", lambda spec: spec["benchmark"].update(budget={"gpuHours": "100"}))
    assert len(searches(world, "latency")) == 2
    assert "roundsOf" not in searches(world, "latency")[-1]["spec"]


def test_no_more_loads_are_shared_than_a_run_may_have() -> None:
    """Of four pools with eight loads each three are measured for; the fourth searches for itself."""
    manifest = small()
    names = [f"code-{number}" for number in range(8)]
    manifest["spec"]["benchmark"]["datasets"] = [{"name": name, "source": "builtin://code"} for name in names]
    latency, _ = pools = manifest["spec"]["pools"]
    pools += [{**deepcopy(latency), "name": f"at{load}", "concurrency": [load]} for load in (2, 4, 8)]
    manifest["spec"].pop("gateway", None)
    world = World(nodes={"gpu-0": 32, "gpu-1": 32})
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    assert len(search_of(world, "throughput")["spec"]["sharedWorkloads"]) == 24
    steps = {pool["name"]: world.pool(pool["name"])["progress"]["step"] for pool in pools}
    assert sorted(steps.values()) == ["Measuring"] * 2 + ["WaitingForSearch"] * 3
