"""The image of the next servers is on the nodes of those that serve before one of these ends."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.plan.test_surge import Watched, servers, strategy, surge
from tests.support.down import OLD, another_image, arm, at_once, hold, the_old_image
from tests.support.stories import measuring, promoted, told
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.plan.deployment.pull import IMAGE_PATIENCE
from paceline.plan.step import Action, Apply, timestamp

NEW = "lmsysorg/sglang:v0.5.99"
BACK_OFF = f'Back-off pulling image "{NEW}": ErrImagePull: not found'
NOT_FOUND = {"waiting": {"reason": "ImagePullBackOff", "message": BACK_OFF}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}


def served_image(world: World) -> str:
    (deployment,) = world.cluster.of("Deployment")
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def pulls(world: World) -> list[Manifest]:
    return world.cluster.of("Job", component="pull")


def slow(world: World) -> Manifest:
    """The spec has another image, and the node takes its time. The pod that pulls."""
    world.cluster.pulling[NEW] = CREATING
    world.edit("image", another_image)
    (job,) = pulls(world)
    return world.pod_of(job)


@told
def test_another_image_is_pulled_before_a_server_ends(world: World) -> None:
    """By a Job without accelerators, which is gone afterwards."""
    promoted(world, "latency")
    world.edit("image", another_image)
    assert (served_image(world), pulls(world)) == (NEW, [])
    world.servers_ready()
    assert world.serving("latency") == "baseline"


@told
def test_a_wrong_tag_takes_nothing_down(world: World) -> None:
    """For as long as it stays: what is served stays, no revision is held, and the right tag goes on."""
    promoted(world, "latency")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.edit("image", another_image)
    world.wait(24 * 60)
    assert (served_image(world), servers(world), hold(world)) == (OLD, [("wide", "Running")], None)
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True ImageNotPulled", "True Serving")
    assert f"{NEW} on gpu-" in world.message("Stalled")
    assert "(spec.engine.image)" in world.message("Stalled")
    (note,) = (note for note in world.status()["notes"] if note.startswith("spec.guard"))
    assert "pool latency" in note

    world.edit("image", at_once("lmsysorg/sglang:v0.5.23"))
    assert world.condition("Stalled") == ""
    assert served_image(world) == "lmsysorg/sglang:v0.5.23"
    world.servers_ready()
    assert (world.serving("latency"), pulls(world)) == ("baseline", [])


def test_a_tag_that_is_taken_back_leaves_no_trace() -> None:
    world = World()
    promoted(world, "latency")
    before = world.cluster.of("Pod", component="server")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.edit("image", another_image)
    world.edit("image", the_old_image)
    assert world.cluster.of("Pod", component="server") == before
    assert (world.serving("latency"), arm(world), pulls(world)) == ("wide", "wide", [])
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "")


def test_a_registry_that_answers_again_needs_nobody() -> None:
    world = World()
    promoted(world, "latency")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.edit("image", another_image)
    world.wait(10)
    world.cluster.pulling.clear()
    world.wait(0)
    assert (served_image(world), world.condition("Stalled")) == (NEW, "")


def test_a_pull_that_takes_long_is_told_and_is_nobodys_fault() -> None:
    world = Watched()
    measuring(world, "latency")
    slow(world)
    world.wait(20)
    assert NEW in world.message("Reconciling")
    assert world.condition("Ready") == "True Serving"
    world.wait(24 * 60)
    assert (world.condition("Stalled"), hold(world), served_image(world)) == ("True CannotStart", None, OLD)


def test_how_servers_are_replaced_is_decided_when_they_are_and_not_while_the_image_comes() -> None:
    world = Watched(nodes={"gpu-0": 8, "gpu-1": 8})
    measuring(world, "latency")
    slow(world)
    world.server_lost("latency")
    assert (surge(world), strategy(world)) == (None, (1, 0))
    world.servers_ready()
    world.cluster.pulling.clear()
    world.wait(0)
    assert (surge(world), strategy(world), served_image(world)) == ("Tried", (1, 0), NEW)


def test_while_an_image_is_pulled_the_pool_is_scaled() -> None:
    world = World()
    promoted(world, "latency")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.edit("image", another_image)
    world.edit("replicas", lambda spec: spec["pools"][0].update(replicas=2))
    assert len(servers(world)) == 2


@pytest.mark.parametrize(
    "state",
    [
        {"terminated": {"exitCode": 128, "reason": "StartError"}},
        {"running": {}},
        {"waiting": {"reason": "CreateContainerConfigError"}},
    ],
    ids=["no shell", "runs", "runs as root"],
)
def test_an_image_that_is_there_is_enough(state: dict[str, Any]) -> None:
    """Whether its container runs is the server's business."""
    world = World()
    measuring(world, "latency")
    world.cluster.pulling[NEW] = state
    world.edit("image", another_image)
    assert served_image(world) == NEW


def test_a_node_that_takes_no_pod_is_not_waited_for() -> None:
    world = World()
    measuring(world, "latency")
    world.faults.refuses["pull"] = "exceeded quota: pods"
    world.edit("image", another_image)
    began = world.cluster.now
    while served_image(world) == OLD:
        world.until_wake()
    assert (world.cluster.now - began, served_image(world)) == (IMAGE_PATIENCE, NEW)


def test_a_node_without_a_place_is_not_waited_for() -> None:
    """It is cordoned: the next server would not get there either."""
    world = World()
    measuring(world, "latency")
    pod = slow(world)
    cordoned = {"type": "PodScheduled", "status": "False", "message": "1 node(s) were unschedulable"}
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{**cordoned, "lastTransitionTime": timestamp(world.cluster.now)}],
    }
    del pod["spec"]["nodeName"]
    world.cluster.nodes = {}  # the simulated scheduler finds none either
    world.wait(1)
    assert served_image(world) == NEW


def test_a_spec_that_becomes_invalid_meanwhile_rolls_nothing_out() -> None:
    """The target's rendering is kept, and its image has not been pulled."""
    world = World()
    promoted(world, "latency")
    world.edit("surge", lambda spec: spec.update(promotion={"surge": "Never"}))
    world.edit("image", another_image)
    world.servers_ready()
    world.cluster.pulling[OLD] = NOT_FOUND
    world.edit("image", the_old_image)
    world.wait(10)
    assert world.condition("Stalled") == "True ImageNotPulled"
    world.edit("an argument that is not allowed", lambda spec: spec["engine"].update(args=["--host=1"]))
    assert world.condition("Stalled") == "True InvalidSpec"
    assert (served_image(world), servers(world)) == (NEW, [("baseline", "Running")])


def refusing(world: World, actions: Sequence[Action]) -> list[Action]:
    """Those of a pool that are carried out until a quota refuses a Job."""
    done: list[Action] = []
    for action in actions:
        if isinstance(action, Apply) and action.manifest["kind"] == "Job":
            name = action.manifest["metadata"]["name"]
            world.refusals = {("Job", name): "exceeded quota: count/jobs.batch, used 20, limited 20"}
            break
        done.append(action)
    return done


def test_a_refused_job_is_not_waited_for() -> None:
    """Of either node: after the first no other is tried."""
    world = World(nodes={"gpu-0": 8, "gpu-1": 8})
    promoted(world, "latency")
    world.edit("replicas", lambda spec: spec["pools"][0].update(replicas=3))
    world.servers_ready()
    assert len({pod["spec"]["nodeName"] for pod in world.cluster.of("Pod", component="server")}) == 2
    world.crash = lambda actions: refusing(world, actions)
    world.edit("image", another_image)
    world.wait(1)
    assert (served_image(world), pulls(world)) == (NEW, [])


def test_a_promotion_pulls_nothing() -> None:
    """It changes arguments alone."""
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    assert arm(world) == "wide"
    assert not any("pull" in action for one in world.told for action in one.actions)


def test_the_first_start_pulls_nothing_beforehand() -> None:
    """Nor does one that never came: nothing is served that could be lost."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.edit("image", another_image)
    assert (served_image(world), pulls(world)) == (NEW, [])


def test_back_from_an_image_that_does_not_run_nothing_is_waited_for() -> None:
    """Every second of it nothing is served."""
    world = World()
    measuring(world, "latency")
    world.edit("image", lambda spec: (spec.update(promotion={"surge": "Never"}), another_image(spec)))
    world.cluster.pulling[OLD] = CREATING
    world.server_exits("latency", 2, "error")
    assert (served_image(world), hold(world)) == (OLD, "NotReady")


def test_a_dropped_pool_takes_its_pulls_along_and_not_the_prefetch() -> None:
    world = World()
    promoted(world, "latency", "throughput")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.edit("image", another_image)
    assert len(pulls(world)) == 2
    world.edit("pools", lambda spec: spec["pools"].pop())
    assert [job["metadata"]["labels"]["paceline.dev/pool"] for job in pulls(world)] == ["latency"]
    assert world.cluster.of("Job", component="fetch")


def test_a_crash_at_any_action_pulls_once() -> None:
    world = World()
    promoted(world, "latency")
    world.cluster.pulling[NEW] = NOT_FOUND
    world.crash = lambda actions: actions[:2]  # the first leaves the servers as they are
    world.edit("image", another_image)
    assert len(pulls(world)) == 1
    assert served_image(world) == OLD
    world.cluster.pulling.clear()
    world.crash = lambda actions: actions
    world.wait(0)
    assert (served_image(world), pulls(world)) == (NEW, [])
