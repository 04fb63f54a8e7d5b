"""How a story becomes a test, and where most stories begin."""

from collections.abc import Callable
from pathlib import Path

from tests.support import golden
from tests.support.passes import story
from tests.support.world import World, example

STORIES = Path(__file__).parents[1] / "plan" / "stories"


def told(tell: Callable[[World], None]) -> Callable[[], None]:
    """A test: `tell` moves a world, and the passes it saw are the golden file of its name."""

    def test() -> None:
        world = World()
        tell(world)
        golden.check(STORIES / f"{tell.__name__.removeprefix('test_')}.yaml", story(world.told), tell.__doc__ or "")

    test.__name__, test.__doc__ = tell.__name__, tell.__doc__
    return test


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
