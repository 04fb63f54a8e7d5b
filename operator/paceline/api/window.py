"""Rules of a window: what a crontab and a time zone must be."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from paceline.api.rules import DeskRule, Violation
from paceline.core.window import Window, window_faults


def _unreadable(window: Window) -> Iterator[Violation]:
    for field, message in window_faults(window.schedule, window.time_zone):
        yield f".{to_camel(field)}", f"{to_camel(field)} {message}"


RULES: Mapping[type[Any], tuple[DeskRule, ...]] = {
    Window: (
        DeskRule(
            message="schedule must be the five fields of a crontab and name a time that exists; timeZone must be a "
            "zone of the IANA database",
            broken=_unreadable,
        ),
    ),
}
