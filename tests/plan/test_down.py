"""The one way down: what was chosen and does not run is taken off and held, and something serves."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.plan.test_earned import loosened
from tests.support.stories import measuring, promoted, told
from tests.support.world import START, World, example

NAME = "qwen3-coder-next"
RETRY = "retry.paceline.dev/latency"
OLD = example("latency")["spec"]["engine"]["image"]
NOT_FOUND = 'Back-off pulling image "lmsysorg/sglang:v0.5.99": not found'


def another_image(spec: dict[str, Any]) -> None:
    spec["engine"]["image"] = "lmsysorg/sglang:v0.5.99"


def the_old_image(spec: dict[str, Any]) -> None:
    spec["engine"]["image"] = OLD


def a_small_limit(spec: dict[str, Any]) -> None:
    limits = {"containers": [{"name": "server", "resources": {"limits": {"memory": "20Mi"}}}]}
    spec["engine"]["podTemplate"] = {"spec": limits}


def another_dataset(spec: dict[str, Any]) -> None:
    spec["benchmark"] = {"datasets": [{"name": "code", "source": "builtin://code"}]}


def a_longer_deadline(spec: dict[str, Any]) -> None:
    spec["promotion"] = {"progressDeadline": "3h"}


def arm(world: World) -> str:
    """Of the servers that there are to be."""
    return str(world.pool("latency")["target"]["arm"])


def hold(world: World) -> Any:
    return world.pool("latency").get("hold", {}).get("reason")


def rolling_out(replicas: int, nodes: int = 2) -> World:
    """A candidate that has won is to serve with so many replicas, each of which has a node; none is ready."""
    world = World(nodes={f"gpu-{number}": 4 * replicas for number in range(nodes)})
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = replicas
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    assert arm(world) == "wide"
    return world


def won(world: World, pool: str) -> None:
    """A candidate is to serve and has not come up yet."""
    measuring(world, pool)
    for _ in range(3):
        world.round_ends()


# A candidate.


@told
def test_a_promoted_candidate_keeps_ending(world: World) -> None:
    """A driver was updated, say. It is taken off as one that never came up is, and the baseline serves."""
    promoted(world, "latency")
    world.wait(600)
    world.server_loops("latency", 1, "torch.OutOfMemoryError: CUDA out of memory.")
    assert (arm(world), hold(world)) == ("baseline", "Crashed")

    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "False Held")
    evidence = world.pool("latency")["hold"]["evidence"]
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
    assert "no server was ready for 30 min" in world.pool("latency")["hold"]["message"]


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
    assert f'configmap "settings" not found ({field})' in world.message("Stalled")

    world.server_lost("latency")
    world.wait(29)
    assert (arm(world), hold(world)) == ("wide", None)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "")


def test_a_config_map_that_a_changed_spec_alone_names_is_held_against_it() -> None:
    """Its baseline misses it, and what served before does not name it: that serves again."""
    world = World()
    promoted(world, "latency")
    world.edit("a ConfigMap", settings_from_a_config_map)
    world.server_is_refused("latency", "CreateContainerConfigError", 'configmap "settings" not found')
    world.wait(2)
    assert hold(world) == "NotReady"
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")


# A baseline.


@told
def test_an_image_that_is_not_there_in_a_promoted_pool(world: World) -> None:
    """A wrong tag: two minutes later what served serves again, and Stalled says why for as long as it is so."""
    promoted(world, "latency")
    world.wait(600)
    served, began = world.pool("latency")["serving"]["revision"], world.cluster.now
    world.edit("an image that is not there", another_image)
    world.server_is_refused("latency", "ImagePullBackOff", NOT_FOUND)
    world.until_wake()
    assert world.cluster.now - began <= timedelta(minutes=7)  # five of them an edit takes in these stories
    assert (hold(world), world.pool("latency")["target"]["revision"]) == ("NotReady", served)

    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True NotReady")
    assert NOT_FOUND in world.message("Stalled")
    assert (world.serving("latency"), world.condition("Measuring")) == ("wide", "False BaselineHeld")

    world.wait(24 * 60)
    assert (world.condition("Stalled"), len(world.runs("latency"))) == ("True NotReady", 1)

    world.edit("the old image", the_old_image)
    world.servers_ready()
    assert (world.condition("Stalled"), world.serving("latency")) == ("", "wide")


def wrong_image(world: World) -> None:
    world.edit("an image that is not there", another_image)
    world.server_is_refused("latency", "ErrImagePull", NOT_FOUND)
    world.wait(2)


def small_limit(world: World) -> None:
    world.edit("a small memory limit", a_small_limit)
    world.server_loops("latency", 137, "OOMKilled")


def never_ready(world: World) -> None:
    world.edit("another image", another_image)
    world.until_wake()


@pytest.mark.parametrize("start", [promoted, measuring])
@pytest.mark.parametrize("change", [wrong_image, small_limit, never_ready])
def test_a_baseline_that_does_not_start_goes_back_to_what_served(
    start: Callable[..., None], change: Callable[[World], None]
) -> None:
    world = World()
    start(world, "latency")
    before = world.pool("latency")["serving"]
    change(world)
    world.servers_ready()
    now = world.pool("latency")["serving"]
    assert (now["arm"], now["revision"]) == (before["arm"], before["revision"])
    assert world.condition("Stalled") == "True NotReady"
    assert world.condition("Ready") == "True Serving"


def test_a_quota_that_a_changed_spec_exceeds() -> None:
    """What served before did not exceed it. Until the deadline somebody may raise it."""
    world = World()
    promoted(world, "latency")
    world.faults.refuses["server"] = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=4"
    world.edit("another image", another_image)
    world.wait(20)
    assert (arm(world), hold(world)) == ("baseline", None)
    world.wait(10)
    world.faults.refuses.clear()
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")
    assert "exceeded quota" in world.message("Stalled")


def test_a_quota_that_a_promoted_candidate_exceeds_by_now() -> None:
    """The baseline would exceed it, too."""
    world = World()
    promoted(world, "latency")
    world.faults.refuses["server"] = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=4"
    world.delete("Pod", world.cluster.of("Pod", component="server")[0]["metadata"]["name"])
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("wide", None, "True PodRefused")


def test_what_keeps_a_baseline_held_and_what_releases_it() -> None:
    """Another question asks nothing of the servers; `retry` tries it again, once."""
    world = World()
    promoted(world, "latency")
    wrong_image(world)
    world.servers_ready()
    world.edit("another dataset", another_dataset)
    assert (world.serving("latency"), hold(world)) == ("wide", "NotReady")

    (request,) = set(world.requests("retry"))
    world.annotate(request[0], "the image is there now")
    assert (arm(world), hold(world)) == ("baseline", None)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("baseline", "")


def test_what_it_goes_back_to_fails_too() -> None:
    """Then the node is broken, or the driver: it does not go to and fro, and Stalled says so."""
    world = World()
    promoted(world, "latency")
    wrong_image(world)
    before = world.pool("latency")["target"]
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.wait(24 * 60)
    after = world.pool("latency")["target"]
    assert {**after, "standsSince": ""} == {**before, "standsSince": ""}
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True ServerFailed", "False Crashing")


def test_a_first_baseline_that_does_not_start() -> None:
    """There is nothing to go back to. A person is told, at once or at the deadline."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.server_is_refused("latency", "ErrImagePull", NOT_FOUND)
    world.until_wake()
    assert (world.condition("Stalled"), hold(world)) == ("True ServerFailed", None)

    slow = World()
    slow.apply(example("latency"))
    slow.prefetch_ends()
    slow.until_wake()
    assert (slow.condition("Stalled"), hold(slow)) == ("True ServerFailed", None)
    assert "no further server was ready within 30 min" in slow.message("Stalled")
    slow.servers_ready()
    assert (slow.condition("Stalled"), slow.serving("latency")) == ("", "baseline")


def test_a_baseline_that_has_served_stays() -> None:
    """Nothing better is known than what it is."""
    world = World()
    measuring(world, "latency")
    world.server_loops("latency", 1, "CUDA error")
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("baseline", None, "True ServerFailed")


def test_a_taken_off_candidate_is_nothing_to_go_back_to() -> None:
    """The node is broken: neither the candidate nor the baseline starts, and they do not take turns."""
    world = World()
    promoted(world, "latency")
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("baseline", "Crashed", "True ServerFailed")


def test_what_served_last_is_kept_for_as_long_as_its_successor_has_not_served() -> None:
    """However few old renderings are to be kept, and however often the spec is changed meanwhile."""
    world = World()
    promoted(world, "latency")
    world.edit("a short history", lambda spec: spec.update(promotion={"revisionHistoryLimit": 1}))
    for tag in "abc":
        world.edit("another image", lambda spec, tag=tag: spec["engine"].update(image=f"lmsysorg/sglang:{tag}"))
    wrong_image(world)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")


def test_servers_of_two_nodes_that_do_not_start() -> None:
    """Another kind of servers gives way to the one before, and the pool's address leads there."""
    world = World()
    promoted(world, "latency")
    world.edit("two nodes", lambda spec: spec["accelerator"].update(nodes=2))
    world.until_wake()
    assert [kind for kind in ("Deployment", "LeaderWorkerSet") if world.cluster.of(kind)] == ["Deployment"]
    (address,) = world.cluster.of("Service")
    (servers,) = world.cluster.of("Deployment")
    labels = servers["spec"]["template"]["metadata"]["labels"]
    assert address["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize("change", [wrong_image, never_ready])
def test_a_crash_between_status_and_actions_goes_back_all_the_same(change: Callable[[World], None]) -> None:
    """Hold and target are one write; what follows from them follows again."""
    world = World()
    promoted(world, "latency")
    survived = iter([False] * 2)
    world.crash = lambda actions: actions if not held(world) or next(survived, True) else ()

    def held(world: World) -> bool:
        return hold(world) is not None

    change(world)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")
