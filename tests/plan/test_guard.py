"""Speculation that stops paying is told, and falls back to the baseline where the guard is to; nothing flaps."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.plan.test_earned import longer
from tests.support.campaigns import BASELINE_32, LATENCY, THROUGHPUT
from tests.support.down import NAME, RETRY, arm, hold
from tests.support.guard import DAY, dropped, guarded, holds, hung, judged, operator_restarts, promoted_anyway
from tests.support.planned import deployment_pools
from tests.support.runs import made_by
from tests.support.stories import measuring, promoted, told
from tests.support.world import World

from paceline.api.status import ExpectedTraffic, SpeculativeDeploymentStatus
from paceline.core import Adaptive
from paceline.core.record import from_status
from paceline.plan.deployment.degraded import watched_pools
from paceline.plan.step import parse_time
from paceline.watch import JudgementKind


def events(world: World) -> list[str]:
    return [event.partition(":")[0] for one in world.told for event in one.events]


@told
def test_acceptance_drops_and_a_day_later_the_candidate_is_shown_anew(world: World) -> None:
    """The guard falls back at once, and asks again only once: the first run of the next day promotes the candidate."""
    guarded(world=world)
    dropped(world)
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == (
        "baseline",
        "Fallback",
        "True FellBack",
    )
    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "False Held")
    held = world.pool("latency")["holds"][0]
    assert held["internal"]["run"] == world.runs("latency")[0]["metadata"]["name"]
    assert "accept_length 1.4, expected_accept_length 2.8" in held["message"]

    world.wait(DAY - 10)
    assert holds(world) == []
    world.until_wake()
    (run,) = holds(world)
    assert made_by(run)["attempt"] == "2"
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert (world.serving("latency"), hold(world), world.condition("SpeculationDegraded")) == ("wide", None, "")


@told
def test_acceptance_drops_and_a_person_is_told(world: World) -> None:
    """Notify changes nothing; the condition goes when the pool is as expected again, not when it is idle."""
    guarded("Notify", world=world)
    dropped(world)
    assert (arm(world), hold(world)) == ("wide", None)
    assert world.condition("SpeculationDegraded") == "True AcceptanceDropped"
    assert world.condition("Promoted") == "True AllPromoted"

    judged(world, JudgementKind.IDLE)
    assert world.condition("SpeculationDegraded") == "True AcceptanceDropped"
    judged(world, JudgementKind.AS_EXPECTED)
    assert world.condition("SpeculationDegraded") == ""


def test_without_guard_a_person_is_told() -> None:
    world = World()
    promoted(world, "latency")
    dropped(world)
    assert (arm(world), world.condition("SpeculationDegraded")) == ("wide", "True AcceptanceDropped")
    assert "guard.action" in world.message("SpeculationDegraded")


def test_off_watches_nothing() -> None:
    world = guarded("None")
    dropped(world)
    assert (arm(world), world.condition("SpeculationDegraded")) == ("wide", "")
    assert world.plan(("SpeculativeDeployment", NAME)).watched == {}


@told
def test_a_server_hangs(world: World) -> None:
    """It answers its probes, and no tokens move. The baseline may hang as well: nothing is better then."""
    guarded(world=world)
    hung(world)
    assert (arm(world), hold(world)) == ("baseline", "Fallback")
    world.servers_ready()

    hung(world)
    assert (arm(world), hold(world)) == ("baseline", "Fallback")
    assert world.condition("SpeculationDegraded") == "True Hung"
    judged(world, JudgementKind.AS_EXPECTED)
    assert world.condition("SpeculationDegraded") == "True FellBack"


SLOW_AT_32 = {**THROUGHPUT, "wide": {name: 0.8 * speed for name, speed in BASELINE_32.items()}}


@told
def test_a_load_beyond_the_crossover(world: World) -> None:
    """The pool that is measured at that load is named, and nothing is restarted. Where wide stops paying is known, as
    the other pool has measured it at 32."""
    world.truths = {"latency": LATENCY, "throughput": SLOW_AT_32}
    guarded("Fallback", "latency", "throughput", world=world)
    crossover = expected(world).crossover
    assert crossover
    assert 1 < crossover < 32
    assert world.plan(("SpeculativeDeployment", NAME)).watched["latency"].speculates_up_to == crossover

    judged(world, JudgementKind.BEYOND_CROSSOVER, running_requests=20)
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == ("wide", None, "True BeyondCrossover")
    assert "pool throughput" in world.message("SpeculationDegraded")
    judged(world, JudgementKind.IDLE)
    assert world.condition("SpeculationDegraded") == ""


def test_a_load_that_no_pool_is_measured_at() -> None:
    world = guarded()
    judged(world, JudgementKind.BEYOND_CROSSOVER, running_requests=200)
    assert "concurrency 200 " in world.message("SpeculationDegraded")


@pytest.mark.parametrize("kind", [JudgementKind.IDLE, JudgementKind.AS_EXPECTED, JudgementKind.UNREADABLE])
def test_nothing_else_is_told_or_done(kind: JudgementKind) -> None:
    world = guarded()
    judged(world, kind)
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == ("wide", None, "")


def test_servers_that_cannot_be_read_are_told_in_a_note() -> None:
    world = guarded()
    judged(world, JudgementKind.UNREADABLE)
    (note,) = world.status()["notes"]
    assert note.startswith("spec.guard: ")
    judged(world, JudgementKind.UNREADABLE, running_requests=4)
    assert world.status()["notes"] == [note], "the message counts the time, and a note is an Event"


def test_a_judgement_on_another_revision_is_ignored() -> None:
    world = guarded()
    judged(world, JudgementKind.ACCEPTANCE_DROPPED, revision="0123456789")
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == ("wide", None, "")


def test_a_judgement_on_what_does_not_serve_yet_is_ignored() -> None:
    """The candidate was chosen again and starts; the judgement is that of before."""
    world = guarded()
    served = world.pool("latency")["serving"]["revision"]
    dropped(world)
    world.servers_ready()
    world.annotate(RETRY, "again")
    judged(world, JudgementKind.ACCEPTANCE_DROPPED, revision=served)
    assert (arm(world), hold(world)) == ("wide", None)


def test_nothing_falls_back_while_suspended() -> None:
    world = guarded()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    dropped(world)
    assert (arm(world), hold(world)) == ("wide", None)
    assert world.condition("SpeculationDegraded") == "True AcceptanceDropped"
    world.edit("resume", lambda spec: spec.update(suspend=False))
    assert (arm(world), hold(world)) == ("baseline", "Fallback")


def test_nothing_falls_back_while_the_spec_is_invalid_and_what_was_told_stays() -> None:
    world = guarded()
    served = world.pool("latency")["serving"]["revision"]
    world.edit("an argument of ours", lambda spec: spec["engine"].update(args=["--port=1"]))
    judged(world, JudgementKind.ACCEPTANCE_DROPPED, revision=served)
    assert (arm(world), hold(world)) == ("wide", None)

    world = guarded("Notify")
    dropped(world)
    world.edit("an argument of ours", lambda spec: spec["engine"].update(args=["--port=1"]))
    assert world.condition("Stalled") == "True InvalidSpec"
    assert world.condition("SpeculationDegraded") == "True AcceptanceDropped"


def test_an_operator_that_starts_anew_changes_nothing() -> None:
    """It has no judgement before it has watched for a window."""
    world = guarded("Notify")
    dropped(world)
    before = world.status()["conditions"]
    world.told.clear()
    operator_restarts(world)
    assert world.status()["conditions"] == before
    assert events(world) == []

    world = guarded()
    dropped(world)
    world.servers_ready()
    operator_restarts(world)
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == (
        "baseline",
        "Fallback",
        "True FellBack",
    )


def test_events_say_what_happened_and_that_it_is_over() -> None:
    world = guarded("Notify")
    dropped(world)
    dropped(world)
    judged(world, JudgementKind.AS_EXPECTED)
    assert events(world) == ["Warning SpeculationDegraded", "Normal SpeculationRecovered"]

    world = guarded()
    dropped(world)
    assert events(world) == ["Warning FellBack", "Normal RollingBack"]


def test_each_time_in_a_row_it_takes_twice_as_long_until_the_candidate_is_measured_again() -> None:
    """The prompts of the benchmark say otherwise than those of production: no day brings another promotion."""
    world = guarded()
    waited = []
    for _ in range(6):
        dropped(world)
        world.servers_ready()
        since, runs = parse_time(world.pool("latency")["holds"][0]["startTime"]), len(holds(world))
        while len(holds(world)) == runs:
            world.until_wake()
        made = parse_time(holds(world)[-1]["metadata"]["creationTimestamp"])
        waited.append((made - since) / timedelta(days=1))
        for _ in range(3):
            world.round_ends()
        world.servers_ready()
        assert (arm(world), hold(world)) == ("wide", None)
    assert waited == [1, 2, 4, 8, 16, 16]


def test_a_run_that_could_measure_nothing_releases_no_hold_and_the_next_one_comes_two_days_later() -> None:
    world = guarded()
    dropped(world)
    world.servers_ready()
    world.wait(DAY)
    assert len(holds(world)) == 1
    while not world.outcome("latency"):
        world.round_dies("latency", 1, "killed")
        world.wait(20)
    assert (world.outcome("latency"), hold(world), len(holds(world))) == ("Error", "Fallback", 1)
    world.wait(DAY)
    assert len(holds(world)) == 1
    world.wait(DAY)
    assert len(holds(world)) == 2


def test_a_candidate_that_did_not_start_is_measured_again_after_a_day_too() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.server_exits("latency", 2, "error")
    world.servers_ready()
    assert hold(world) == "NotReady"
    world.wait(DAY)
    assert len(holds(world)) == 1


def test_a_hold_starts_no_run_while_suspended() -> None:
    world = guarded()
    dropped(world)
    world.servers_ready()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.wait(3 * DAY)
    assert holds(world) == []
    world.edit("resume", lambda spec: spec.update(suspend=False))
    assert len(holds(world)) == 1


def test_a_hold_starts_its_run_within_the_window() -> None:
    """It is 10 o'clock when the story begins; runs take capacity at night."""
    world = guarded()
    dropped(world)
    world.servers_ready()
    world.edit("nights", lambda spec: spec["benchmark"].update(window={"schedule": "0 22 * * *", "duration": "6h"}))
    world.wait(DAY)
    assert holds(world) == []
    world.until_wake()
    assert len(holds(world)) == 1


def test_while_the_held_candidate_is_measured_again_the_verdict_stands() -> None:
    world = guarded()
    dropped(world)
    world.servers_ready()
    world.wait(DAY)
    assert [world.condition(kind) for kind in ("Decided", "Promoted", "Measuring")] == [
        "True AllDecided", "False Held", "True Measuring",
    ]  # fmt: skip


# What the guard expects.


def expected(world: World) -> ExpectedTraffic:
    return from_status(ExpectedTraffic, world.memory("latency")["expected"])


def test_what_the_evidence_measured_is_kept_and_outlives_the_run() -> None:
    world = guarded()
    before = expected(world)
    assert {load.workload for load in before.loads} == {"code@1", "swe@1", "terminal@1", "chat@1"}
    load = before.loads[0]
    assert (before.verify_tokens, load.concurrency) == (8, pytest.approx(1, abs=0.2))
    assert load.accept_length == pytest.approx(2.8, abs=1.5)
    assert load.mean_ttft
    assert load.mean_tpot

    for run in world.runs("latency"):
        world.delete("BenchmarkRun", run["metadata"]["name"])
    assert expected(world) == before


def test_what_is_not_remembered_is_read_from_its_run() -> None:
    world = guarded()
    before = expected(world)
    world._deployed()["status"]["pools"][0]["internal"].pop("expected")
    world.settle("its memory is lost", 1)
    assert expected(world) == before


def test_the_watcher_is_told_what_serves_and_what_is_expected_of_it() -> None:
    world = guarded(acceptanceDrop="40%", window="2m", source="Prometheus")
    (pool,) = world.plan(("SpeculativeDeployment", NAME)).watched.values()
    assert (pool.revision, pool.arm) == (world.pool("latency")["serving"]["revision"], "wide")
    assert (pool.engine, pool.acceptance_drop, pool.window) == ("SGLang", 0.4, timedelta(minutes=2))
    assert pool.source == "Prometheus"
    assert [load.accept_length for load in pool.expected] == [load.accept_length for load in expected(world).loads]

    dropped(world)
    assert world.plan(("SpeculativeDeployment", NAME)).watched == {}, "two revisions at once"
    world.servers_ready()
    (watched,) = world.plan(("SpeculativeDeployment", NAME)).watched.values()
    assert (watched.arm, watched.expected, watched.verify_tokens, watched.speculates_up_to) == ("baseline", (), 1, None)


def reverted(world: World, spec: dict[str, Any]) -> None:
    world.edit("as before", lambda now: now.update(deepcopy(spec)))
    world.servers_ready()


def test_a_spec_that_is_changed_and_is_as_before_does_not_promote_it_on_the_same_evidence() -> None:
    world = guarded()
    spec = deepcopy(dict(world.spec()))
    dropped(world)
    world.servers_ready()
    world.edit("longer answers", longer)
    assert hold(world) is None
    reverted(world, spec)
    assert (world.serving("latency"), hold(world), world.condition("Promoted")) == (
        "baseline",
        "Fallback",
        "False Held",
    )
    world.annotate(RETRY, "again")
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("wide", None)


def test_what_falls_back_beside_an_aborted_run_is_not_promoted_on_the_same_evidence() -> None:
    world = guarded()
    spec = deepcopy(dict(world.spec()))
    world.edit("longer answers", longer)
    world.annotate("abort.paceline.dev/latency", "monday")
    dropped(world)
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("baseline", "Fallback, Aborted")
    reverted(world, spec)
    assert (world.serving("latency"), hold(world)) == ("baseline", "Fallback")


def test_another_candidate_that_a_person_promotes_does_not_release_it() -> None:
    """Once that one hangs too, the baseline is served."""
    world = promoted_anyway()
    (pool,) = deployment_pools(world)
    wide = pool.revision(pool.arms["wide"])
    assert (world.serving("latency"), world.pool("latency")["holds"][0]["revision"]) == ("narrow", wide)
    hung(world)
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["holds"][1]["revision"]) == ("baseline", wide)
    (pool,) = world.plan(("SpeculativeDeployment", NAME)).watched.values()
    assert (pool.arm, pool.expected, pool.verify_tokens, pool.speculates_up_to) == ("baseline", (), 1, None)


def test_the_watcher_is_told_whether_the_engine_chooses_the_depth() -> None:
    world = guarded()
    manifest = world._deployed()
    entries = from_status(SpeculativeDeploymentStatus, manifest["status"]).pools
    snapshot = replace(world.deployment_snapshot(), children={})
    spec = snapshot.spec
    assert spec
    pool = spec.pools[0]
    adaptive = tuple(replace(arm, adaptive=Adaptive(num_steps=3), tree=None) for arm in pool.arms)
    follows = replace(spec, pools=(replace(pool, arms=adaptive), *spec.pools[1:]))
    asked = (snapshot, replace(snapshot, spec=follows))
    told = [watched_pools(one, entries)["latency"].depth_follows_load for one in asked]
    assert told == [False, True]
