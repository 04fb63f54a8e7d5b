"""What the cluster will not do is told in its own words within a minute, with the field of the spec that it is about,
and is Stalled in the end. What is only late, or somebody's wish, is called what it is."""

import pytest
from tests.support.answers import half_failed
from tests.support.messages import Says
from tests.support.stories import by_hand, measuring, promoted, told
from tests.support.world import World, example

from paceline.core.manifest import Manifest
from paceline.plan.step import timestamp

NAME = "qwen3-coder-next"
CREATING = {"state": {"waiting": {"reason": "ContainerCreating"}}}


@told
def test_a_storage_class_that_nobody_has(world: World) -> None:
    """The claim's own words, with the field; a pod of it says only that it is not bound."""
    manifest = example("latency")
    manifest["spec"]["cache"]["claim"]["storageClassName"] = "nobody"
    world.apply(manifest)
    (volume,) = world.cluster.of("PersistentVolumeClaim")
    volume["status"] = {"phase": "Pending"}
    world.faults.events[volume["metadata"]["uid"]] = 'storageclass.storage.k8s.io "nobody" not found'
    world.wait(1)
    assert "(spec.cache.claim.storageClassName)" in world.message("CacheReady")
    world.wait(30)
    assert world.condition("Stalled") == "True Unplaceable"


@told
def test_a_product_that_no_node_has(world: World) -> None:
    """The scheduler does not say which label; the field does."""
    world.apply(example("latency"))
    world.prefetch_ends()
    unplaced(world, "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.")
    assert world.condition("Ready") == "False Unplaceable"
    assert "(spec.accelerator.product: NVIDIA-H200)" in world.message("Ready")
    world.wait(31)
    assert world.condition("Stalled") == "True Unplaceable"


@told
def test_a_directory_that_no_node_has(world: World) -> None:
    """Only the pod's Events tell; the pod holds its accelerators meanwhile, so it is Stalled in the end."""
    manifest = example("latency")
    manifest["spec"]["cache"] = {"hostPath": "/data/nothing"}
    world.apply(manifest)
    world.prefetch_ends()
    words = (
        'MountVolume.SetUp failed for volume "models" : hostPath type check failed: /data/nothing is not a directory'
    )
    for pod in world.cluster.of("Pod", component="server"):
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(world.cluster.now)}
        pod["status"] = {
            "phase": "Pending",
            "conditions": [placed],
            "containerStatuses": [{"name": "server", **CREATING}],
        }
        world.faults.events[pod["metadata"]["uid"]] = words
    world.wait(1)
    assert world.condition("Ready") == "False CannotStart"
    assert f"{words} (spec.cache.hostPath)" in world.message("Ready")
    world.wait(30)
    assert world.condition("Stalled") == "True CannotStart"


@told
def test_a_node_that_does_not_answer(world: World) -> None:
    """Nothing is rolled out: what serves is what it was, on a node that is silent."""
    promoted(world, "latency")
    for pod in world.cluster.of("Pod", component="server"):
        since = timestamp(world.cluster.now)
        conditions = {"Ready": "False", "ContainersReady": "True", "PodScheduled": "True"}
        pod["status"] = {
            "phase": "Pending",  # not counted as ready
            "conditions": [
                {"type": kind, "status": status, "lastTransitionTime": since} for kind, status in conditions.items()
            ],
        }
        node = pod["spec"]["nodeName"]
    world.wait(1)
    assert (world.condition("Ready"), world.condition("Reconciling")) == ("False NodeNotReady", "True Restoring")
    assert f"node {node} " in world.message("Ready")


@told
def test_a_drain(world: World) -> None:
    """The pod goes and another comes; the eviction is named for as long as the pod takes to end."""
    promoted(world, "latency")
    (pod,) = world.cluster.of("Pod", component="server")
    gone = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API"}
    pod["metadata"]["deletionTimestamp"] = timestamp(world.cluster.now)
    pod["status"] = {"phase": "Pending", "conditions": [gone]}
    world.wait(1)
    assert (world.condition("Ready"), world.condition("Reconciling")) == ("False Evicted", "True Restoring")
    assert "EvictionByEvictionAPI" in world.message("Ready")


def test_a_server_that_is_lost_is_no_roll_out(says: Says) -> None:
    """One of three was drained: what is served stays what it was."""
    world = World(nodes={"gpu-0": 16, "gpu-1": 8})
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = 3
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    lost, *_ = world.cluster.of("Pod", component="server")
    world.cluster.delete("Pod", lost["metadata"]["name"])
    world.wait(1)
    assert world.condition("Reconciling") == "True Restoring"
    says(world.message("Reconciling"))


def test_a_restart_by_hand_is_called_so(says: Says) -> None:
    """Not a roll-out of ours: what is served stays what it was."""
    world = World()
    promoted(world, "latency")
    deployment = world.cluster.objects["Deployment", f"{NAME}-latency"]
    annotations = {"kubectl.kubernetes.io/restartedAt": "2026-11-21T12:00:00Z"}
    deployment["spec"]["template"]["metadata"]["annotations"] = annotations
    rolls = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
    world.faults.conditions = [rolls]
    (pod,) = world.cluster.of("Pod", component="server")
    world.cluster.delete("Pod", pod["metadata"]["name"])
    world.wait(1)
    assert "2026-11-21T12:00:00Z" in world.message("Reconciling")
    says(world.message("Reconciling"))


@told
def test_nothing_pretends_to_work_beside_an_invalid_spec(world: World) -> None:
    """No prefetch is under way, no server is starting."""
    manifest = example("latency")
    manifest["spec"]["engine"]["args"].append("--tp=8")
    world.apply(manifest)
    assert not world.cluster.of("Job")
    reasons = {condition["type"]: condition["reason"] for condition in world.status()["conditions"]}
    assert reasons == {"Ready": "NotStarted", "Stalled": "InvalidSpec"}
    assert world.status()["state"] == "Stalled:InvalidSpec"


def test_a_mistake_in_what_serves_is_seen_at_a_glance() -> None:
    """`kubectl get` says Stalled beside READY True."""
    world = World()
    promoted(world, "latency")
    assert world.status()["state"] == "Serving"
    world.edit("a typo", lambda spec: spec["engine"]["args"].append("--atention-backend=triton"))
    assert (world.condition("Ready"), world.status()["state"]) == ("True Serving", "Stalled:InvalidSpec")


def test_what_waits_for_a_person_is_seen_at_a_glance() -> None:
    world = by_hand()
    for _ in range(3):
        world.round_ends()
    assert (world.condition("Ready"), world.status()["state"]) == ("True Serving", "AwaitingPromote")


@told
def test_a_pool_of_no_servers_serves_nothing_as_asked(world: World) -> None:
    """Ready, as all is as asked for; nobody says that it serves."""
    promoted(world, "latency")
    world.edit("replicas 0", lambda spec: spec["pools"][0].update(replicas=0))
    assert (world.condition("Ready"), world.status()["state"]) == ("True ScaledToZero", "ScaledToZero")


def test_a_prefetch_whose_pod_was_evicted_is_made_again() -> None:
    """Its Job is Complete and the message lost with the pod that had it: the evicted one will never speak."""
    world = World()
    world.apply(example("latency"))
    (job,) = world.under_way("fetch")
    (pod,) = world.cluster.owned("Pod", job)
    pod["status"] = {"phase": "Failed", "reason": "Evicted", "containerStatuses": []}
    job["status"] = {
        "conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-21T10:01:00Z"}]
    }
    world.wait(1)
    world.prefetch_ends()
    assert world.condition("CacheReady") == "True Cached"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", "NoCapacity"),
        ("0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector.",
         "NoCapacity"),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", "NoCapacity"),
        ("0/2 nodes are available: 2 node(s) had taint(s) {node.kubernetes.io/unreachable: }.", "NoCapacity"),
        ("0/2 nodes are available: 2 node(s) had untolerated taint(s) {team: red}.", "Unplaceable"),
        ('0/2 nodes are available: persistentvolumeclaim "nobody" not found. not found', "Unplaceable"),
        ("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", "Unplaceable"),
    ],
)  # fmt: skip
def test_room_comes_back_by_itself_and_a_node_that_nobody_has_does_not(words: str, reason: str, says: Says) -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    unplaced(world, words)
    assert world.condition("Ready") == f"False {reason}"
    says(world.message("Ready"))


def unplaced(world: World, words: str) -> None:
    """The scheduler finds no node for a server, for a reason of its own."""
    unscheduled: Manifest = {"type": "PodScheduled", "status": "False", "message": words}
    unscheduled["lastTransitionTime"] = timestamp(world.cluster.now)
    world.cluster.nodes = {}
    for pod in world.cluster.of("Pod", component="server"):
        pod["spec"].pop("nodeName", None)
    world.cluster.unplaced = unscheduled
    world.wait(1)


@told
def test_what_somebody_adds_to_the_servers_is_told(world: World) -> None:
    """`kubectl set env`: another's field, which our apply leaves alone, and no run has measured it."""
    promoted(world, "latency")
    template = world.cluster.objects["Deployment", f"{NAME}-latency"]["spec"]["template"]["spec"]
    template["containers"][0]["env"].append({"name": "FOO", "value": "bar"})
    world.wait(1)
    world.servers_ready()
    assert (world.condition("Ready"), world.status()["state"]) == ("True Drifted", "Drifted")
    assert "env FOO" in world.message("Ready")


@told
def test_prompts_that_are_not_there_take_no_accelerators(world: World) -> None:
    """It serves; no round is started to find out what a look tells; it goes on by itself once they are there."""
    manifest = example("latency")
    manifest["spec"]["benchmark"]["datasets"] = [{"name": "ours", "source": "configMap://prompts/ours.jsonl"}]
    world.config_maps = {"prompts": None}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    absent = "spec.benchmark.datasets[0].source: there is no ConfigMap prompts in namespace models"
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True PromptsMissing")
    assert absent in world.message("Stalled")
    assert (world.condition("Measuring"), world.runs("latency")) == ("False WaitingForPrompts", [])

    world.config_maps = {"prompts": frozenset({"other.jsonl"})}
    world.until_wake()
    assert "ours.jsonl" in world.message("Stalled")

    world.config_maps = {"prompts": frozenset({"ours.jsonl"})}
    world.until_wake()
    assert (world.condition("Measuring"), world.condition("Stalled")) == ("True Measuring", "")


def test_an_image_of_another_version_is_noted(says: Says) -> None:
    """Options and rules were held against the version that the spec names."""
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    assert "notes" not in world.status()
    (run,) = world.runs("latency")
    run["status"]["engineVersion"] = "0.9.9"
    world.wait(1)
    (note,) = world.status()["notes"]
    assert note.startswith("spec.engine.version: ")
    says(note)
    run["status"]["engineVersion"] = ""  # no server has come up to say it
    world.wait(1)
    assert "notes" not in world.status()


def test_why_a_run_failed_is_told_where_a_person_looks(says: Says) -> None:
    """Not only that it did, and the run's name."""
    world = World()
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(wide=half_failed)
    assert world.condition("Decided") == "False BenchmarkError"
    says(world.message("Decided"))
