"""How long a round waits: the fields, and what they mean."""

import re
from datetime import timedelta

from paceline import core
from paceline.api.model import Model
from paceline.api.words import Duration

MOST_DIGITS = 99_999
"""Hours, minutes or seconds: `Duration` has five digits of each."""


class TimeoutsSpec(Model):
    """Time limits of a round."""

    start: Duration | None = None
    """Time from a server's start until it is ready; 30m if absent. A first start that compiles kernels (torch.compile,
    DeepGEMM, XLA) may take longer."""
    workload: Duration | None = None
    """Time for each workload of each arm. If absent, the time that all answers take at 5 tokens per second each, and at
    least 30m."""


def timeouts(said: TimeoutsSpec | None) -> core.Timeouts:
    start, workload = (duration(said.start), duration(said.workload)) if said else (None, None)
    usual = core.Timeouts()
    return core.Timeouts(
        start=start.total_seconds() if start else usual.start, workload=workload.total_seconds() if workload else None
    )


def manifest(spec: core.Timeouts) -> dict[str, str] | None:
    """Not written where it is the default: the fingerprint of a question must not move with a new field."""
    start = None if spec.start == core.Timeouts().start else spec.start
    said = {name: _written(value) for name, value in (("start", start), ("workload", spec.workload)) if value}
    return said or None


def _written(seconds: float) -> str:
    """In seconds; what has more than five digits of them begins with minutes and hours, as `Duration` takes it."""
    left, said = round(seconds), ""
    for unit, size in (("h", 3600), ("m", 60)):
        if left > MOST_DIGITS:
            said += f"{min(left // size, MOST_DIGITS)}{unit}"
            left -= min(left // size, MOST_DIGITS) * size
    return f"{said}{left}s" if left or not said else said


def duration(text: str | None) -> timedelta | None:
    """A Go duration of hours, minutes and seconds."""
    if text is None:
        return None
    units = {"h": "hours", "m": "minutes", "s": "seconds"}
    return timedelta(**{units[unit]: int(number) for number, unit in re.findall(r"([0-9]+)([hms])", text)})
