"""Where rounds run, and what becomes of those that do not start: no node is held for nothing, and none of this is held
against a run."""

from datetime import timedelta
from typing import Any

from tests.support.in_status import records as in_status
from tests.support.messages import Says
from tests.support.stories import measuring, told
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.evidence.failures import FEW, MANY
from paceline.plan.objects import finished
from paceline.plan.run.next_round import FIRST_DISTANCE, LONGEST_DISTANCE, not_before, where
from paceline.plan.step import parse_time, timestamp

NAME = "qwen3-coder-next"
CREATING = {"waiting": {"reason": "ContainerCreating"}}
BEHIND = {"type": "PodReadyToStartContainers", "status": "False"}
MULTI_ATTACH = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) coder-0'
NO_SECRET = 'MountVolume.SetUp failed for volume "certs": secret "certs" not found'
ECC = "CUDA error: uncorrectable ECC error encountered"
NO_DEVICE = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"


def records(world: World, pool: str = "latency") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.runs(pool)[-1]["rounds"]
    return found


def reasons(world: World) -> list[str]:
    return [record.get("reason", "") for record in records(world)]


def pod_under_way(world: World) -> Manifest:
    (job,) = world.under_way("round")
    return world.pod_of(job)


def does_not_start(world: World, why: str) -> None:
    pod = pod_under_way(world)
    world.faults.events[pod["metadata"]["uid"]] = why
    states = [{"name": name, "state": CREATING} for name in ("client", "arm-baseline")]
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(world.cluster.now)}
    world.round_shows("its containers do not start", 1, conditions=[placed, BEHIND], initContainerStatuses=states)


def fails(world: World, **status: Any) -> None:
    """The round's pod has ended so, and Kubernetes tries it no more."""
    (job,) = world.under_way("round")
    pod = world.pod_of(job)
    pod["status"] = {"phase": "Failed", "conditions": pod["status"]["conditions"], **status}
    gave_up = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    job["status"] = {"conditions": [{**gave_up, "message": "Job has reached the specified backoff limit"}]}
    world.settle("the round's pod fails", 1)


# What does not start.


@told
def test_a_volume_is_attached_to_another_node(world: World) -> None:
    """Ten minutes and not the sum of all that may last; the words are there from the start, and it is no fault of the
    run's."""
    measuring(world, "latency")
    does_not_start(world, MULTI_ATTACH)
    assert "Multi-Attach error" in world.message("Measuring")
    assert records(world) == []

    world.wait(9)
    assert reasons(world) == ["VolumeInUse"]
    assert not world.under_way("round"), "nothing holds the accelerators"
    world.until_wake()
    for _ in range(3):
        world.round_ends()
    assert world.outcome("latency") == "Promote"


@told
def test_a_secret_that_a_round_mounts_is_missing(world: World) -> None:
    """Three times ten minutes, then a person reads what is missing."""
    measuring(world, "latency")
    for _ in range(FEW):
        does_not_start(world, NO_SECRET)
        world.wait(9)
        world.wait(1)
    assert reasons(world) == ["NotStarted"] * FEW
    assert world.outcome("latency") == "Error"
    assert 'secret "certs" not found' in world.message("Decided") + world.message("Promoted")
    assert records(world)[0]["heldSeconds"] == 600


def test_a_round_that_pulls_its_images_is_left_alone_for_an_hour() -> None:
    world = World()
    measuring(world, "latency")
    does_not_start(world, "")
    pod_under_way(world)["status"]["conditions"][-1]["status"] = "True"
    world.wait(50)
    assert (records(world), world.condition("Measuring")) == ([], "True Measuring")
    world.wait(10)
    assert reasons(world) == ["ImagePull"]


# A node that is no good.


@told
def test_a_gpu_of_a_node_is_broken(world: World) -> None:
    """The next try runs where the last one did not fail, and the run stays there."""
    world.cluster.nodes = {"gpu-0": 8, "gpu-1": 8, "gpu-2": 8}
    measuring(world, "latency")
    bad = pod_under_way(world)["spec"]["nodeName"]
    ended = {"exitCode": 1, "message": ECC}
    fails(world, initContainerStatuses=[{"name": "arm-baseline", "state": {"terminated": ended}}])
    world.until_wake()
    for _ in range(3):
        world.round_ends()
    nodes = [record["node"] for record in records(world)]
    assert (reasons(world), nodes[0]) == (["ServerCrashed", "", "", ""], bad)
    assert bad not in nodes[1:]
    assert len(set(nodes[1:])) == 1
    assert world.outcome("latency") == "Promote"


@told
def test_a_device_plugin_restarts(world: World) -> None:
    """The kubelet refuses round after round in no time: it is asked ever more seldom, and the run outlives that."""
    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 4}
    measuring(world, "latency")
    began = world.cluster.now
    for _ in range(6):
        fails(world, reason="UnexpectedAdmissionError", message=NO_DEVICE)
        world.until_wake()
    assert reasons(world) == ["NodeRefused"] * 6
    assert world.cluster.now - began > timedelta(minutes=10)
    for _ in range(3):
        world.round_ends()
    assert world.outcome("latency") == "Promote"


def test_a_node_that_refuses_every_round_ends_the_run_in_its_words() -> None:
    world = World(nodes={"gpu-0": 4, "gpu-1": 4})
    measuring(world, "latency")
    began = world.cluster.now
    for _ in range(MANY - 1):
        fails(world, reason="UnexpectedAdmissionError", message=NO_DEVICE)
        world.until_wake()
    fails(world, reason="UnexpectedAdmissionError", message=NO_DEVICE)
    said = world.runs("latency")[-1]["status"]["verdict"]
    assert (said["outcome"], said["reason"]) == ("Error", "NodeRefused")
    assert NO_DEVICE in said["message"]
    assert world.cluster.now - began > timedelta(hours=2)


def failed(node: str, at: str = "2026-11-21T10:00:00Z") -> dict[str, Any]:
    return {"node": node, "error": "it failed", "completionTime": at}


def measured(node: str) -> dict[str, Any]:
    return {"node": node, "error": ""}


def test_where_the_next_one_had_best_run() -> None:
    for so_far, node, avoid in (
        ([], "", ()),
        ([measured("a")], "a", ()),
        ([measured("a"), measured("b")], "b", ()),
        ([failed("a")], "", ("a",)),
        ([failed("a"), failed("b"), failed("")], "", ("a", "b")),
        ([measured("a"), failed("b")], "a", ("b",)),
        ([measured("a"), failed("a")], "", ("a",)),
        ([failed("a"), measured("b")], "b", ()),
    ):
        found = where(in_status(so_far), ("models",))
        assert (found.node, found.avoid, found.namespaces) == (node, avoid, ("models",)), so_far


def test_tries_in_a_row_keep_a_growing_distance() -> None:
    began = parse_time("2026-11-21T10:00:00Z")
    distances = [not_before(in_status([failed("a")] * tries), began) or began for tries in range(1, MANY)]
    assert [found - began for found in distances[:3]] == [FIRST_DISTANCE * 2**n for n in range(3)]
    assert distances[-1] - began == LONGEST_DISTANCE
    assert not_before(in_status([failed("a"), measured("a")]), began) is None
    assert not_before(in_status([{"node": "a", "error": "of an older release"}]), began) is None
    future = {"node": "a", "error": "forged", "completionTime": "9999-12-31T23:59:59Z"}
    assert not_before(in_status([future]), began) is None


# Whoever else is there.


@told
def test_a_janitor_deletes_rounds(world: World) -> None:
    """Each is a try: the run does not measure the same round for ever under the same name, but ends and says why."""
    measuring(world, "latency")
    names = []
    for _ in range(MANY):
        (job,) = world.under_way("round")
        names.append(job["metadata"]["name"])
        world.delete("Job", names[-1])
        world.wait(11)
    assert len(set(names)) == MANY
    assert set(reasons(world)) == {"JobDeleted"}
    assert world.outcome("latency") == "Error"


def test_a_job_that_was_never_made_is_no_try() -> None:
    """The operator dies between what it writes and what it does."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.away = True
    world.servers_ready()
    world.reconcile(("SpeculativeDeployment", NAME))
    world.crash = lambda _: ()
    (run,) = world.runs("latency")
    for _ in range(2):
        world.reconcile(("BenchmarkRun", run["metadata"]["name"]))
    (run,) = world.runs("latency")
    assert (run["status"]["progress"]["step"], world.under_way("round")) == ("Measuring", [])
    world.away, world.crash = False, lambda actions: actions
    world.wait(1)
    assert len(world.under_way("round")) == 1
    assert records(world) == []


@told
def test_a_queue_suspends_a_rounds_job(world: World) -> None:
    """As Kueue does with a Job that names one of its queues. It waits, and says for what."""
    measuring(world, "latency")
    (job,) = world.under_way("round")
    world.cluster.delete("Pod", world.pod_of(job)["metadata"]["name"])
    job["spec"]["suspend"] = True
    world.settle("a queue suspends its Job", 1)
    world.wait(120)
    assert world.condition("Measuring") == "False WaitingForCapacity"
    assert job["metadata"]["name"] in world.message("Measuring")
    job["spec"]["suspend"] = False
    for _ in range(3):
        world.settle("the queue lets it go", 1)
        world.round_ends()
    assert world.outcome("latency") == "Promote"
    assert set(reasons(world)) == {""}


def queued() -> Any:
    manifest = example("latency")
    manifest["spec"]["benchmark"] |= {"queueName": "gpus"}
    return manifest


def with_kueue(world: World) -> None:
    """Its webhook: a Job that names a queue is made suspended."""
    cluster, apply = world.cluster, world.cluster.apply

    def held(manifest: Manifest) -> bool:
        queued = "kueue.x-k8s.io/queue-name" in manifest["metadata"].get("labels", {})
        new = ("Job", manifest["metadata"]["name"]) not in cluster.objects
        return apply({**manifest, "spec": {**manifest["spec"], "suspend": True}} if queued and new else manifest)

    cluster.apply = held  # type: ignore[method-assign, assignment]


def suspend(world: World, suspended: bool, what: str) -> Any:
    """Its controller, on the Job of the round under way."""
    job = next(job for job in world.cluster.of("Job", component="round") if not finished(job))
    job["spec"]["suspend"] = suspended
    for pod in world.cluster.owned("Pod", job) if suspended else ():
        world.cluster.delete("Pod", pod["metadata"]["name"])
    world.settle(what, 1)
    return job


@told
def test_a_round_waits_in_a_queue(world: World) -> None:
    """At once it is said which; its Job may be deleted meanwhile, and none of that is a try."""
    with_kueue(world)
    world.apply(queued())
    world.prefetch_ends()
    world.servers_ready()
    (job,) = world.cluster.of("Job", component="round")
    assert world.condition("Measuring") == "False WaitingForCapacity"
    assert job["metadata"]["name"] in world.message("Measuring")

    world.delete("Job", job["metadata"]["name"])
    assert world.condition("Measuring") == "False WaitingForCapacity"
    for _ in range(3):
        suspend(world, False, "Kueue admits it")
        world.round_ends()
    assert world.outcome("latency") == "Promote"
    assert [record["try"] for record in records(world)] == [0, 0, 0]


def in_queue(world: World) -> World:
    """The first round is admitted, and has its node."""
    with_kueue(world)
    world.apply(queued())
    world.prefetch_ends()
    world.servers_ready()
    suspend(world, False, "Kueue admits it")
    assert world.condition("Measuring") == "True Measuring"
    return world


@told
def test_a_queue_takes_a_rounds_accelerators_away(world: World) -> None:
    """Kueue preempts by suspending the Job again: its pod ends, and the round is tried again once it is admitted."""
    in_queue(world)
    suspend(world, True, "Kueue preempts it")
    world.until_wake()
    assert world.condition("Measuring") == "False WaitingForCapacity"
    for _ in range(3):
        suspend(world, False, "Kueue admits it")
        world.round_ends()
    assert world.outcome("latency") == "Promote"
    assert [(record["try"], record.get("reason", "")) for record in records(world)] == [
        (0, "Evicted"), (1, ""), (0, ""), (0, ""),
    ]  # fmt: skip


def test_a_queue_that_waits_for_pods_to_be_ready_ends_a_run_and_says_why(says: Says) -> None:
    """Kueue's waitForPodsReady: no pod of a round is Ready while its arms run, so each is stopped after `timeout`, and
    admitted again. With the reason in status each time, and not for ever."""
    world = in_queue(World())
    for _ in range(MANY - 1):
        world.wait(5)
        suspend(world, True, "Kueue stops it: PodsReadyTimeout")
        assert "turn Kueue's waitForPodsReady off" in world.message("Measuring")
        world.until_wake()
        suspend(world, False, "Kueue admits it")
    assert {record["reason"] for record in records(world)} == {"Evicted"}
    suspend(world, True, "Kueue stops it: PodsReadyTimeout")
    assert not world.under_way("round")
    assert world.outcome("latency") == "Error"
    assert len(records(world)) == MANY
    says(world.message("Decided"))


def test_a_round_in_a_queue_that_had_no_node_is_no_try() -> None:
    """It was admitted where there was no room."""
    world = World()
    with_kueue(world)
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(queued())
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        suspend(world, False, "Kueue admits it")
        assert world.condition("Measuring") == "False WaitingForCapacity"
        suspend(world, True, "Kueue stops it: PodsReadyTimeout")
    assert records(world) == []
