"""In Manual mode a person promotes: what they have read about, once, and by a revision that waits for it."""

import pytest
from tests.support.campaigns import LATENCY
from tests.support.down import at_once
from tests.support.edits_of_specs import CODE_ALONE, in_production, loosened
from tests.support.messages import Says
from tests.support.stories import by_hand, measuring
from tests.support.world import World

KEY = "promote.paceline.dev/latency"
BETTER_STILL = {"baseline": LATENCY["baseline"], "wide": LATENCY["wide"]}


def awaiting() -> tuple[World, str]:
    """A verdict that waits, and the revision that it is about."""
    world = by_hand()
    for _ in range(3):
        world.round_ends()
    ((key, value),) = world.requests("promote")
    assert (world.condition("Promoted"), key) == ("False AwaitingPromote", KEY)
    return world, value.partition("@")[0]


def test_last_weeks_request_promotes_nothing_under_a_new_question() -> None:
    """The revision comes back and its verdict with it: a person is asked again, as the old value is spent."""
    world = in_production("latency", "Manual")
    revision = world.memory("latency")["target"]["revision"]
    value = world.memory("latency")["handled"]["promote"]
    assert value == f"{revision}@TOKEN"
    image = world.spec()["engine"]["image"]
    world.edit("another image", at_once("another"))
    world.servers_ready()
    world.edit("the old image", at_once(image))
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("baseline", "False AwaitingPromote")

    world.annotate(KEY, f"{revision}@friday")
    world.servers_ready()
    assert (world.serving("latency"), world.memory("latency")["handled"]) == ("wide", {"promote": f"{revision}@friday"})


def test_a_revision_that_does_not_wait_is_answered_with_the_one_that_does(says: Says) -> None:
    world, revision = awaiting()
    world.annotate(KEY, "nonsense@now")
    (said,) = world.status()["refused"]
    assert f"write {revision}@TOKEN" in said
    says(said)
    assert any(f"Warning RequestRefused: {said}" in one.events for one in world.told)
    assert "handled" not in world.memory("latency")

    world.annotate(KEY, f"{revision}@now")
    world.servers_ready()
    assert (world.serving("latency"), world.status().get("refused")) == ("wide", None)


def test_where_nothing_waits_the_answer_names_what_may_be_written(says: Says) -> None:
    world = by_hand()
    world.annotate(KEY, "0123456789@now")
    (said,) = world.status()["refused"]
    assert "promote-anyway.paceline.dev/latency=REVISION@TOKEN" in said
    says(said)


def test_what_is_served_already_is_answered_with_an_event(says: Says) -> None:
    world, revision = awaiting()
    world.annotate(KEY, f"{revision}@now")
    world.servers_ready()
    assert f"promote={revision}@now" not in str([one.events for one in world.told])
    world.annotate(KEY, f"{revision}@again")
    says(*(event for event in world.told[-1].events if f"promote={revision}@again" in event))


def test_in_automatic_mode_nobody_needs_to_ask(says: Says) -> None:
    world = World()
    measuring(world, "latency")
    world.annotate(KEY, "0123456789@now")
    (said,) = world.status()["refused"]
    assert "promotion.mode" in said
    says(said)


def test_while_suspended_a_request_waits() -> None:
    world, revision = awaiting()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.annotate(KEY, f"{revision}@now")
    assert world.memory("latency")["target"]["arm"] == "baseline"
    assert "spec.suspend" in world.status()["refused"][0]
    world.edit("resume", lambda spec: spec.update(suspend=False))
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_an_operator_that_dies_between_status_and_actions_has_promoted_all_the_same() -> None:
    """What was asked is a target by then; the value is not acted upon again."""
    world, revision = awaiting()
    world.crash = lambda actions: ()
    with pytest.raises(AssertionError, match="never come to rest"):
        world.annotate(KEY, f"{revision}@now")
    assert world.memory("latency")["target"]["revision"] == revision
    world.crash = lambda actions: actions
    world.settle("the operator lives", 0)
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_a_new_winner_of_another_question_waits_while_the_old_one_serves() -> None:
    """What was promoted by a person is judged again and shown again: it is served already, and nobody is asked."""
    world = in_production("latency", "Manual")
    world.edit("a looser gate", loosened)
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True AllPromoted")
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    while world.under_way("round"):
        world.round_ends(truth=BETTER_STILL)
        assert world.serving("latency") == "wide"
    assert world.condition("Promoted") == "True AllPromoted"
