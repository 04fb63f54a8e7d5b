"""When a window is open, around changes of the clock too; and what cannot be read."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.messages import Says

from paceline.core.window import Window, window_faults

NIGHT = Window(schedule="0 22 * * *", duration=timedelta(hours=6), time_zone="Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "closes", "opens"),
    [
        ("2026-11-22T20:59:59", None, "2026-11-22T21:00"),  # 22:00 in winter is 21:00 UTC
        ("2026-11-22T21:00:00", "2026-11-23T03:00", "2026-11-23T21:00"),
        ("2026-11-23T02:59:59", "2026-11-23T03:00", "2026-11-23T21:00"),
        ("2026-11-23T03:00:00", None, "2026-11-23T21:00"),
        ("2026-07-01T19:59:00", None, "2026-07-01T20:00"),  # and 20:00 in summer
        ("2026-03-28T22:00:00", "2026-03-29T03:00", "2026-03-29T20:00"),  # six hours, not until 04:00
        ("2026-10-24T21:00:00", "2026-10-25T02:00", "2026-10-25T21:00"),
    ],
)
def test_open_and_closed(now: str, closes: str | None, opens: str) -> None:
    assert (NIGHT.closes(utc(now)), NIGHT.opens(utc(now))) == (closes and utc(closes), utc(opens))


def test_a_time_that_a_clock_leaves_out_comes_an_hour_later_as_in_debians_cron() -> None:
    """On 29 March 2026 clocks in Berlin go from 2:00 to 3:00."""
    early = Window(schedule="30 2 * * *", duration=timedelta(hours=1), time_zone="Europe/Berlin")
    assert early.opens(utc("2026-03-28T12:00")) == utc("2026-03-29T01:00")


def test_windows_that_overlap_are_one() -> None:
    hourly = Window(schedule="0 * * * *", duration=timedelta(hours=2))
    assert hourly.closes(utc("2026-11-22T12:30")) == utc("2026-11-22T14:00")


@pytest.mark.parametrize(
    ("schedule", "zone", "field"),
    [
        *((schedule, "UTC", "schedule") for schedule in ("0 22 * *", "0 0 22 * * *", "0 25 * * *", "0 0 30 2 *")),
        *(("0 22 * * *", zone, "time_zone") for zone in ("Mars/Base", "America", "../etc")),
    ],
)
def test_what_cannot_be_read(schedule: str, zone: str, field: str, says: Says) -> None:
    ((found, why),) = window_faults(schedule, zone)
    assert found == field
    says(why)
