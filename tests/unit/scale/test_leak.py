"""What `make soak` calls a leak."""

from dataclasses import replace

import pytest
from tests.scale.leak import Sample, growing, report, slope

STEADY = [
    Sample(minutes=minute, resident=100 + minute % 3, files=20, threads=4, objects=80, writes=0) for minute in range(16)
]


def test_what_goes_up_and_down_is_none() -> None:
    assert growing(STEADY) == []
    assert "Nothing grows" in report(STEADY, [], 10, 20)


def test_what_a_first_turn_needs_is_none() -> None:
    assert growing([replace(one, resident=60 + 10 * min(one.minutes, 3)) for one in STEADY]) == []


@pytest.mark.parametrize(
    ("leaking", "said"),
    [
        ([replace(one, resident=100 + 2 * one.minutes) for one in STEADY], "resident memory grew from 111.0 to 127.0"),
        ([replace(one, files=20 + int(one.minutes)) for one in STEADY], "open files grew"),
        ([replace(one, threads=4 + int(one.minutes) // 2) for one in STEADY], "threads grew"),
        ([replace(one, objects=80 + (one.minutes == 15)) for one in STEADY], "not the same each time"),
        ([replace(one, writes=int(one.minutes == 7)) for one in STEADY], "1 writes while nothing happened"),
        (STEADY[:7], "too few"),
    ],
)
def test_what_grows_is_told(leaking: list[Sample], said: str) -> None:
    (sentence,) = growing(leaking)
    assert said in sentence


def test_the_slope_is_by_the_hour() -> None:
    assert slope([replace(one, resident=50 + one.minutes / 6) for one in STEADY]) == pytest.approx(10)
