"""A sample of all scenarios × steps × faults: whatever goes wrong, the story ends as it does when nothing does.

`make faults` runs every case; `tests/conftest.py` prints what was run here.
"""

from collections.abc import Callable
from dataclasses import asdict

import pytest
from tests.fault.matrix import Sample, Tally, run
from tests.fault.scenarios import SCENARIOS
from tests.fault.stories import tell_once

SHORT, LONG = Sample(writes=4, events=8), Sample(writes=16, events=160, pairs=2)
MANY_WRITES = 20
"""A story that has so many of them takes a quarter of a second each time it is told, others half as long."""
AT_LEAST = 400
"""Cases, of all scenarios."""
RUN: dict[str, Tally] = {}


def writes(name: str) -> int:
    (process,) = tell_once(SCENARIOS[name].story).lives
    return len(process.api.writes)


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_ends_the_same(name: str, record_property: Callable[[str, object], None]) -> None:
    RUN[name] = tally = run(name, LONG if writes(name) > MANY_WRITES else SHORT)
    record_property("faults", asdict(tally))
    assert list(tally.wrong) == []


def test_the_sample_is_large_enough() -> None:
    if RUN.keys() == SCENARIOS.keys():
        assert sum(tally.run for tally in RUN.values()) >= AT_LEAST
