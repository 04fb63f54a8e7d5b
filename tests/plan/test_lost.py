"""A cluster is restored: statuses are gone and every object has another uid, and what was earned is still there."""

from tests.support.stories import promoted, told
from tests.support.world import World, example

from paceline.core.names import MANAGED_BY

LATER = "e" * 40
"""Where every branch is by then."""


def lose_the_status(world: World) -> None:
    """And with the prefetch's pod, which is long gone, all that knew the commits by heart."""
    for pod in world.cluster.of("Pod", component="fetch"):
        world.cluster.delete("Pod", pod["metadata"]["name"])
    world._deployed().pop("status")


@told
def test_a_status_that_is_lost_moves_no_model(world: World) -> None:
    """The commits stand in the run: they are fetched again (the volume may be lost, too), not what main is by now."""
    promoted(world, "latency")
    before = world.pool("latency")["serving"]["revision"]
    lose_the_status(world)
    world.settle("the status is lost", 1)
    world.prefetch_ends(today=LATER)
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["serving"]["revision"]) == ("wide", before)
    assert len(world.runs("latency")) == 1


def test_under_a_new_question_what_the_servers_run_stays_theirs() -> None:
    """Whoever restores may have edited the gate, too: a run on the same server has promoted what the servers run."""
    world = World()
    promoted(world, "latency")
    world.edit(
        "another dataset",
        lambda spec: spec.update(benchmark={"datasets": [{"name": "chat", "source": "builtin://chat"}]}),
    )
    world._deployed().pop("status")
    world.settle("the status is lost", 1)
    assert (world.memory("latency")["target"]["arm"], world.serving("latency")) == ("wide", "wide")


def test_without_a_run_what_is_kept_of_the_servers_tells() -> None:
    """Believed because the spec at these commits is the very revision that was kept."""
    world = World()
    promoted(world, "latency")
    models = world.artifacts()
    for run in world.runs("latency"):
        world.cluster.delete("BenchmarkRun", run["metadata"]["name"])
    lose_the_status(world)
    world.settle("the status is lost", 1)
    world.prefetch_ends(today=LATER)
    assert [model["commit"] for model in world.artifacts()] == [model["commit"] for model in models]


def test_of_another_revision_nothing_is_read_back() -> None:
    """The spec was changed as well: whatever v2 is, it is not what main was."""
    world = World()
    promoted(world, "latency")
    before = [model["commit"] for model in world.artifacts()]
    lose_the_status(world)
    world.edit("another revision", lambda spec: spec["target"].update(revision="v2"))
    world.prefetch_ends(today=LATER)
    now = [model["commit"] for model in world.artifacts()]
    assert [was == commit for was, commit in zip(before, now, strict=True)] == [False, True]


@told
def test_an_owner_that_was_restored_adopts_what_names_it(world: World) -> None:
    """It has another uid. The servers are its own all the same, before the garbage collector takes them."""
    promoted(world, "latency")
    deployed = world._deployed()
    deployed["metadata"]["uid"] = "another-uid"
    deployed.pop("status")
    world.settle("a backup is restored", 1)
    owners = [owner["uid"] for owner in world.cluster.of("Deployment")[0]["metadata"]["ownerReferences"]]
    assert "another-uid" in owners
    if world.under_way("fetch"):
        world.prefetch_ends(today=LATER)
    world.servers_ready()
    assert (world.condition("Stalled"), world.serving("latency")) == ("", "wide")
    assert len(world.runs("latency")) == 1


def test_what_was_restored_without_any_owner_is_adopted_too() -> None:
    """Velero restores labels and annotations, and of an object's metadata no more than that."""
    world = World()
    promoted(world, "latency")
    deployed = world._deployed()
    (pod,) = world.cluster.of("Pod", component="server")
    deployed["metadata"]["uid"] = "another-uid"
    deployed.pop("status")
    for (kind, _), child in world.cluster.objects.items():
        if kind in ("Deployment", "Service", "ControllerRevision", "BenchmarkRun"):
            del child["metadata"]["ownerReferences"]
    world.settle("a backup is restored", 1)
    if world.under_way("fetch"):
        world.prefetch_ends(today=LATER)
    world.servers_ready()
    assert (world.condition("Stalled"), world.serving("latency")) == ("", "wide")
    assert (len(world.runs("latency")), world.cluster.of("Pod", component="server")) == (1, [pod])


@told
def test_a_namespace_that_is_restored_comes_to_the_same_servers(world: World) -> None:
    """As Velero restores it: without any status, under new uids, without owners, Jobs and pods; the volume is empty.
    The models are fetched at their commits, the run is judged from its rounds, and nothing is measured again."""
    promoted(world, "latency")
    (run,), serving = world.runs("latency"), world.pool("latency")["serving"]
    restored(world)
    world.settle("the namespace is restored", 1)
    world.prefetch_ends(today=LATER)
    world.servers_ready()
    world.servers_ready()
    (again,) = world.runs("latency")
    assert (again["status"]["verdict"], again["rounds"]) == (run["status"]["verdict"], run["rounds"])
    now = world.pool("latency")["serving"]
    assert {key: now[key] for key in ("arm", "revision", "evidence")} == {
        key: serving[key] for key in ("arm", "revision", "evidence")
    }
    assert world.cluster.of("Job", component="round") == []
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "")


def restored(world: World) -> None:
    for (kind, name), one in list(world.cluster.objects.items()):
        if kind in ("Job", "Pod", "PersistentVolumeClaim"):
            world.cluster.objects.pop((kind, name))
            continue
        one["metadata"] = {**one["metadata"], "uid": f"restored-{one['metadata']['uid']}"}
        one["metadata"].pop("ownerReferences", None)
        one.pop("status", None)


def test_a_strangers_object_is_not_adopted() -> None:
    """Its name is that of ours, its owner is not."""
    world = World()
    world.apply(example("latency"))
    spec = {"replicas": 0, "template": {"metadata": {"labels": {}}}}
    stranger = {"kind": "Workflow", "name": "qwen3-coder-next", "uid": "a-strangers"}
    labels = {"paceline.dev/deployment": "qwen3-coder-next", **MANAGED_BY}
    metadata = {"name": "qwen3-coder-next-latency", "labels": labels, "ownerReferences": [stranger]}
    world.cluster.apply({"kind": "Deployment", "metadata": metadata, "spec": spec})
    world.prefetch_ends()
    assert world.condition("Stalled") == "True NameConflict"


def test_an_object_without_owner_that_does_not_say_that_we_made_it_is_not_adopted() -> None:
    world = World()
    world.apply(example("latency"))
    spec = {"replicas": 0, "template": {"metadata": {"labels": {}}}}
    labels = {"paceline.dev/deployment": "qwen3-coder-next"}
    world.cluster.apply(
        {"kind": "Deployment", "metadata": {"name": "qwen3-coder-next-latency", "labels": labels}, "spec": spec}
    )
    world.prefetch_ends()
    assert world.condition("Stalled") == "True NameConflict"
