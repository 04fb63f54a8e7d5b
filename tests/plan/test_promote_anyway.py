"""A person promotes what no verdict does. The verdict stays what it is, and nothing pretends to be evidence."""

from typing import Any

import pytest
from tests.plan.test_earned import SLOWER, longer
from tests.support.campaigns import BASELINE_1
from tests.support.edits_of_specs import AS_THE_BASELINE, added, loosened
from tests.support.messages import Says
from tests.support.planned import deployment_pools
from tests.support.stories import measuring, told
from tests.support.world import World

KEY = "promote-anyway.paceline.dev/latency"
THREE_SLOWER = {**SLOWER, "narrow": {name: 0.8 * speed for name, speed in BASELINE_1.items()}}


def may_have_a_chain(spec: dict[str, Any]) -> None:
    spec["engine"]["env"] = AS_THE_BASELINE
    spec["promotion"] = {"changes": "Immediate"}


def rejected(world: World) -> str:
    """And the revision of what was rejected."""
    measuring(world, "latency")
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    assert world.outcome("latency") == "Reject"
    return str(candidate(world))


def candidate(world: World, name: str = "wide") -> str:
    (pool,) = deployment_pools(world)
    return pool.revision(pool.arms[name])


def promoted_anyway(world: World) -> str:
    revision = rejected(world)
    world.annotate(KEY, f"{revision}@monday")
    world.servers_ready()
    return revision


@told
def test_a_person_promotes_against_the_verdict(world: World) -> None:
    """It serves until another question has another verdict."""
    promoted_anyway(world)
    world.wait(24 * 60)
    assert world.serving("latency") == "wide"
    world.edit("longer answers", longer)
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    world.servers_ready()
    assert world.serving("latency") == "baseline"


def test_it_serves_without_evidence_and_the_verdict_stays() -> None:
    world = World()
    revision = promoted_anyway(world)
    entry = world.pool("latency")
    assert {"revision": revision, "arm": "wide"}.items() <= entry["serving"].items()
    assert "evidence" not in entry["serving"]
    assert "evidence" not in entry["history"][0]
    assert (entry["history"][0]["reason"], entry["history"][0]["request"]) == (
        "PromotedAnyway",
        f"promote-anyway={revision}@monday",
    )
    assert (entry["verdict"]["outcome"], entry["internal"]["handled"]) == (
        "Reject",
        {"promoteAnyway": f"{revision}@monday"},
    )
    assert world.condition("Promoted") == "True PromotedAnyway"
    assert "0.90x" in world.message("Promoted")
    assert "rollback.paceline.dev/latency=@TOKEN" in world.message("Promoted")
    assert world.status()["summary"] == "latency=wide"


def test_the_verdict_that_it_overrides_does_not_take_it_off() -> None:
    """Nor does that verdict by another gate, or on fewer candidates."""
    world = World()
    measuring(world, "latency")
    world.edit("a chain may be a candidate", may_have_a_chain)
    world.edit("another candidate", added)
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends(truth=THREE_SLOWER)
    assert world.outcome("latency") == "Reject"
    revision = candidate(world)
    world.annotate(KEY, f"{revision}@monday")
    world.servers_ready()
    world.edit("a looser gate", loosened)
    assert world.serving("latency") == "wide"

    def without_narrow(spec: dict[str, Any]) -> None:
        del spec["candidates"][1]

    world.edit("one candidate fewer", without_narrow)
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_nor_does_one_that_comes_later_on_the_same_question() -> None:
    world = World()
    measuring(world, "latency")
    world.annotate(KEY, "@monday")
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True PromotedAnyway")
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    assert (world.outcome("latency"), world.serving("latency")) == ("Reject", "wide")


def test_once_it_is_shown_to_be_faster_it_has_its_evidence() -> None:
    world = World()
    measuring(world, "latency")
    world.annotate(KEY, "@monday")
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    (run,) = world.runs("latency")
    assert world.pool("latency")["serving"]["evidence"]["run"] == run["metadata"]["name"]
    assert world.condition("Promoted") == "True AllPromoted"
    assert [change["reason"] for change in world.pool("latency")["history"]] == ["PromotedAnyway", "Started"]


def test_a_rollback_undoes_it() -> None:
    world = World()
    revision = promoted_anyway(world)
    world.annotate("rollback.paceline.dev/latency", "@tuesday")
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["holds"][0]["revision"]) == ("baseline", revision)


def test_promote_undoes_it_in_favour_of_what_the_verdict_says() -> None:
    """In Automatic mode too."""
    world = World()
    promoted_anyway(world)
    baseline = world.pool("latency")["history"][-1]["revision"]
    world.annotate("promote.paceline.dev/latency", f"{baseline}@tuesday")
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    assert world.pool("latency")["history"][0]["request"] == f"promote={baseline}@tuesday"


def test_what_it_does_not_name_is_refused_with_what_it_may(says: Says) -> None:
    world = World()
    revision = rejected(world)
    world.annotate(KEY, "nonsense@now")
    (said,) = world.status()["refused"]
    assert f"write {revision}@TOKEN" in said
    says(said)


def test_a_candidate_that_cannot_run_is_no_matter_of_a_verdict() -> None:
    world = World()
    revision = promoted_anyway(world)
    world.server_exits("latency", 2, "error: out of memory")
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["holds"][0]["reason"]) == ("baseline", "Crashed")
    world.annotate(KEY, f"{revision}@tuesday")
    assert "retry.paceline.dev/latency=TOKEN" in world.status()["refused"][0]


def test_it_works_while_suspended() -> None:
    """A fix may not wait until the operator goes on."""
    world = World()
    revision = rejected(world)
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.annotate(KEY, f"{revision}@monday")
    world.servers_ready()
    assert (world.status().get("refused"), world.serving("latency")) == (None, "wide")


def test_a_crash_between_status_and_actions_promotes_once() -> None:
    world = World()
    revision = rejected(world)
    world.crash = lambda actions: ()
    with pytest.raises(AssertionError, match="never come to rest"):
        world.annotate(KEY, f"{revision}@monday")
    world.crash = lambda actions: actions
    world.settle("the operator lives", 0)
    world.servers_ready()
    assert [change["reason"] for change in world.pool("latency")["history"]] == ["PromotedAnyway", "Started"]
