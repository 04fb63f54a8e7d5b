"""User stories: what the planners do, say and tell, pass by pass, in stories/NAME.yaml.

`PACELINE_GOLDEN=write pytest tests/plan` writes the files anew; the diff is what a review reads.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml
from tests.gate.campaigns import BASELINE_1
from tests.plan import golden
from tests.plan.answers import HEAD_FACTS, died, half_failed, noisy, nothing_accepted
from tests.plan.world import World, example, story

from paceline.api import Reason

STORIES = Path(__file__).with_name("stories")
NAME = "qwen3-coder-next"


def told(tell: Callable[[World], None]) -> Callable[[], None]:
    """A test: `tell` moves a world, and the passes it saw are the golden file of its name."""

    def test() -> None:
        world = World()
        tell(world)
        golden.check(STORIES / f"{tell.__name__.removeprefix('test_')}.yaml", story(world.told), tell.__doc__ or "")

    test.__name__, test.__doc__ = tell.__name__, tell.__doc__
    return test


def measuring(world: World, *pools: str) -> None:
    """The example with these pools, up to the first round under way; told is what comes after."""
    world.apply(example(*pools))
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()


def promoted(world: World, *pools: str) -> None:
    """And on until the candidates serve."""
    measuring(world, *pools)
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    world.told.clear()


@told
def test_both_pools_are_promoted(world: World) -> None:
    """One kubectl apply. The wide tree is faster for one user; under load it loses on terminal tasks, and the narrow
    one is promoted."""
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    world.servers_ready()

    assert (world.serving("latency"), world.serving("throughput")) == ("wide", "narrow")
    assert world.status()["summary"] == "latency=wide 1.36x throughput=narrow 1.03x"
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "True AllPromoted")


@told
def test_the_candidate_loses(world: World) -> None:
    """Slower than the baseline: the baseline stays, and that is no fault."""
    measuring(world, "latency")
    slower = {"baseline": BASELINE_1, "wide": {name: 0.93 * x for name, x in BASELINE_1.items()}}
    for _ in range(3):
        world.round_ends(truth=slower)

    assert world.serving("latency") == "baseline"
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "False BaselineFaster")
    assert world.condition("Stalled") == ""


@told
def test_noise_hides_the_effect(world: World) -> None:
    """Eight rounds on a crowded machine: no verdict either way, and the baseline stays."""
    measuring(world, "latency")
    even = {"baseline": BASELINE_1, "wide": {name: 1.06 * x for name, x in BASELINE_1.items()}}
    for _ in range(8):
        world.round_ends(truth=even, wide=noisy, baseline=noisy)

    assert world.outcome("latency") == "Inconclusive"
    assert world.condition("Decided") == "False Inconclusive"


@told
def test_an_unknown_engine_flag(world: World) -> None:
    """The engine refuses its arguments: trying again changes nothing, so a person is told what the server said."""
    manifest = example("latency")
    manifest["spec"]["engine"]["args"].append("--fast-please")
    world.apply(manifest)
    world.prefetch_ends()
    world.server_exits("latency", 2, "usage: launch_server.py\nerror: unrecognized arguments: --fast-please\n")

    assert (world.condition("Stalled"), world.condition("Ready")) == ("True ServerFailed", "False Crashing")
    assert "unrecognized arguments: --fast-please" in world.message("Stalled")


@told
def test_no_gpu_is_left_for_a_server(world: World) -> None:
    """One pool is served, the other waits in the scheduler's own words; nobody needs to do anything but find GPUs."""
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    world.wait(60)

    assert world.condition("Ready") == "False NoCapacity"
    assert "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in world.message("Ready")
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
def test_two_runs_and_room_for_one(world: World) -> None:
    """The second run keeps off the first one's node until that has ended; then it goes there."""
    world.cluster.nodes = {"gpu-0": 8, "gpu-1": 4}
    measuring(world, "latency")
    world.edit("another pool", lambda spec: spec["pools"].append(example("throughput")["spec"]["pools"][0]))
    world.servers_ready()
    assert world.condition("Complete", world.runs("throughput")[0]) == "False WaitingForCapacity"

    for _ in range(3):
        world.round_ends("latency")
    world.servers_ready()
    for _ in range(3):
        world.round_ends("throughput")
    world.servers_ready()
    assert world.condition("Promoted") == "True AllPromoted"


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
    models, tree = world.status()["models"], example("latency")["spec"]["pools"][0]["candidates"][0]["tree"]
    world.edit("an infeasible tree", lambda spec: spec["pools"][0]["candidates"][0]["tree"].update(numDraftTokens=999))
    assert world.condition("Stalled") == "True InvalidSpec"

    world.edit("the old tree", lambda spec: spec["pools"][0]["candidates"][0]["tree"].update(tree))
    assert world.status()["models"] == models
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
def test_a_head_that_accepts_nothing(world: World) -> None:
    """One complete round is enough: correct text at acceptance length 1.0 is a head of no use."""
    measuring(world, "latency")
    world.round_ends(wide=nothing_accepted)
    assert world.outcome("latency") == "Reject"
    assert world.condition("Promoted") == "False NothingAccepted"


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
    for _ in range(2):
        world.round_ends()
    (run,) = world.runs("latency")
    assert [(one["round"], one["try"], bool(one["error"])) for one in run["status"]["rounds"]] == [
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
    assert world.outcome("latency") == "Error"
    assert world.condition("Promoted") == "False NotDecided"


@told
def test_the_image_changes_while_a_candidate_serves(world: World) -> None:
    """What was shown of the old image says nothing about the new one: its baseline is served and measured again, and
    status never claims a promotion for the new generation meanwhile."""
    promoted(world, "latency")
    seen = len(world.told)
    world.edit("another image", lambda spec: spec["engine"].update(image="lmsysorg/sglang:v0.5.23.post1"))
    world.servers_ready()
    world.round_ends()
    assert world.serving("latency") == "baseline"
    assert not any(one.conditions.get("Promoted", "").startswith("True") for one in world.told[seen:])

    for _ in range(2):
        world.round_ends()
    world.servers_ready()
    assert world.condition("Promoted") == "True AllPromoted"


@told
def test_the_image_changes_in_the_middle_of_a_run(world: World) -> None:
    """The question is another one: its run is superseded, its round stopped and not kept."""
    measuring(world, "latency")
    world.round_ends()
    world.edit("another image", lambda spec: spec["engine"].update(image="lmsysorg/sglang:v0.5.23.post1"))
    world.servers_ready()

    old, new = world.runs("latency")
    assert (world.condition("Failed", old), world.condition("Complete", new)) == ("True Superseded", "False Measuring")
    assert [round["round"] for round in old["status"]["rounds"]] == [0]


@told
def test_suspended_in_the_middle_of_a_run(world: World) -> None:
    """Nothing more is measured, the round under way is not kept; later it goes on from the rounds there are."""
    measuring(world, "latency")
    world.round_ends()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    assert world.condition("Measuring") == "False Suspended"
    assert not world.under_way("round")

    world.edit("resume", lambda spec: spec.update(suspend=False))
    for _ in range(2):
        world.round_ends()
    assert len(world.runs("latency")) == 1
    assert world.outcome("latency") == "Promote"


@told
def test_suspended_while_a_candidate_serves(world: World) -> None:
    """Serving goes on as it is, whatever the spec says by now. Resumed, the new question is asked."""
    promoted(world, "latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    assert world.serving("latency") == "wide"
    assert len(world.runs("latency")) == 1

    world.edit("resume", lambda spec: spec.update(suspend=False))
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    assert len(world.runs("latency")) == 2


CODE_ALONE = [{"name": "code", "source": "builtin://code"}]


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
    assert world.pool("latency")["hold"]["reason"] == "NotReady"


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
def test_a_pool_is_removed(world: World) -> None:
    """Its servers, address and runs go; the other pool is left alone."""
    promoted(world)
    world.edit("without throughput", lambda spec: spec["pools"].pop())
    assert {found["metadata"]["name"] for found in world.cluster.of("Deployment")} == {f"{NAME}-latency"}
    assert world.status()["summary"] == "latency=wide 1.36x"


@told
def test_a_person_promotes(world: World) -> None:
    """mode: Manual. The verdict waits for a person, and stays when the request is taken away again."""
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(2):
        world.round_ends()
    world.told.clear()
    world.round_ends()
    assert (world.condition("Promoted"), world.serving("latency")) == ("False AwaitingPromote", "baseline")

    (request,) = world.requests("promote")
    world.annotate(*request)
    world.servers_ready()
    assert (world.condition("Promoted"), world.serving("latency")) == ("True AllPromoted", "wide")

    world.annotate(request[0], "")
    assert (world.condition("Promoted"), world.serving("latency")) == ("True AllPromoted", "wide")


@told
def test_nothing_is_served_until_decided(world: World) -> None:
    """promotion.untilDecided: Nothing. All GPUs are there to measure; Ready says that nothing serves."""
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"untilDecided": "Nothing"}
    world.apply(manifest)
    world.prefetch_ends()
    assert world.condition("Ready") == "False NothingServes"

    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "wide")


UNREACHED = {Reason.AcceptanceDropped: "said by the step that watches what is served; it comes with the guard"}
"""Reasons that no planner sets so far, and why they are there."""


def test_every_reason_is_reached_by_a_story() -> None:
    shown = {
        (condition, " ".join(said.split(":")[0].split()[1:]))
        for file in STORIES.glob("*.yaml")
        for one in yaml.safe_load(file.read_text())
        for condition, said in one.get("conditions", {}).items()
    }
    unreached = {reason for reason in Reason if (reason.value.condition, reason.text) not in shown}
    assert unreached == set(UNREACHED)


def test_every_golden_file_has_its_story() -> None:
    stories = {name.removeprefix("test_") for name, found in globals().items() if getattr(found, "__doc__", None)}
    assert {file.stem for file in STORIES.glob("*.yaml")} <= stories
