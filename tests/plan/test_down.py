"""The one way down: what was chosen and does not run is taken off and held, and something serves."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.down import NAME, RETRY, a_longer_deadline, arm, hold, now, rolling_out, won
from tests.support.edits_of_specs import loosened
from tests.support.stories import measuring, promoted, told
from tests.support.world import START, World, example


@told
def test_a_promoted_candidate_keeps_ending(world: World) -> None:
    """A driver was updated, say. It is taken off as one that never came up is, and the baseline serves."""
    promoted(world, "latency")
    world.wait(600)
    world.server_loops("latency", 1, "torch.OutOfMemoryError: CUDA out of memory.")
    assert (arm(world), hold(world)) == ("baseline", "Crashed")

    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "False Held")
    evidence = world.pool("latency")["holds"][0]["internal"]["run"]
    assert evidence == world.runs("latency")[0]["metadata"]["name"]


def test_a_promoted_candidate_without_a_ready_server_has_as_long_as_one_that_starts() -> None:
    world = World()
    promoted(world, "latency")
    world.wait(600)
    world.server_lost("latency")
    world.wait(29)
    assert (arm(world), hold(world)) == ("wide", None)

    world.until_wake()
    assert (arm(world), hold(world)) == ("baseline", "Crashed")
    assert "promotion.progressDeadline" in world.pool("latency")["holds"][0]["message"]


@pytest.mark.parametrize("start", [promoted, won])
@pytest.mark.parametrize("reason", ["ErrImagePull", "CreateContainerConfigError"])
def test_a_registry_that_is_down_takes_no_candidate_off(start: Callable[[World, str], None], reason: str) -> None:
    """Nor a Secret that was deleted: its baseline is started from the same. It is told, and waited for."""
    world = World()
    start(world, "latency")
    for pod in world.cluster.of("Pod", component="server"):
        world.delete("Pod", pod["metadata"]["name"])
    world.server_is_refused("latency", reason, "dial tcp: connection refused")
    world.wait(2)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("wide", None, "True ServerFailed")
    assert "connection refused" in world.message("Stalled")
    world.wait(24 * 60)
    assert (arm(world), hold(world)) == ("wide", None)

    world.servers_ready()
    assert (world.serving("latency"), world.condition("Ready"), world.condition("Stalled")) == (
        "wide", "True Serving", "",
    )  # fmt: skip


def test_that_it_is_down_is_counted_from_when_it_went_down_each_time() -> None:
    """Two outages of twenty minutes are not one of forty."""
    world = World()
    promoted(world, "latency")
    for _ in range(2):
        world.server_lost("latency")
        world.wait(20)
        world.servers_ready()
    assert (arm(world), hold(world)) == ("wide", None)


def test_one_server_of_two_that_keeps_ending_takes_nothing_off() -> None:
    world = rolling_out(2)
    world.servers_ready()
    ready = world.cluster.of("Pod", component="server")[0]["status"]
    world._servers_show("latency", {"state": {"terminated": {"exitCode": 2}}})
    world.cluster.of("Pod", component="server")[0]["status"] = ready
    world.wait(24 * 60)
    assert (arm(world), hold(world)) == ("wide", None)


def test_a_server_that_ends_once_a_week_is_in_no_crash_loop() -> None:
    """The kubelet counts restarts for as long as the pod is there."""
    world = World()
    promoted(world, "latency")
    world.server_loops("latency", 1, "CUDA error", lived=timedelta(days=7))
    assert (arm(world), hold(world)) == ("wide", None)


def test_while_servers_get_ready_one_after_another_there_is_time_for_the_next() -> None:
    """Eight take eight times as long; the deadline counts from the last of them."""
    world = rolling_out(8)
    for number in range(7):
        world.wait(20)
        world.server_ready("latency", number)
    assert world.cluster.now - START > timedelta(hours=3)
    assert (arm(world), hold(world)) == ("wide", None)

    world.wait(29)
    assert (arm(world), hold(world)) == ("wide", None)
    world.until_wake()
    assert (arm(world), hold(world)) == ("baseline", "NotReady")


def test_that_a_server_was_ready_twice_is_no_progress() -> None:
    """It comes and goes; more than one was never ready."""
    world = rolling_out(2)
    for _ in range(4):
        world.server_ready("latency", 0)
        world.wait(4)
        world.server_lost("latency", 0)
        world.wait(4)
    assert hold(world) == "NotReady"


@told
def test_there_is_no_room_for_a_promoted_candidate(world: World) -> None:
    """Another tenant was faster. It waits for as long as it takes, and starts then; nobody is blamed."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends()
    world.told.clear()
    world.cluster.nodes = {"gpu-0": 0, "gpu-1": 4}
    world.round_ends()
    world.cluster.nodes = {"gpu-0": 0, "gpu-1": 0}
    for pod in world.cluster.of("Pod", component="server"):
        world.cluster.delete("Pod", pod["metadata"]["name"])
    world.settle("another tenant takes all GPUs", 0)
    world.wait(7 * 24 * 60)
    assert (arm(world), hold(world)) == ("wide", None)
    assert world.condition("Ready") == "False NoCapacity"

    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 4}
    world.wait(0)
    world.wait(29)
    assert (arm(world), hold(world)) == ("wide", None)
    world.servers_ready()
    assert world.serving("latency") == "wide"


@told
def test_somebody_has_paused_the_servers_of_a_candidate_that_has_won(world: World) -> None:
    """`kubectl rollout pause`: it is told with the way out, and the candidate is not to blame."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends()
    world.told.clear()
    (servers,) = world.cluster.of("Deployment")
    servers["spec"]["paused"] = True
    world.round_ends()
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Ready")) == ("wide", None, "False Paused")
    assert f"kubectl rollout resume deployment/{NAME}-latency" in world.message("Ready")

    (servers,) = world.cluster.of("Deployment")
    del servers["spec"]["paused"]
    world.wait(0)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Ready")) == ("wide", "True Serving")


def test_once_there_was_room_the_deadline_counts() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.cluster.nodes = {"gpu-0": 0, "gpu-1": 0}
    for pod in world.cluster.of("Pod", component="server"):
        world.cluster.delete("Pod", pod["metadata"]["name"])
    world.wait(60)
    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 4}
    world.wait(0)
    world.until_wake()
    assert (arm(world), hold(world)) == ("baseline", "NotReady")


def test_somebody_else_has_the_name_while_a_candidate_is_rolled_out() -> None:
    """That is told, and the candidate's time begins when the name is free."""
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.delete("Deployment", f"{NAME}-latency")
    metadata = {"name": f"{NAME}-latency", "uid": "theirs", "generation": 1, "labels": {}}
    spec = {"replicas": 0, "template": {"metadata": {"labels": {}}}}
    theirs = {"kind": "Deployment", "metadata": metadata, "spec": spec}
    world.cluster.objects["Deployment", f"{NAME}-latency"] = theirs
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("wide", None, "True NameConflict")
    world.delete("Deployment", f"{NAME}-latency")
    world.wait(24)
    assert (arm(world), hold(world)) == ("wide", None)


# What releases it.


def held_by_its_deadline() -> World:
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.until_wake()
    world.servers_ready()
    assert (arm(world), hold(world)) == ("baseline", "NotReady")
    return world


def held_by_its_exit() -> World:
    world = World()
    promoted(world, "latency")
    world.server_exits("latency", 2, "error")
    world.servers_ready()
    assert (arm(world), hold(world)) == ("baseline", "Crashed")
    return world


def the_run_is_measured_again(world: World) -> None:
    """Under the same name: its predecessor was deleted."""
    (run,) = world.runs("latency")
    world.delete("BenchmarkRun", run["metadata"]["name"])
    for _ in range(3):
        world.round_ends()


@pytest.mark.parametrize(
    ("world", "change", "released"),
    [
        (held_by_its_deadline, lambda world: world.edit("3h", a_longer_deadline), True),
        (held_by_its_exit, lambda world: world.edit("3h", a_longer_deadline), False),
        (held_by_its_deadline, the_run_is_measured_again, True),
        (held_by_its_exit, the_run_is_measured_again, True),
        (held_by_its_exit, lambda world: world.edit("0.04", loosened), False),
        (held_by_its_exit, lambda world: world.annotate(RETRY, "now"), True),
        (held_by_its_exit, lambda world: world.wait(7 * 24 * 60), False),
    ],
)
def test_what_releases_a_candidate(
    world: Callable[[], World], change: Callable[[World], object], released: bool
) -> None:
    held = world()
    change(held)
    held.servers_ready()
    assert (held.serving("latency"), hold(held)) == (("wide", None) if released else ("baseline", hold(held)))
    assert held.condition("Promoted") == ("True AllPromoted" if released else "False Held")


def settings_from_a_config_map(spec: dict[str, Any]) -> None:
    source = {"configMapKeyRef": {"name": "settings", "key": "level"}}
    spec["engine"]["env"] = [{"name": "LEVEL", "valueFrom": source}]


@pytest.mark.parametrize("has_served", [True, False])
def test_a_config_map_that_the_baseline_needs_too_blames_no_candidate(has_served: bool) -> None:
    """It is deleted, and a server starts anew: the same arm serves on when it is back, without anybody's doing."""
    world, manifest = World(), example("latency")
    settings_from_a_config_map(manifest["spec"])
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    if has_served:
        world.servers_ready()
    world.delete("Pod", world.cluster.of("Pod", component="server")[0]["metadata"]["name"])
    world.server_is_refused("latency", "CreateContainerConfigError", 'configmap "settings" not found')
    world.wait(24 * 60)
    assert (arm(world), hold(world)) == ("wide", None)
    assert world.condition("Ready") == "False CannotStart"
    assert world.condition("Stalled") == "True ServerFailed"
    field = "spec.engine.env[0].valueFrom.configMapKeyRef.name"
    assert f"({field})" in world.message("Stalled")

    world.server_lost("latency")
    world.wait(29)
    assert (arm(world), hold(world)) == ("wide", None)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "")


def test_a_config_map_that_a_changed_spec_alone_names_is_held_against_it() -> None:
    """Its baseline misses it, and what served before does not name it: that serves again."""
    world = World()
    promoted(world, "latency")
    world.edit("a ConfigMap", lambda spec: (settings_from_a_config_map(spec), now(spec)))
    world.server_is_refused("latency", "CreateContainerConfigError", 'configmap "settings" not found')
    world.wait(2)
    assert hold(world) == "NotReady"
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")
