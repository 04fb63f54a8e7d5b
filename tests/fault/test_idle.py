"""When all is done, nobody writes: not on a resync, not after a restart."""

import pytest
from tests.fault.stories import BOTH_PROMOTED, CHANGED, DELETED, HELD, JUDGED_AGAIN, Story, tell_once
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE

from paceline.controller.cluster import ObjectKey
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT

RESYNCS = 20


@pytest.mark.parametrize(
    "story",
    [BOTH_PROMOTED, CHANGED, JUDGED_AGAIN, HELD, DELETED],
    ids=["both", "changed", "judged again", "held", "deleted"],
)
def test_a_new_process_writes_nothing_however_often_it_looks(story: Story) -> None:
    before = tell_once(story)

    async def idle() -> int:
        async with before.twin() as world:
            world.operate()
            await world.settle()
            (process,) = world.lives
            runs = world.cluster.list(BENCHMARK_RUN).items
            keys = [ObjectKey(BENCHMARK_RUN.plural, NAMESPACE, run["metadata"]["name"]) for run in runs]
            for _ in range(RESYNCS):
                for key in (ObjectKey(SPECULATIVE_DEPLOYMENT.plural, NAMESPACE, NAME), *keys):
                    await process.reconcile(key)
            return process.api.attempts

    assert run(idle()) == 0


@pytest.mark.parametrize(
    "story", [BOTH_PROMOTED, CHANGED, JUDGED_AGAIN, HELD], ids=["both", "changed", "judged again", "held"]
)
def test_every_write_of_a_story_changes_something(story: Story) -> None:
    (process,) = tell_once(story).lives
    assert process.api.attempts == len(process.api.writes)
