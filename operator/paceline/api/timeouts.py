"""How long a round waits: the fields, and what they mean."""

import re
from datetime import timedelta

from paceline import core
from paceline.api.model import Model
from paceline.api.words import Duration


class TimeoutsSpec(Model):
    """How long a round waits for what is slow, before it is given up."""

    start: Duration | None = None
    """From a server's start to ready; 30m if absent. Where kernels are compiled (torch.compile, DeepGEMM, XLA) a
    first start may take longer."""
    workload: Duration | None = None
    """For each workload of each arm. If absent, as long as all answers take at 5 tokens a second each, and at least
    30m."""


def timeouts(said: TimeoutsSpec | None) -> core.Timeouts:
    start, workload = (duration(said.start), duration(said.workload)) if said else (None, None)
    usual = core.Timeouts()
    return core.Timeouts(
        start=start.total_seconds() if start else usual.start, workload=workload.total_seconds() if workload else None
    )


def manifest(spec: core.Timeouts) -> dict[str, str] | None:
    """Not written where it is the default: the fingerprint of a question must not move with a new field."""
    start = None if spec.start == core.Timeouts().start else spec.start
    said = {name: f"{value:.0f}s" for name, value in (("start", start), ("workload", spec.workload)) if value}
    return said or None


def duration(text: str | None) -> timedelta | None:
    """A Go duration of hours, minutes and seconds."""
    if text is None:
        return None
    units = {"h": "hours", "m": "minutes", "s": "seconds"}
    return timedelta(**{units[unit]: int(number) for number, unit in re.findall(r"([0-9]+)([hms])", text)})
