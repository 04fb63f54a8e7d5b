"""User stories of rounds that fail: each kind has its reason, its patience, and the line a person needs (as
test_stories). None of it is held against a candidate."""

from tests.support.answers import died, half_failed, noisy, out_of_memory, refused, too_slow
from tests.support.campaigns import THROUGHPUT
from tests.support.containers import container
from tests.support.stories import measuring, told
from tests.support.world import World

MOST_LOOKED_AT = 8
"""Rounds, of the gate that the example has."""


def reasons(world: World, pool: str = "latency") -> list[str]:
    return [record.get("reason", "") for record in world.runs(pool)[-1]["rounds"]]


def verdict(world: World, pool: str = "latency") -> tuple[str, str]:
    said = world.runs(pool)[-1]["status"]["verdict"]
    return said["outcome"], said["reason"]


@told
def test_the_servers_refuse_their_arguments_in_a_round(world: World) -> None:
    """No retry helps: one round, and the server's own last line."""
    measuring(world, "latency")
    world.round_ends(baseline=refused, wide=refused)
    assert verdict(world) == ("Error", "ServerArguments")
    assert "unrecognized arguments: --fast-please" in world.message("Decided") + world.message("Promoted")


@told
def test_one_candidates_arguments_are_refused_in_a_round(world: World) -> None:
    """It is out at once, for an Error; the other one goes on without it and wins."""
    measuring(world, "throughput")
    world.round_ends(wide=refused)
    (job,) = world.under_way("round")
    assert "wide" not in world.condition("Measuring") + str(container(job["spec"]["template"], "client")["env"])
    for _ in range(2):
        world.round_ends()
    assert verdict(world, "throughput")[0] == "Promote"


@told
def test_the_servers_run_out_of_memory_in_a_round(world: World) -> None:
    """Twice in a row: then it is not a neighbour's."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(wide=out_of_memory)
    assert verdict(world) == ("Error", "OutOfMemory")


@told
def test_one_candidate_has_had_its_last_look_and_the_other_one_fails(world: World) -> None:
    """Nothing more can be learned of either: the run ends with the eighth round."""
    measuring(world, "throughput")
    world.truths = {"throughput": {arm: dict.fromkeys(THROUGHPUT["baseline"], 2000.0) for arm in THROUGHPUT}}
    for _ in range(MOST_LOOKED_AT):
        world.round_ends(baseline=noisy, narrow=noisy, wide=half_failed)
    assert not world.under_way("round")
    said = world.runs("throughput")[-1]["status"]
    assert said["progress"]["round"] == MOST_LOOKED_AT
    assert verdict(world, "throughput")[0] == "Inconclusive"


@told
def test_a_baseline_is_never_ready(world: World) -> None:
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(baseline=too_slow)
    assert verdict(world) == ("Error", "StartTimeout")


@told
def test_the_baseline_fails_once_and_then_a_candidate_does(world: World) -> None:
    """Next to a baseline that died no point of a candidate is valid: that is not held against it."""
    measuring(world, "latency")
    world.round_ends(baseline=died)
    world.round_ends(wide=half_failed)
    for _ in range(3):
        world.round_ends()
    assert verdict(world)[0] == "Promote"


def test_a_candidate_that_fails_before_and_after_the_baseline_has_failed_twice() -> None:
    world = World()
    measuring(world, "latency")
    for spoiled in ({"wide": half_failed}, {"baseline": died}, {"wide": half_failed}):
        world.round_ends(**spoiled)
    assert verdict(world) == ("Error", "RequestsFailed")


@told
def test_the_image_is_not_there(world: World) -> None:
    """The registry gets five minutes, three times: GPUs are held meanwhile."""
    measuring(world, "latency")
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "lmsysorg/sglang:v0.5.23: not found"}}
    for _ in range(3):
        world.round_shows(
            "the server's image cannot be pulled",
            initContainerStatuses=[
                {"name": "client", "state": {"running": {}}},
                {"name": "arm-wide", "state": waiting},
            ],
        )
        world.until_wake()
        world.wait(1)
    assert verdict(world) == ("Error", "ImagePull")
    assert reasons(world) == ["ImagePull"] * 3
    assert world.runs("latency")[-1]["status"]["cost"] == {
        "gpuSeconds": 3 * 300 * 4,
        "idleGpuSeconds": 3 * 300 * 4,
        "startingGpuSeconds": 0,
        "serverStarts": 0,
    }


@told
def test_the_images_tag_moves_between_rounds(world: World) -> None:
    """Two rounds have shown the candidate to be faster, of an image that the tag does not name any more."""
    measuring(world, "latency")
    world.image = "docker.io/lmsysorg/sglang@sha256:0123"
    for _ in range(2):
        world.round_ends()
    world.image = "docker.io/lmsysorg/sglang@sha256:cdef"
    world.round_ends()
    assert verdict(world) == ("Error", "ImageMoved")
    assert reasons(world) == ["", "", "ImageMoved"]
    assert world.serving("latency") == "baseline"


@told
def test_a_round_is_evicted(world: World) -> None:
    """It is tried again a little later, and where nobody had to leave."""
    measuring(world, "latency")
    world.round_ends()
    world.round_shows("its pod is evicted", reason="Evicted", message="The node was low on resource: memory.")
    world.round_dies("latency", 137, "")
    assert not world.under_way("round")
    world.until_wake()
    for _ in range(2):
        world.round_ends()
    assert reasons(world) == ["", "Evicted", "", ""]
    nodes = [record["node"] for record in world.runs("latency")[-1]["rounds"]]
    assert nodes == ["gpu-1", "gpu-1", "gpu-0", "gpu-0"]
    assert verdict(world)[0] == "Promote"


@told
def test_the_runs_node_is_lost(world: World) -> None:
    """Nobody hears that its pod has ended. The run goes on elsewhere; what was measured counts: each round is paired
    within itself."""
    measuring(world, "latency")
    world.round_ends()
    world.node_goes("gpu-1")
    world.until_wake()
    for _ in range(2):
        world.round_ends()
    rounds = world.runs("latency")[-1]["rounds"]
    assert [(one["node"], one.get("reason", "")) for one in rounds] == [
        ("gpu-1", ""),
        ("gpu-1", "NodeLost"),
        ("gpu-0", ""),
        ("gpu-0", ""),
    ]
    assert verdict(world)[0] == "Promote"


@told
def test_the_runs_node_is_lost_when_its_client_was_done(world: World) -> None:
    """The answer is in the pod's status and counts, though its Job never ends. The next round goes where there is
    room."""
    measuring(world, "latency")
    world.clients_end()
    world.node_goes("gpu-1")
    for _ in range(2):
        world.round_ends()
    rounds = world.runs("latency")[-1]["rounds"]
    assert [(one["node"], one.get("reason", ""), len(one["points"])) for one in rounds] == [
        ("gpu-1", "", 8),
        ("gpu-0", "", 8),
        ("gpu-0", "", 8),
    ]
    assert verdict(world)[0] == "Promote"


@told
def test_a_queue_holds_a_round_back_for_two_hours(world: World) -> None:
    """And then there is no room for ten minutes. That is nothing to the run: it waits, and goes on."""
    measuring(world, "latency")
    world.faults.queued = True
    world.round_ends()
    world.wait(120)
    world.faults.queued, world.cluster.nodes = False, {"gpu-0": 4, "gpu-1": 0}
    world.wait(10)
    assert world.condition("Measuring") == "False WaitingForCapacity"
    world.cluster.nodes = {"gpu-0": 8, "gpu-1": 8}
    world.rounds_placed()
    for _ in range(2):
        world.round_ends()
    rounds = world.runs("latency")[-1]["rounds"]
    assert [(one["node"], one.get("reason", "")) for one in rounds] == [("gpu-1", "")] * 3


@told
def test_the_runs_node_has_no_room_any_more(world: World) -> None:
    """It would go back there; it goes on where there is room, at once."""
    measuring(world, "latency")
    world.cluster.nodes = {"gpu-0": 8, "gpu-1": 0}
    world.round_ends()
    assert world.condition("Measuring") == "True Measuring"
    for _ in range(2):
        world.round_ends()
    rounds = world.runs("latency")[-1]["rounds"]
    assert [(one["node"], one.get("reason", "")) for one in rounds] == [
        ("gpu-1", ""),
        ("gpu-0", ""),
        ("gpu-0", ""),
    ]
    assert verdict(world)[0] == "Promote"


@told
def test_no_node_has_room_any_more(world: World) -> None:
    """Every round waits for as long as it takes: nothing is counted against the run."""
    measuring(world, "latency")
    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 0}
    world.round_ends()
    world.wait(600)
    assert (reasons(world), world.condition("Measuring")) == ([""], "False WaitingForCapacity")
    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 4}
    world.rounds_placed()
    assert world.condition("Measuring") == "True Measuring"
