"""When runs may take accelerators: from each time of a cron schedule on for a while, in a time zone."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

SECOND = timedelta(seconds=1)
FIELDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`schedule` has the five fields of a crontab; around a change to or from summer time it is read as Debian's cron
    reads it. `duration` is time that passes, whatever clocks say."""

    schedule: str
    duration: timedelta
    time_zone: str = "UTC"

    def closes(self, now: datetime) -> datetime | None:
        """When the window that is open ends; None while none is."""
        began = next(CronSim(self.schedule, self._local(now + SECOND), reverse=True)).astimezone(UTC)
        end = began + self.duration
        return end if now < end else None

    def opens(self, now: datetime) -> datetime:
        """The next time of the schedule after `now`."""
        return next(CronSim(self.schedule, self._local(now))).astimezone(UTC)

    def _local(self, now: datetime) -> datetime:
        return now.astimezone(ZoneInfo(self.time_zone))


def faults(
    schedule: str, time_zone: str, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
) -> Iterator[tuple[str, str]]:
    """Fields of a window that cannot be read, each with what to write."""
    fields = schedule.split()
    try:
        if len(fields) != FIELDS:
            raise CronSimError(f"it has {len(fields)} fields")
        next(CronSim(schedule, now))
    except CronSimError as error:
        yield "schedule", f"must be five fields of a crontab, such as 0 22 * * * (22:00 each day): {str(error).lower()}"
    except StopIteration:
        yield "schedule", "must name a time that comes: no day is like this"
    with suppress(KeyError, ValueError, OSError):
        ZoneInfo(time_zone)
        return
    yield "time_zone", f"must be a zone of the IANA database, such as Europe/Berlin or UTC; got {time_zone}"
