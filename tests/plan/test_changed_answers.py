"""A changed spec that is fast enough and answers otherwise than what serves waits for a person, whether or not `parity`
is set.

As test_stories."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.plan.test_changes import by, revisions, rounds, upgraded
from tests.support.answers import anew, nearly_alike, not_compared, otherwise
from tests.support.stories import promoted, told
from tests.support.world import World


def fewer_bits(spec: dict[str, Any]) -> None:
    spec["engine"]["args"] = [*spec["engine"].get("args", ()), "--quantization", "fp8"]


@told
def test_a_faster_quantization_waits_for_a_person(world: World) -> None:
    """Two of sixteen answers are others than those of what serves, in every round."""
    promoted(world, "latency")
    before = revisions(world)
    world.edit("fewer bits", fewer_bits)
    rounds(world, by(1.3), incumbent=otherwise)
    assert (world.outcome("latency"), world.condition("ChangePending")) == ("Promote", "True AwaitingPromote")
    assert (world.serving("latency"), revisions(world)) == ("wide", before)
    (request,) = world.requests("promote")
    world.annotate(*request)
    world.servers_ready()
    assert (world.serving("latency"), revisions(world) & before) == ("wide", set())
    assert world.condition("ChangePending") == ""


def test_so_does_a_draft_that_changes_the_answers() -> None:
    """The new baseline answers as what serves does; the candidate does not."""
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.1), wide=otherwise)
    assert world.condition("ChangePending") == "True AwaitingPromote"


def test_the_share_that_may_differ_is_a_field() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("an eighth may", lambda spec: spec.setdefault("promotion", {}).update(maxOutputChange="12.5%"))
    world.edit("fewer bits", fewer_bits)
    rounds(world, by(1.3), incumbent=otherwise)
    world.servers_ready()
    assert world.condition("ChangePending") == ""


@pytest.mark.parametrize(
    ("arm", "answered"),
    [("incumbent", nearly_alike), ("incumbent", not_compared), ("baseline", anew), ("baseline", not_compared)],
)
def test_an_ordinary_upgrade_does_not_wait(arm: str, answered: Callable[..., Any]) -> None:
    """Near ties count for nothing, nor does an engine that shows no logprobs, or answers otherwise each time."""
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.08), **{arm: answered})
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "")
