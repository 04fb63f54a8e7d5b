"""An arm's whole container is killed, and the pod ends: what the arms before it have told counts (as test_stories)."""

from dataclasses import replace

from tests.support.campaigns import LATENCY, THROUGHPUT
from tests.support.containers import arms_of
from tests.support.searched import Served, answered, begun, searching
from tests.support.stories import measuring, told
from tests.support.world import World

from paceline.api.round import rounds_of
from paceline.engines.pod_template import arm_container
from paceline.evidence import Failure, Replicate, RoundResult
from paceline.plan.run.killed import as_far_as_it_came
from paceline.plan.run.snapshot import End, RoundJob
from paceline.plan.run.statement import made_again, portable, statement, to_text


def records(world: World, pool: str) -> list[tuple[int, int, dict[str, bool]]]:
    """Round, try, and of each arm with points whether they are valid."""
    return [
        (one["round"], one["try"], {point["arm"]: point["valid"] for point in one["points"]})
        for one in world.runs(pool)[-1]["rounds"]
    ]


def order(world: World) -> list[str]:
    """The arms of the round under way."""
    (job,) = world.under_way("round")
    return [one["name"].removeprefix("arm-") for one in arms_of(world.pod_of(job))]


@told
def test_one_of_two_candidates_is_killed(world: World) -> None:
    """The baseline's points are kept, and the next round is without it: the other one had no turn. It may come again
    once, for a kill may be bad luck."""
    measuring(world, "throughput")
    world.truths = {"throughput": {**THROUGHPUT, "wide": THROUGHPUT["narrow"]}}
    assert order(world) == ["baseline", "narrow", "wide"]
    world.arm_is_killed("narrow")
    assert order(world) == ["baseline", "wide"]
    (killed,) = world.runs("throughput")[-1]["rounds"]
    assert [(one["arm"], one.get("reason", "")) for one in killed["replicates"]] == [
        ("baseline", ""), ("narrow", "OutOfMemory"),
    ]  # fmt: skip
    assert "not run: wide: the container arm-narrow exited with 137: OOMKilled" in killed["notes"]
    world.round_ends()
    assert set(order(world)) == {"baseline", "wide", "narrow"}
    world.arm_is_killed("narrow")
    while world.under_way("round"):
        assert "narrow" not in order(world)
        world.round_ends()
    said = world.runs("throughput")[-1]["status"]["verdict"]
    assert (said["outcome"], said["winner"]) == ("Promote", "wide")
    assert "narrow: the container arm-narrow exited with 137: OOMKilled" in said["message"]
    assert records(world, "throughput")[0] == (0, 0, {"baseline": True, "narrow": False})


def test_a_run_with_a_round_of_a_killed_arm_alone_is_evidence_for_others() -> None:
    world = World()
    measuring(world, "throughput")
    world.round_ends()
    world.arm_is_killed(order(world)[0])
    assert records(world, "throughput")[1] == (1, 0, {"narrow": False})
    while world.under_way("round"):
        world.round_ends()
    run = world.runs("throughput")[-1]
    # The client cannot name the release of a server that is killed before it is ready.
    rounds = tuple(replace(one, engine_version="") if one.round == 1 else one for one in rounds_of(run))
    made = statement(portable(run, rounds), rounds)
    assert made_again(to_text(made), world.cluster.now) == made


@told
def test_the_only_candidate_is_killed_again_and_again(world: World) -> None:
    """Two rounds, as for a server that ends by itself."""
    measuring(world, "latency")
    for _ in range(2):
        world.arm_is_killed("wide", "Error")
    assert not world.under_way("round")
    said = world.runs("latency")[-1]["status"]["verdict"]
    assert (said["outcome"], said["reason"]) == ("Error", "ServerCrashed")


@told
def test_the_only_candidate_is_killed_once(world: World) -> None:
    measuring(world, "latency")
    world.round_ends()
    world.arm_is_killed("wide")
    for _ in range(2):
        world.round_ends()
    assert world.outcome("latency") == "Promote"


@told
def test_a_baseline_is_killed(world: World) -> None:
    """The round is tried again, and not for ever."""
    measuring(world, "latency")
    for wait in (world.until_wake, world.until_wake, str):
        assert order(world)[0] == "baseline"
        world.arm_is_killed("baseline")
        wait()
    assert [(one["try"], one["reason"]) for one in world.runs("latency")[-1]["rounds"]] == [
        (0, "OutOfMemory"), (1, "OutOfMemory"), (2, "OutOfMemory"),
    ]  # fmt: skip
    assert world.outcome("latency") == "Error"


@told
def test_an_arm_is_killed_before_the_baseline_has_run(world: World) -> None:
    """Nothing can be compared: the round holds its failure and no more, and the next one is without it."""
    measuring(world, "throughput")
    world.round_ends()
    assert order(world) == ["narrow", "wide", "baseline"]
    world.arm_is_killed("wide")
    assert records(world, "throughput")[1] == (1, 0, {"wide": False})
    assert set(order(world)) == {"baseline", "narrow"}


def test_what_the_cluster_ends_is_no_arms_fault() -> None:
    """The kubelet kills what does not end in time."""
    world = World()
    measuring(world, "latency")
    world.round_shows("its pod is evicted", reason="Evicted", message="The node was low on resource: memory.")
    world.arm_is_killed("wide", "Error")
    assert [(one["try"], one["reason"]) for one in world.runs("latency")[-1]["rounds"]] == [(0, "Evicted")]


def test_in_a_search_no_baseline_is_needed() -> None:
    """Each point is of its own: what had been told counts, and the killed arm's loads count as failed."""
    world = begun(searching("latency"))
    answered(world, {"latency": Served("latency", 1)})
    first, second, third, *later = order(world)
    world.truths = {"latency": {arm: dict.fromkeys(LATENCY["wide"], 180.0) for arm in order(world)}}
    world.arm_is_killed(third)
    assert records(world, "latency")[-1][2] == {first: True, second: True, third: False}
    assert third not in order(world)
    assert {*order(world)} & {*later}


def test_no_baseline_has_to_stand_beside_a_point_of_a_search() -> None:
    world = begun(searching("latency"))
    answered(world, {"latency": Served("latency", 1)})
    (job,) = world.under_way("round")
    plan = RoundJob(job=job, pod=None).plan
    first, second, *later = (arm for arm in plan.arms if arm.candidate)
    told = RoundResult(round=1, try_=0, replicates=(Replicate(arm=first.name),))
    crashed = End(failure=Failure.ServerCrashed, line="it exited")
    asked = replace(plan, arms=(first, second, *later))
    found = as_far_as_it_came(asked, told, arm_container(second.name), crashed)
    assert found
    assert found[0].arms == (first, second)
    assert [one.failure for one in found[1].replicates] == [None, Failure.ServerCrashed]
