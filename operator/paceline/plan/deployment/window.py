"""`benchmark.window`: outside it no round of the pools' runs starts, and no run is made.

A run reads no clock for that: while the window is closed its deployment annotates it with the time of the next opening.
"""

from datetime import datetime

from paceline.core import DeploymentSpec
from paceline.core.names import OUTSIDE_WINDOW
from paceline.plan.step import timestamp


def opens_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens next; None while it is open, or if there is none."""
    if spec.window is None or spec.window.closes(now):
        return None
    return spec.window.opens(now)


def changes_at(spec: DeploymentSpec, now: datetime) -> datetime | None:
    """When the window opens or closes next; None if there is none."""
    return None if spec.window is None else spec.window.closes(now) or spec.window.opens(now)


def annotations(spec: DeploymentSpec, now: datetime) -> dict[str, str]:
    """What a run that goes on says of the window."""
    opens = opens_at(spec, now)
    return {OUTSIDE_WINDOW: timestamp(opens)} if opens else {}
