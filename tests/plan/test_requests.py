"""What people ask for by annotation: each value is acted upon once, and echoed with its effect."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.support.answers import half_failed
from tests.support.down import at_once
from tests.support.runs import made_by
from tests.support.stories import measuring, promoted, told
from tests.support.world import World, example

RETRY = "retry.paceline.dev/latency"


def in_error(world: World) -> None:
    """The question has no answer: half of the candidate's requests failed."""
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(wide=half_failed)
    assert world.outcome("latency") == "Error"


def held(world: World) -> None:
    """The winner does not start where it is to serve."""
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    world.server_exits("latency", 2, "error: argument --speculative-eagle-topk: invalid choice: 4")
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    assert world.pool("latency")["holds"][0]["reason"] == "NotReady"


@told
def test_an_error_is_asked_anew(world: World) -> None:
    """By a person, for whom nothing else would help; the new attempt says so, and its answer counts."""
    in_error(world)
    world.annotate(RETRY, "monday")
    *_, run = world.runs("latency")
    assert made_by(run) == {"attempt": "2", "trigger": "Retry", "token": "monday"}
    assert world.memory("latency")["handled"] == {"retry": "monday"}

    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert world.serving("latency") == "wide"


@told
def test_a_hold_is_released_by_a_person(world: World) -> None:
    """Whatever kept the candidate from starting is mended: it is tried again on the evidence there is."""
    held(world)
    world.annotate(RETRY, "the node is mended")
    assert "holds" not in world.pool("latency")
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True AllPromoted")
    assert len(world.runs("latency")) == 1


def test_a_value_acts_once() -> None:
    """It stays where it is, and Error comes again: nothing is measured again before there is another value."""
    world = World()
    in_error(world)
    world.annotate(RETRY, "monday")
    for _ in range(2):
        world.round_ends(wide=half_failed)
    world.wait(24 * 60)
    assert len(world.runs("latency")) == 2

    world.annotate(RETRY, "tuesday")
    assert [made_by(run)["attempt"] for run in world.runs("latency")] == ["1", "2", "3"]


def test_a_value_is_handled_where_there_is_nothing_to_do() -> None:
    """It does not lie in wait for the next hold."""
    world = World()
    promoted(world, "latency")
    world.annotate(RETRY, "why not")
    assert world.memory("latency")["handled"] == {"retry": "why not"}
    assert "retry=why not: " in events(world)
    world.server_exits("latency", 2, "error")
    assert len(world.runs("latency")) == 1


def test_a_crash_between_status_and_actions_asks_once() -> None:
    """What is remembered is the attempt, not that something is to be done."""
    world = World()
    in_error(world)
    world.crash = lambda actions: ()
    with pytest.raises(AssertionError, match="never come to rest"):
        world.annotate(RETRY, "monday")
    world.crash = lambda actions: actions
    world.settle("the operator lives", 0)
    assert [made_by(run)["attempt"] for run in world.runs("latency")] == ["1", "2"]


def test_an_attempt_that_was_asked_for_is_not_made_anew_because_the_spec_was_another_for_a_while() -> None:
    """The first attempt answers nothing any more; the second one does, as soon as its question is back."""
    world = World()
    in_error(world)
    world.annotate(RETRY, "monday")
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    image = world.spec()["engine"]["image"]
    world.edit("another image", at_once("another"))
    world.edit("the old image", at_once(image))
    world.servers_ready()
    assert world.serving("latency") == "wide"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("retry.paceline.dev/latnecy", "pool latnecy does not exist (there are: latency"),
        ("promote.paceline.dev/thruput", "pool thruput does not exist (there are: latency"),
        (
            "demote.paceline.dev/latency",
            "demote is not a request (there are: promote, promote-anyway, abort, retry, rollback)",
        ),
    ],
)
def test_a_request_to_no_pool_is_answered(key: str, message: str) -> None:
    world = World()
    promoted(world, "latency")
    world.annotate(key, "now")
    (answer,) = world.status()["refused"]
    assert answer.startswith(f"{key}=now: {message}")
    assert message in events(world)
    assert world.condition("Stalled") == ""

    world.annotate(key, "")
    assert "refused" not in world.status()


def test_of_all_that_nobody_would_hear_status_holds_so_many() -> None:
    world = World()
    manifest: dict[str, Any] = example("latency")
    manifest["metadata"]["annotations"] = {f"retry.paceline.dev/p{number}": "x" * 1000 for number in range(100)}
    world.apply(manifest)
    assert len(world.status()["refused"]) == 64
    assert max(map(len, world.status()["refused"])) < 400


def events(world: World) -> str:
    return "; ".join(event for shown in world.told for event in shown.events)


def another_head(world: World) -> None:
    world.edit("another head", lambda spec: spec["draft"].update(revision="other"))
    world.prefetch_fails("no such revision")


def an_invalid_argument(world: World) -> None:
    world.edit("invalid", lambda spec: spec["engine"].update(args=["--host=1"]))


@pytest.mark.parametrize(
    ("blocked", "reason"), [(another_head, "PrefetchFailed"), (an_invalid_argument, "InvalidSpec")]
)
def test_while_the_deployment_is_blocked_a_request_waits_and_says_for_what(
    blocked: Callable[[World], None], reason: str
) -> None:
    world = World()
    promoted(world, "latency")
    world.annotate(RETRY, "before")
    before = deepcopy(dict(world.spec()))
    blocked(world)
    world.annotate("rollback.paceline.dev/latency", "@monday")
    said = f"rollback.paceline.dev/latency=@monday: it waits until Stalled ({reason}) ends"
    assert world.status()["refused"] == [said]
    assert said in events(world)

    world.edit("as before", lambda spec: spec.update(before))
    world.servers_ready()
    assert ("refused" in world.status(), world.serving("latency")) == (False, "baseline")
