"""How a story becomes a test, and where most stories begin."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support import golden
from tests.support.passes import Pass, story
from tests.support.twice import Twice
from tests.support.world import World, example

STORIES = Path(__file__).parents[1] / "plan" / "stories"
Tell = Callable[[World], None]
Manifest = Mapping[str, Any]


def told(tell: Tell) -> Callable[[], None]:
    """A test: `tell` moves a world, and the passes it saw are the golden file of its name."""

    def test() -> None:
        if failed := played(tell).failed:
            raise failed
        golden.check(golden_of(tell), story(played(tell).told), tell.__doc__ or "")

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
    failed: Exception | None
    """For its own test to raise; what it has seen so far was seen."""
    by_order: Sequence[str]
    again: Sequence[str]
    """As `Twice` has them."""


@cache
def played(tell: Tell) -> Played:
    """A story is told once in a process."""
    world, failed = Twice(), None
    try:
        tell(world)
    except Exception as error:
        failed = error
    return Played(world.told, world.seen.values(), failed, world.by_order, world.again)


def golden_of(tell: Tell) -> Path:
    return STORIES / f"{name_of(tell)}.yaml"


def name_of(tell: Tell) -> str:
    return tell.__name__.removeprefix("test_")


def every_story() -> Iterator[Tell]:
    """Each story of tests/plan that has its golden file, by name."""
    modules = [import_module(f"tests.plan.{file.stem}") for file in sorted(STORIES.parent.glob("test_*.py"))]
    tests = (vars(test).get(TELL) for module in modules for test in vars(module).values() if callable(test))
    return iter(sorted((tell for tell in tests if tell and golden_of(tell).exists()), key=name_of))


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


def measured(world: World) -> None:
    """All rounds end, one after another, and what the verdict chooses serves."""
    while world.under_way("round"):
        world.round_ends()
    world.servers_ready()


def by_hand() -> World:
    """A world in which the pool latency serves its baseline, and a person is to promote."""
    world, manifest = World(), example("latency")
    manifest["spec"]["promotion"] = {"mode": "Manual"}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world
