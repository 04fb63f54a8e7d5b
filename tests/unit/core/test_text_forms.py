"""Durations, percentages and decimals: what the API has as text, and the numbers that they stand for."""

from datetime import timedelta

import pytest

from paceline.core.text import duration, duration_text, fraction, percentage, plain_decimal


def test_numbers_are_written_with_six_decimals_at_most() -> None:
    assert [plain_decimal(value) for value in (0.05, 8.0, 1e-06, 0.1234567)] == ["0.05", "8", "0.000001", "0.123457"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30m", 1800), ("1h30m5s", 5405), ("500ms", 0.5), ("1m30s", 90), ("99999h2h", 360_003_600)]
)
def test_a_duration_is_written_as_a_person_would(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)
    assert duration_text(seconds) == text


def test_a_percentage_is_a_fraction() -> None:
    assert [fraction(text) for text in ("5%", "12.5%", "0.2%")] == [0.05, 0.125, 0.002]
    assert [percentage(value) for value in (0.05, 0.125, 0.002)] == ["5%", "12.5%", "0.2%"]
