"""User stories: what the planners do, say and tell, pass by pass, in stories/NAME.yaml.

`PACELINE_GOLDEN=write pytest tests/plan` writes the files anew; the diff is what a review reads.
"""

from tests.support.answers import noisy, nothing_accepted
from tests.support.campaigns import BASELINE_1
from tests.support.down import at_once
from tests.support.edits_of_specs import CODE_ALONE
from tests.support.stories import measuring, promoted, told
from tests.support.world import TRUTHS, World, example

NAME = "qwen3-coder-next"


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
def test_two_runs_and_room_for_one(world: World) -> None:
    """They take turns on it, round by round: a round that waits for another one's end is no try, and no run leaves the
    other without its verdict."""
    world.cluster.nodes = {"gpu-0": 8, "gpu-1": 4}
    measuring(world, "latency")
    both = {field: example()["spec"][field] for field in ("candidates", "pools")}
    world.edit("another pool", lambda spec: spec.update(both))
    world.servers_ready()
    assert world.condition("Complete", world.runs("throughput")[0]) == "False WaitingForCapacity"

    for _ in range(6):
        assert len([job for job in world.under_way("round") if "nodeName" in world.pod_of(job)["spec"]]) == 1
        world.round_ends()
    for _ in range(2):  # there is room for one server more, not for one of each pool
        world.servers_ready()
    assert world.condition("Promoted") == "True AllPromoted"
    rounds = [record for pool in TRUTHS for record in world.runs(pool)[0]["rounds"]]
    assert [(record["node"], record.get("reason", "")) for record in rounds] == [("gpu-0", "")] * 6


@told
def test_a_prefetch_is_given_its_token(world: World) -> None:
    """A person does what the message says, and that is all: another environment is another Job."""
    world.apply(example("latency"))
    world.prefetch_fails("gated; give a token in cache.tokenSecretRef", source="hf://Qwen/Qwen3-Coder-Next")
    assert world.condition("Stalled") == "True PrefetchFailed"

    world.edit("a token", lambda spec: spec["cache"].update(env=[{"name": "HF_TOKEN", "value": "a token"}]))
    assert world.condition("CacheReady") == "False Prefetching"
    world.prefetch_ends()
    assert world.condition("CacheReady") == "True Cached"


@told
def test_the_hub_is_down_for_a_while(world: World) -> None:
    """Nobody needs to do anything: five minutes after its failure the prefetch is tried again."""
    world.apply(example("latency"))
    world.prefetch_fails("https://huggingface.co answered 503", code=1, source="hf://Qwen/Qwen3-Coder-Next")
    world.until_wake()
    assert world.condition("CacheReady") == "False Prefetching"
    world.prefetch_ends()
    assert world.condition("CacheReady") == "True Cached"


@told
def test_a_head_that_accepts_nothing(world: World) -> None:
    """One complete round is enough: correct text at acceptance length 1.0 is a head of no use."""
    measuring(world, "latency")
    world.round_ends(wide=nothing_accepted)
    assert world.outcome("latency") == "Reject"
    assert world.condition("Promoted") == "False NothingAccepted"


@told
def test_the_image_changes_while_a_candidate_serves(world: World) -> None:
    """What was shown of the old image says nothing about the new one: its baseline is served and measured again, and
    status never claims a promotion for the new generation meanwhile."""
    promoted(world, "latency")
    seen = len(world.told)
    world.edit("another image", at_once("lmsysorg/sglang:v0.5.23.post1"))
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
    world.edit("another image", at_once("lmsysorg/sglang:v0.5.23.post1"))
    world.servers_ready()

    old, new = world.runs("latency")
    assert (world.condition("Failed", old), world.condition("Complete", new)) == ("True Superseded", "False Measuring")
    assert [round["round"] for round in old["rounds"]] == [0]


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
    """Serving goes on as it is, whatever the spec says by now. Resumed, the new question is asked beside it."""
    promoted(world, "latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    assert world.serving("latency") == "wide"
    assert len(world.runs("latency")) == 1

    world.edit("resume", lambda spec: spec.update(suspend=False))
    assert world.serving("latency") == "wide"
    assert len(world.runs("latency")) == 2


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
