"""A few cases on a real API server: each fault once, but for those that last as long as the operator's patience.
`make faults-real` plays more than 200, of all stories; docs/reports/faults.md has the results."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.fault.real.faults import OF_WATCHES, OF_WRITES
from tests.fault.real.play import Draw, Outcome, drawn, stage
from tests.fault.real.sample import SLOW_FAULTS, start
from tests.support.apiserver import Running

SEED = 15
STORY = "rejection"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(tmp_path_factory.mktemp("apiserver"))
    yield running
    running.stop()


async def test_whatever_goes_wrong_on_the_way_to_a_real_api_server_the_story_ends_the_same(server: Running) -> None:
    async with stage(server) as here, asyncio.timeout(240):
        await here.learn([STORY])
        draws = [draw for draw in drawn(SEED, STORY, here.known[STORY], len(OF_WRITES + OF_WATCHES)) if quick(draw)]
        outcomes: list[Outcome] = [outcome async for outcome in here.try_all(draws)]
    hit = [outcome for outcome in outcomes if outcome.hit]
    wrong = [str(outcome) for outcome in hit if outcome.wrong]
    print(f"{STORY} on a real API server: {len(hit)} faults, {len(hit) - len(wrong)} converged")
    assert not wrong, "\n".join(wrong)
    assert len(hit) >= len(draws) - 2, "the faults fall on the story"


def quick(draw: Draw) -> bool:
    return draw.fault.name not in SLOW_FAULTS
