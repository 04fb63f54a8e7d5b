"""`benchmark.window`: when rounds may start."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field
from pydantic.alias_generators import to_camel

from paceline.api.model import Model
from paceline.api.rules import DeskRule, Violation
from paceline.api.types import Duration, Matches
from paceline.core.window import faults

Schedule = Annotated[
    str,
    Field(max_length=100),
    Matches(r"^[^ ]+( [^ ]+){4}$", "be five fields of a crontab with one space between them, such as 0 22 * * *"),
]
TimeZone = Annotated[
    str, Field(max_length=64), Matches(r"^[A-Za-z0-9][A-Za-z0-9/_+-]*$", "be a time zone, such as Europe/Berlin or UTC")
]


UTC = "UTC"


def _unreadable(window: "WindowSpec") -> Iterator[Violation]:
    for field, message in faults(window.schedule, window.time_zone):
        yield f".{to_camel(field)}", f"{to_camel(field)} {message}"


class WindowSpec(Model):
    """When rounds of the pools' runs may start. One that is under way when the window closes is measured to its end; a
    BenchmarkRun that a person makes has no window."""

    rules = (
        DeskRule(
            message="schedule must be the five fields of a crontab and name a time that comes; timeZone must be a zone "
            "of the IANA database",
            broken=_unreadable,
        ),
    )

    schedule: Schedule
    """When it opens: minute, hour, day of month, month, day of week."""
    duration: Duration
    """How long it is open."""
    time_zone: TimeZone = UTC
    """Time zone of the schedule."""
