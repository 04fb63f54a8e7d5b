"""A round becomes a BenchmarkRound before it counts, and these alone are what a run remembers (0102)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.in_status import records as in_status
from tests.support.messages import Says
from tests.support.stories import measuring
from tests.support.world import World

from paceline.api.round import Round
from paceline.core.record import from_status
from paceline.evidence import fingerprint
from paceline.plan import run
from paceline.plan.objects import ATTEMPT, attempt
from paceline.plan.run.next_round import next_try
from paceline.plan.run.rounds import counting_rounds, of_its_question
from paceline.plan.step import Apply, Delete, Plan

Manifest = dict[str, Any]
MINUTE = timedelta(minutes=1)


def world_with(rounds: int) -> World:
    """One pool, whose run has so many rounds."""
    world = World()
    measuring(world, "latency")
    for _ in range(rounds):
        world.round_ends()
    return world


def the_run(world: World) -> Manifest:
    (found,) = world.cluster.of("BenchmarkRun")
    return found


def rounds(world: World) -> list[Manifest]:
    return world.cluster.of("BenchmarkRound")


def jobs(world: World) -> int:
    return len(world.cluster.of("Job", component="round"))


def planned(world: World, **changes: Any) -> Plan:
    snapshot = world.run_snapshot(the_run(world)["metadata"]["name"])
    return run.plan(replace(snapshot, **changes), world.cluster.now)


def applied(plan: Plan) -> list[str]:
    return [action.manifest["kind"] for action in plan.actions if isinstance(action, Apply)]


def test_a_round_counts_once_it_is_recorded() -> None:
    """The pass that finds its result writes it and nothing else; the next one counts it and starts another."""
    world = world_with(0)
    world.away = True
    world.round_ends()
    finds = planned(world)
    assert (applied(finds), finds.status, finds.requeue_at) == (["BenchmarkRound"], None, world.cluster.now)
    assert finds.events == (), "told once it counts: an Event before it would be told again after each crash"
    world.reconcile(("BenchmarkRun", the_run(world)["metadata"]["name"]))
    counts = planned(world)
    assert counts.status is not None
    assert (applied(counts), counts.status["progress"]["round"]) == (["Job"], 1)
    assert [event.reason for event in counts.events] == ["RoundMeasured"]


def test_a_round_that_cannot_be_recorded_is_told_and_waits(says: Says) -> None:
    """Its Job stays; a run that nobody wants any more does not wait for it."""
    world = world_with(0)
    world.away = True
    world.round_ends()
    (name,) = (action.manifest["metadata"]["name"] for action in planned(world).actions if isinstance(action, Apply))
    refusals = {("BenchmarkRound", name): "exceeded quota: count/benchmarkrounds.paceline.dev=0"}
    told = planned(world, refusals=refusals)
    assert told.status is not None
    assert applied(told) == ["BenchmarkRound"]
    says(told.status["conditions"][0]["message"])
    manifest = the_run(world)
    unwanted = {**manifest["metadata"], "annotations": {"paceline.dev/superseded": "true"}}
    ended = planned(world, refusals=refusals, manifest={**manifest, "metadata": unwanted})
    assert ended.status is not None
    assert [one["reason"] for one in ended.status["conditions"]] == ["Superseded"]


@pytest.mark.parametrize("measured", [2, 3], ids=["under way", "finished"])
def test_a_run_without_its_status_comes_to_the_same(measured: int) -> None:
    """Whatever is lost, no round is measured twice."""
    world = world_with(measured)
    before, started = dict(the_run(world)["status"]), jobs(world)
    del the_run(world)["status"]
    world.wait(1)
    after = the_run(world)["status"]
    assert {key: after.get(key) for key in ("results", "verdict", "armRounds", "cost", "noise")} == {
        key: before.get(key) for key in ("results", "verdict", "armRounds", "cost", "noise")
    }
    assert jobs(world) == started


def restored(world: World) -> None:
    """As Velero does it: without status, owners and Jobs, under new uids."""
    for kind in ("Job", "Pod"):
        for one in world.cluster.of(kind, component="round"):
            world.cluster.objects.pop((kind, one["metadata"]["name"]))
    for one in (the_run(world), *rounds(world)):
        one["metadata"] = {**one["metadata"], "uid": f"restored-{one['metadata']['uid']}", "ownerReferences": []}
        one.pop("status", None)


def test_a_restored_run_is_judged_again_from_its_rounds() -> None:
    world = world_with(3)
    verdict, uids = the_run(world)["status"]["verdict"], {one["metadata"]["uid"] for one in rounds(world)}
    restored(world)
    world.wait(1)
    assert (the_run(world)["status"]["verdict"], jobs(world)) == (verdict, 0)
    owners = [one["metadata"]["ownerReferences"] for one in rounds(world)]
    assert [[owner["uid"] for owner in of] for of in owners] == [[the_run(world)["metadata"]["uid"]]] * 3
    assert {one["metadata"]["uid"] for one in rounds(world)} == {f"restored-{uid}" for uid in uids}


def test_rounds_of_a_deleted_run_of_the_same_name_count_for_nothing() -> None:
    """Its garbage is collected later. The next round of that name is refused until then."""
    world = world_with(2)
    the_run(world)["metadata"]["uid"] = "another"
    assert world.run_snapshot(the_run(world)["metadata"]["name"]).rounds == ()


def test_rounds_of_another_question_count_for_nothing() -> None:
    world = world_with(2)
    for one in rounds(world):
        one["spec"] = {**one["spec"], "fingerprint": "0123456789"}
    assert world.run_snapshot(the_run(world)["metadata"]["name"]).rounds == ()


def test_a_round_of_arms_that_the_run_does_not_have_counts_for_nothing() -> None:
    """Anybody may have written it."""
    world = world_with(2)
    restored(world)
    foreign = rounds(world)[0]
    foreign["spec"] = {**foreign["spec"], "points": [{**foreign["spec"]["points"][0], "arm": "other"}]}
    plan = planned(world)
    assert plan.status is not None
    assert (plan.status["progress"]["round"], applied(plan)) == (1, ["Job"])


def test_a_round_that_does_not_fit_hides_none_of_the_runs_own() -> None:
    """It has the number of the round under way, and another name."""
    world = world_with(1)
    foreign = {**rounds(world)[0], "metadata": {**rounds(world)[0]["metadata"], "name": "foreign"}}
    points = [{**foreign["spec"]["points"][0], "arm": "other"}]
    world.cluster.apply({**foreign, "spec": {**foreign["spec"], "round": 1, "points": points}})
    world.round_ends()
    mine = [one["spec"]["round"] for one in rounds(world) if one["metadata"]["name"] != "foreign"]
    assert (mine, the_run(world)["status"]["progress"]["round"]) == ([0, 1], 2)


def test_rounds_that_cannot_be_read_are_told_and_none_starts(says: Says) -> None:
    """A right of an older release, a CRD that is not there."""
    world = world_with(0)
    plan = planned(world, unread="403 Forbidden: benchmarkrounds", jobs=())
    assert plan.status is not None
    assert plan.actions == ()
    says(plan.status["conditions"][0]["message"])


def test_a_run_that_measures_takes_nothing_over_any_more() -> None:
    """A source that goes on would take the number of the round under way."""
    world = world_with(1)
    source = the_run(world)
    world.cluster.now += MINUTE
    snapshot = world.run_snapshot(source["metadata"]["name"])
    asks = {**source["spec"], "gate": {**source["spec"]["gate"], "roundsOf": "source"}}
    other = {**source, "spec": asks, "metadata": {**source["metadata"], "name": "other", "uid": "other"}, "status": {}}
    taking = replace(snapshot, manifest=other, objects=(), source=source, source_objects=tuple(rounds(world)))
    assert applied(run.plan(replace(taking, jobs=()), world.cluster.now)) == ["BenchmarkRound"]
    under_way = tuple(job for job in snapshot.jobs if not job.ended)
    assert applied(run.plan(replace(taking, jobs=under_way), world.cluster.now)) == []


def test_a_round_whose_log_is_waited_for_outlives_a_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds no accelerator any more, and its numbers are whole."""
    world = world_with(1)
    world.away = True
    world.round_ends()
    seen = World.run_snapshot

    def without_log(self: World, name: str) -> run.Snapshot:
        found = seen(self, name)
        waits = tuple(replace(one, log="", unread="no route") if one.log else one for one in found.jobs)
        return replace(found, jobs=waits)

    with monkeypatch.context() as while_unreachable:
        while_unreachable.setattr(World, "run_snapshot", without_log)
        world.away = False
        world.edit("suspended", lambda spec: spec.update(suspend=True))
        assert len(rounds(world)) == 1
    world.edit("resumed", lambda spec: spec.pop("suspend"))
    assert [one["spec"]["round"] for one in rounds(world)] == [0, 1]
    assert not any(one["spec"].get("error") for one in rounds(world))


def test_a_failed_try_that_somebody_deletes_gives_its_number_to_no_other() -> None:
    """Two tries that failed, of which the first is tidied up: the next is the third, or its Job would be one that has
    ended."""
    records = in_status([{"round": 0, "try": 1, "error": "JobDeleted"}])
    assert next_try(records) == (0, 2)
    assert next_try(in_status([{"round": 0, "try": 0}, {"round": 0, "try": 1, "error": "x"}])) == (1, 0)


def test_a_strangers_round_of_the_same_number_gives_way_to_the_runs_own() -> None:
    """Written while the Job of that round runs: the verdict is the same with the objects that there are."""
    world = world_with(0)
    name = the_run(world)["metadata"]["name"]
    spec = {"round": 0, "try": 0, "job": "", "fingerprint": fingerprint(the_run(world)["spec"])}
    world.cluster.objects["BenchmarkRound", "aaa"] = {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRound",
        "metadata": {"name": "aaa", "labels": {"paceline.dev/run": name}},
        "spec": spec,
    }
    world.round_ends()
    assert f"{name}-0-0" in {one["metadata"]["name"] for one in rounds(world)}
    (first, *_) = rounds_of_run(world)
    assert (first.round, first.job) == (0, f"{name}-0-0")


def rounds_of_run(world: World) -> tuple[Round, ...]:
    return counting_rounds(the_run(world), of_its_question(the_run(world), rounds(world)))


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 25, "-1", "x", "\u0662" * 9])
def test_an_attempt_that_nobody_has_counted_to_is_the_first(text: str) -> None:
    assert attempt({"metadata": {"annotations": {ATTEMPT: text}}}) == 1


def test_a_number_that_no_float_holds_is_not_read() -> None:
    assert from_status(Round, {"heldSeconds": 2**63 - 1}).held_seconds is None
    assert from_status(Round, {"heldSeconds": 2**53}).held_seconds == 2**53


def test_a_job_that_a_run_of_the_name_has_left_gives_way_to_this_runs_own() -> None:
    """Deleted with --cascade=orphan: what remains of its name cannot be changed into another Job."""
    left = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "left", "namespace": "default", "uid": "1"}}
    first, *_ = planned(world_with(1), left=(left,)).actions
    assert isinstance(first, Delete)
    assert first.item == left
