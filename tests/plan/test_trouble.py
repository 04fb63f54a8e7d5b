"""User stories of what goes wrong: what is undone, what waits, what a person is told (as test_stories)."""

from dataclasses import replace

from tests.support.answers import HEAD_FACTS, died, half_failed
from tests.support.stories import measuring, promoted, told
from tests.support.world import World, example

NAME = "qwen3-coder-next"


@told
def test_an_unknown_engine_flag(world: World) -> None:
    """Known to engine.version and not to the image, which refuses it: trying again changes nothing, so a person is told
    what the server said."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.server_exits("latency", 2, "usage: launch_server.py\nerror: unrecognized arguments: --attention-backend\n")

    assert (world.condition("Stalled"), world.condition("Ready")) == ("True ServerFailed", "False Crashing")
    assert "--attention-backend" in world.message("Stalled")


@told
def test_a_flag_that_no_engine_knows(world: World) -> None:
    """Refused before anything is brought or started."""
    manifest = example("latency")
    manifest["spec"]["engine"]["args"].append("--fast-please")
    world.apply(manifest)
    assert world.condition("Stalled") == "True InvalidSpec"
    assert "--fast-please" in world.message("Stalled")
    assert not world.under_way("fetch")


@told
def test_no_gpu_is_left_for_a_server(world: World) -> None:
    """One pool is served, the other waits in the scheduler's own words; nobody needs to do anything but find GPUs."""
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    world.wait(60)

    assert world.condition("Ready") == "False NoCapacity"
    assert world.condition("Stalled") == ""


@told
def test_no_gpu_is_left_for_a_round(world: World) -> None:
    """It serves; the run waits, and goes on when there is room."""
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Measuring")) == ("True Serving", "False WaitingForCapacity")

    world.cluster.nodes = {"gpu-0": 4, "gpu-1": 4}
    world.rounds_placed()
    assert world.condition("Measuring") == "True Measuring"


@told
def test_the_prefetch_fails(world: World) -> None:
    """No such repository. When the Job is deleted it is tried again."""
    world.apply(example("latency"))
    world.prefetch_fails("hf://Qwen/Qwen3-Coder-Next@main: no such repository, or it needs a token (HTTP 401)")
    assert (world.condition("Stalled"), world.condition("CacheReady")) == (
        "True PrefetchFailed",
        "False PrefetchFailed",
    )

    world.delete("Job", world.cluster.of("Job", component="fetch")[0]["metadata"]["name"])
    world.prefetch_ends()
    assert (world.condition("Stalled"), world.condition("CacheReady")) == ("", "True Cached")


@told
def test_the_prefetch_is_lost(world: World) -> None:
    """Its pod is gone before anybody read what it found: it runs again, and finds the models there."""
    world.apply(example("latency"))
    world.prefetch_vanishes()
    world.prefetch_ends()
    assert world.condition("CacheReady") == "True Cached"


@told
def test_the_head_is_made_for_another_target(world: World) -> None:
    """Seen in the models' own facts, before any GPU is taken."""
    world.apply(example("latency"))
    world.prefetch_ends(head=replace(HEAD_FACTS, hidden_size=4096))
    assert world.condition("Stalled") == "True PreflightFailed"
    assert not world.cluster.of("Deployment")


@told
def test_an_argument_that_paceline_owns(world: World) -> None:
    """Refused at once, and what serves goes on serving."""
    promoted(world, "latency")
    world.edit("--tp=8", lambda spec: spec["engine"]["args"].append("--tp=8"))
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True InvalidSpec", "True Serving")

    world.edit("--tp=8 is taken out", lambda spec: spec["engine"]["args"].pop())
    assert world.condition("Promoted") == "True AllPromoted"


@told
def test_a_spec_that_cannot_be_read(world: World) -> None:
    """Let in by an older CRD. The commits that were pinned outlive the mistake, so nothing is measured again."""
    promoted(world, "latency")
    (job,) = world.cluster.of("Job", component="fetch")
    world.cluster.delete("Job", job["metadata"]["name"])
    models, tree = world.artifacts(), example("latency")["spec"]["candidates"][0]["tree"]
    world.edit("an infeasible tree", lambda spec: spec["candidates"][0]["tree"].update(numDraftTokens=999))
    assert world.condition("Stalled") == "True InvalidSpec"

    world.edit("the old tree", lambda spec: spec["candidates"][0]["tree"].update(tree))
    assert world.artifacts() == models
    assert world.condition("Promoted") == "True AllPromoted"


@told
def test_a_name_is_taken(world: World) -> None:
    """A stranger's Deployment is never taken over."""
    spec = {"replicas": 0, "template": {"metadata": {"labels": {}}}}
    world.cluster.apply({"kind": "Deployment", "metadata": {"name": f"{NAME}-latency"}, "spec": spec})
    world.apply(example("latency"))
    world.prefetch_ends()
    assert world.condition("Stalled") == "True NameConflict"

    world.delete("Deployment", f"{NAME}-latency")
    world.servers_ready()
    assert world.condition("Ready") == "True Serving"


@told
def test_half_of_the_requests_fail(world: World) -> None:
    """Fast answers to half of the questions are no evidence: Error, never a verdict."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(wide=half_failed)
    assert world.outcome("latency") == "Error"
    assert (world.condition("Decided"), world.serving("latency")) == ("False BenchmarkError", "baseline")


@told
def test_the_baselines_requests_fail(world: World) -> None:
    """Nothing can be compared with it."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(baseline=half_failed)
    assert world.outcome("latency") == "Error"


@told
def test_a_candidates_server_dies(world: World) -> None:
    """Twice, in the middle: that candidate is out for Error, the other one goes on and wins."""
    measuring(world, "throughput")
    for _ in range(2):
        world.round_ends(wide=died)
    world.round_ends()
    assert world.outcome("throughput") == "Promote"

    world.servers_ready()
    assert world.serving("throughput") == "narrow"


@told
def test_a_round_gives_nothing(world: World) -> None:
    """Its node was drained: the round is tried again and nothing else is lost."""
    measuring(world, "latency")
    world.round_ends()
    world.round_dies("latency", 137, "")
    world.until_wake()
    for _ in range(2):
        world.round_ends()
    (run,) = world.runs("latency")
    assert [(record["round"], record["try"], bool(record["error"])) for record in run["rounds"]] == [
        (0, 0, False),
        (1, 0, True),
        (1, 1, False),
        (2, 0, False),
    ]
    assert world.outcome("latency") == "Promote"


@told
def test_three_rounds_in_a_row_give_nothing(world: World) -> None:
    """Then it is not bad luck. The candidate is not blamed."""
    measuring(world, "latency")
    for _ in range(3):
        world.round_dies("latency", 1, "PermissionError: [Errno 13] /ctl/heartbeat")
        world.wait(1)
    assert world.outcome("latency") == "Error"
    assert world.condition("Promoted") == "False NotDecided"


@told
def test_a_candidate_is_not_ready_in_time(world: World) -> None:
    """It was measured, but does not start where it is to serve: undone and held; the baseline serves again."""
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.server_exits("latency", 1, "torch.OutOfMemoryError: CUDA out of memory.")
    world.until_wake()
    world.servers_ready()

    assert world.serving("latency") == "baseline"
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "False Held")
    assert world.pool("latency")["holds"][0]["reason"] == "NotReady"


@told
def test_suspended_while_a_candidate_does_not_start(world: World) -> None:
    """Undone all the same: a frozen pool is no pool without servers."""
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.until_wake()
    world.servers_ready()
    assert world.serving("latency") == "baseline"


@told
def test_a_server_dies_long_after(world: World) -> None:
    """What was promoted stays promoted; the pod comes back by itself."""
    promoted(world, "latency")
    world.wait(600)
    world.server_exits("latency", 137, "")
    assert world.condition("Ready") == "False ServersStarting"

    world.servers_ready()
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "wide")


@told
def test_a_server_is_lost_while_a_new_head_is_brought(world: World) -> None:
    """The rendering that served is kept: it is put back at once, and Ready says what is there and not what was."""
    promoted(world, "latency")
    world.edit("another target", lambda spec: spec["target"].update(revision="v2"))
    assert (world.condition("Ready"), world.condition("CacheReady")) == ("True Serving", "False Prefetching")

    world.delete("Deployment", f"{NAME}-latency")
    assert world.condition("Ready") == "False ServersStarting"
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("CacheReady")) == ("True Serving", "False Prefetching")


@told
def test_suspended_while_another_head_is_brought(world: World) -> None:
    """A run rests although it is not known yet whether it is still asked for; it is not ended, as the target may be
    taken back."""
    measuring(world, "latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("another target", lambda spec: spec["target"].update(revision="v2"))
    (run,) = world.runs("latency")
    assert not world.condition("Failed", run)
    assert run["metadata"]["annotations"]["paceline.dev/suspended"] == "true"


@told
def test_the_address_is_taken(world: World) -> None:
    """Nothing is measured, and nobody says so, while somebody else has the name of the pool's Service."""
    world.apply(example("latency"))
    world.prefetch_ends()
    world.delete("Service", f"{NAME}-latency")
    taken = {"kind": "Service", "metadata": {"name": f"{NAME}-latency", "labels": {}}, "spec": {}}
    world.cluster.objects["Service", f"{NAME}-latency"] = taken
    world.servers_ready()
    assert (world.condition("Stalled"), world.condition("Measuring")) == (
        "True NameConflict",
        "False WaitingForCapacity",
    )
    assert (world.runs("latency"), world.memory("latency").get("attempts")) == ([], None)


@told
def test_a_candidates_server_refuses_its_arguments(world: World) -> None:
    """Trying again changes nothing: it is undone at once, not at its deadline."""
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.server_exits("latency", 2, "error: argument --speculative-eagle-topk: invalid choice: 4")
    assert world.pool("latency")["holds"][0]["reason"] == "NotReady"
    world.servers_ready()
    assert world.serving("latency") == "baseline"
