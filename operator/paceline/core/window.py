"""`benchmark.window`: when rounds may start."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import Field

from paceline.core.model import model
from paceline.core.types import Duration, Matches

SECOND = timedelta(seconds=1)
_FIELDS = 5
Schedule = Annotated[
    str,
    Field(max_length=100),
    Matches(r"^[^ ]+( [^ ]+){4}$", "be five fields of a crontab with one space between them, such as 0 22 * * *"),
]
TimeZone = Annotated[
    str, Field(max_length=64), Matches(r"^[A-Za-z0-9][A-Za-z0-9/_+-]*$", "be a time zone, such as Europe/Berlin or UTC")
]


@model
class Window:
    """When rounds of the pools' runs may start. A running round finishes after the window closes; a BenchmarkRun made
    by a person has no window."""

    # Changes to or from summer time are handled as in Debian's cron.
    schedule: Schedule
    """When it opens: minute, hour, day of month, month, day of week."""
    # Elapsed time, independent of clock changes.
    duration: Duration
    """How long it is open."""
    time_zone: TimeZone = "UTC"
    """Time zone of the schedule."""

    def closes(self, now: datetime) -> datetime | None:
        """When the current window ends; None outside a window."""
        began = next(CronSim(self.schedule, self._local(now + SECOND), reverse=True)).astimezone(UTC)
        end = began + self.duration
        return end if now < end else None

    def opens(self, now: datetime) -> datetime:
        """The schedule's next time after `now`."""
        return next(CronSim(self.schedule, self._local(now))).astimezone(UTC)

    def _local(self, now: datetime) -> datetime:
        return now.astimezone(ZoneInfo(self.time_zone))


def window_faults(
    schedule: str, time_zone: str, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
) -> Iterator[tuple[str, str]]:
    """Fields of a window that cannot be read, each with what to write instead."""
    fields = schedule.split()
    try:
        if len(fields) != _FIELDS:
            raise CronSimError(f"it has {len(fields)} fields")
        next(CronSim(schedule, now))
    except CronSimError as error:
        yield "schedule", f"must be five fields of a crontab, such as 0 22 * * * (22:00 each day): {str(error).lower()}"
    except StopIteration:
        yield "schedule", "must name a time that exists: no day matches"
    with suppress(KeyError, ValueError, OSError):
        ZoneInfo(time_zone)
        return
    yield "time_zone", f"must be a zone of the IANA database, such as Europe/Berlin or UTC; got {time_zone}"
