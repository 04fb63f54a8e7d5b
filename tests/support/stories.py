"""How a story becomes a test, and where most stories begin."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support import golden
from tests.support.passes import Pass, story
from tests.support.world import World, example

STORIES = Path(__file__).parents[1] / "plan" / "stories"
Tell = Callable[[World], None]
Manifest = Mapping[str, Any]


def told(tell: Tell) -> Callable[[], None]:
    """A test: `tell` moves a world, and the passes it saw are the golden file of its name."""

    def test() -> None:
        golden.check(STORIES / f"{name_of(tell)}.yaml", story(played(tell).told), tell.__doc__ or "")

    test.__name__, test.__doc__ = tell.__name__, tell.__doc__
    test.__dict__[TELL] = tell
    return test


TELL = "tell"
"""Attribute of a test that `told` has made."""


@dataclass(frozen=True, slots=True)
class Played:
    """What is kept of a story: its passes, and the states that it went through."""

    told: Sequence[Pass]
    seen: Collection[Manifest]


@cache
def played(tell: Tell) -> Played:
    """A story is told once in a process."""
    world = World()
    tell(world)
    return Played(world.told, world.seen.values())


def name_of(tell: Tell) -> str:
    return tell.__name__.removeprefix("test_")


def every_story() -> Iterator[Tell]:
    """Each story of tests/plan, by name."""
    modules = [import_module(f"tests.plan.{file.stem}") for file in sorted(STORIES.parent.glob("test_*.py"))]
    tests = (vars(test).get(TELL) for module in modules for test in vars(module).values() if callable(test))
    return iter(sorted(filter(None, tests), key=name_of))


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


def by_hand() -> World:
    """A world in which the pool latency serves its baseline, and a person is to promote."""
    world, manifest = World(), example("latency")
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world
