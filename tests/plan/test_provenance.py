"""What ran is recorded, as far as the cluster tells it."""

from typing import Any

import pytest
from tests.plan.test_runs import run_of
from tests.support.in_status import records
from tests.support.world import World, example

from paceline.plan.run.neighbours import neighbours
from paceline.plan.run.steps.collect import image_moved

IMAGE = "docker.io/lmsysorg/sglang@sha256:0123"


def test_the_image_that_ran_is_recorded_by_its_digest() -> None:
    world = World(image=IMAGE)
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.round_ends()
    run = run_of(world)
    status = run["status"]
    assert run["rounds"][0]["image"] == IMAGE
    assert status["internal"]["imageDigests"] == {"server": IMAGE}


ELSEWHERE = "registry.example/mirror/sglang@sha256:0123"
BY_HAND, BY_OTHER_HAND = "sha256:4567", "sha256:89ab"


@pytest.mark.parametrize(
    ("first", "then", "noticed"),
    [
        (IMAGE, IMAGE, False),
        (IMAGE, "docker.io/lmsysorg/sglang@sha256:cdef", True),
        (IMAGE, ELSEWHERE, False),
        (BY_HAND, BY_OTHER_HAND, True),
        (IMAGE, BY_HAND, False),
        (IMAGE, "", False),
        ("", IMAGE, False),
    ],
)
def test_an_image_is_another_one_if_its_digest_is(first: str, then: str, noticed: bool) -> None:
    """Not if only its name is, nor where one node has a registry's digest and the other an id of its own."""
    before = [{"error": "evicted", "round": 0}, {"image": first}, {"image": ""}]
    assert bool(image_moved({"": then}, records(before))) is noticed


GPU = "nvidia.com/gpu"
BEGAN, BEFORE, MEANWHILE = "2026-11-21T08:00:00Z", "2026-11-21T07:59:00Z", "2026-11-21T08:10:00Z"


def pod(name: str, gpus: int = 0, ended: str = "") -> dict[str, Any]:
    state = {"terminated": {"exitCode": 0, "finishedAt": ended}} if ended else {"running": {}}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid of {name}"},
        "spec": {"containers": [{"resources": {"limits": {GPU: str(gpus)} if gpus else {"cpu": "1"}}}, {}]},
        "status": {
            "startTime": BEGAN,
            "phase": "Succeeded" if ended else "Running",
            "containerStatuses": [{"name": "server", "state": state}],
        },
    }


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (pod("train", 4), ("team/train (4)",)),
        (pod("ended-meanwhile", 2, MEANWHILE), ("team/ended-meanwhile (2)",)),
        (pod("ended-before", 2, BEFORE), ()),
        (pod("the-round-before-this-one", 4, BEGAN), ()),
        (pod("no-accelerator"), ()),
    ],
)
def test_who_else_had_accelerators_on_the_node(other: dict[str, Any], told: tuple[str, ...]) -> None:
    mine = pod("round", 4)
    assert neighbours(mine, [mine, other], GPU) == told


@pytest.mark.parametrize(("claims", "told"), [(1, "1 claim"), (2, "2 claims")])
def test_of_devices_that_somebody_claims_it_is_said_that_there_are_some(claims: int, told: str) -> None:
    """Which ones only the claims tell, and those of other namespaces are not ours to read."""
    mine, other, both = pod("round", 4), pod("train"), pod("mixed", 2)
    for one in (other, both):
        one["spec"]["resourceClaims"] = [{"name": f"gpu-{number}"} for number in range(claims)]
    assert neighbours(mine, [mine, other, both], GPU) == (f"team/mixed (2, {told})", f"team/train ({told})")


def test_who_came_to_the_node_after_the_round_is_no_neighbour() -> None:
    mine, next_one, longer = pod("round", 4, MEANWHILE), pod("next", 4), pod("train", 2)
    next_one["status"]["startTime"] = MEANWHILE
    assert neighbours(mine, [mine, next_one, longer], GPU) == ("team/train (2)",)


def test_who_is_bound_to_the_node_and_not_admitted_yet_is_no_neighbour() -> None:
    mine, next_one = pod("round", 4, MEANWHILE), pod("next", 4)
    next_one["status"] = {"phase": "Pending"}
    assert neighbours(mine, [mine, next_one], GPU) == ()
