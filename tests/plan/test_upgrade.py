"""A release of Paceline that renders servers otherwise rolls none that are there."""

from typing import Any

import pytest
from tests.support.down import at_once
from tests.support.stories import promoted
from tests.support.world import World

from paceline.render import serving


def upgraded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next release gives every server of it a longer grace period."""
    before = serving._pod

    def otherwise(*args: Any, **kwargs: Any) -> dict[str, Any]:
        pod = before(*args, **kwargs)
        pod["spec"]["terminationGracePeriodSeconds"] = 999
        return pod

    monkeypatch.setattr(serving, "_pod", otherwise)
    world.told.clear()
    world.settle("the operator is upgraded", 0)
    world.wait(60)


def writes(world: World) -> list[str]:
    return [action for one in world.told for action in one.actions]


def test_an_upgrade_writes_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor anything else. The promoted arm is served as it was rendered when it was promoted."""
    world = World()
    promoted(world, "latency")
    before = {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")}
    upgraded(world, monkeypatch)
    assert writes(world) == []
    assert {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")} == before


def test_what_is_changed_after_it_is_rendered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above is no accident: the release does render otherwise."""
    world = World()
    promoted(world, "latency")
    upgraded(world, monkeypatch)
    world.edit("another image", at_once("another"))
    (servers,) = world.cluster.of("Deployment")
    assert servers["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 999
