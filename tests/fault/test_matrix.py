"""A sample of all scenarios × steps × faults: whatever goes wrong, the story ends as it does when nothing does.

`make faults` runs every case; `tests/conftest.py` prints what was run here.
"""

from collections.abc import Callable
from dataclasses import asdict

import pytest
from tests.fault.matrix import Sample, Tally, run
from tests.fault.scenarios import SCENARIOS

SAMPLE = Sample(writes=2, events=8, pairs=12)
AT_LEAST = 2000
"""Cases, of all scenarios."""
RUN: dict[str, Tally] = {}


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_ends_the_same(name: str, record_property: Callable[[str, object], None]) -> None:
    RUN[name] = tally = run(name, SAMPLE)
    record_property("faults", asdict(tally))
    assert list(tally.wrong) == []


def test_the_sample_is_large_enough() -> None:
    if RUN.keys() == SCENARIOS.keys():
        assert sum(tally.run for tally in RUN.values()) >= AT_LEAST
