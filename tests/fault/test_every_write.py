"""What people do right after any single write of a story, and an operator that lives no longer than one; the faults
there are in `test_matrix`."""

from itertools import repeat

import pytest
from tests.fault.forks import Mishap, at_each_write
from tests.fault.oracle import broken_promises, ending
from tests.fault.stories import (
    BACK,
    BOTH_PROMOTED,
    CHANGED,
    HELD,
    JUDGED_AGAIN,
    PROMOTED,
    ROLLED_BACK,
    example,
    same_end,
    should,
    tell,
    the_published_image,
)
from tests.fault.world import World
from tests.support.memory import MemoryApi, crash_from

STORIES = {
    "promoted": PROMOTED,
    "both promoted": BOTH_PROMOTED,
    "changed": CHANGED,
    "judged again": JUDGED_AGAIN,
    "held": HELD,
    "back": BACK,
    "rolled back": ROLLED_BACK,
}


@pytest.mark.parametrize("story", STORIES)
def test_no_process_lives_longer_than_one_write(story: str) -> None:
    """Progress lives in the cluster, not in a process."""

    def short_life(world: World) -> MemoryApi:
        return MemoryApi(world.cluster, after=crash_from(1))

    world = tell(STORIES[story], *repeat(short_life, 100))
    assert len(world.lives) < 100
    assert not same_end(STORIES[story], told=False)(world)


@pytest.mark.parametrize("story", ["promoted", "changed"])
def test_deleted_at_any_moment_nothing_is_left_but_the_models(story: str) -> None:
    def check(world: World) -> list[str]:
        left = sorted(set(ending(world.cluster).objects) - {"PersistentVolumeClaim models/models"})
        return [f"left: {ref}" for ref in left]

    at_each_write(STORIES[story], Mishap(what="delete", when="after", do=World.delete), check).go()


DEPLOYED = "SpeculativeDeployment models/qwen3-coder-next"


def test_deleted_and_applied_again_at_any_moment_it_ends_the_same() -> None:
    """With the same objects and the same arm served. What was not collected yet is adopted, as after a restore: runs go
    on where they were, so how they came about may differ."""

    def again(world: World) -> None:
        world.delete()
        world.apply(example("latency"))

    def check(world: World) -> list[str]:
        """But for the first one's prefetch, which may have answered the second one before it went; and for the servers'
        pods, which are called by a hash of their template: it names the owner's uid."""
        is_, was = (
            {ref: found for ref, found in one.objects.items() if "-fetch-" not in ref and not ref.startswith("Pod ")}
            for one in (ending(world.cluster), should(PROMOTED))
        )
        summary = is_[DEPLOYED]["status"]["summary"]
        return [
            *(f"{ref}: one of the two has it" for ref in is_.keys() ^ was.keys()),
            *([] if summary == was[DEPLOYED]["status"]["summary"] else [f"it serves {summary}"]),
        ]

    at_each_write(PROMOTED, Mishap(what="delete and apply", when="after", do=again), check).go()


def test_a_change_taken_back_at_any_moment_leaves_what_there_was() -> None:
    """The old evidence still answers the old question."""

    def back(world: World) -> None:
        world.edit(the_published_image)

    def check(world: World) -> list[str]:
        is_, was = ending(world.cluster).objects, should(PROMOTED).objects
        servers = "Deployment models/qwen3-coder-next-latency"
        same = is_[servers]["spec"] == was[servers]["spec"]
        return broken_promises(world.cluster) + ([] if same else ["another revision is served"])

    at_each_write(CHANGED, Mishap(what="taken back", when="after", do=back), check).go()
