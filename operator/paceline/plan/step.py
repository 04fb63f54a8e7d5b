"""The vocabulary of a planner: objects read from the cluster, what a step returns, and the plan made of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from paceline.api.reasons import Cause, Reason
from paceline.core.manifest import Manifest, Object
from paceline.watch import Watched


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply; not sent if nothing would change. `why` reaches the log, the Event and `paceline plan`."""

    manifest: Manifest
    why: str
    once: bool = False
    """A record of one Job: if it already exists on the server, it stays unchanged, and the next pass reads it."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this object by its uid; another object of the same name stays."""

    item: Object
    why: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Make `reference` the owner of this object (by its uid) and change nothing else."""

    item: Object
    reference: Manifest
    why: str


Action = Apply | Delete | Adopt


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A Kubernetes Event about a transition; its note is in the past tense."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What one step returns. `status` maps fields of the status record to their new values."""

    causes: tuple[Cause, ...] = ()
    actions: tuple[Action, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings without consequences: sentences that start with the field."""
    status: Mapping[str, Any] = field(default_factory=dict)
    blocks: bool = False
    """Later steps must not act in this pass."""
    blocked_pools: frozenset[str] = frozenset()
    """Pools that may not serve anything new."""
    requeue_at: datetime | None = None
    """When to reconcile again if no watch event comes first; None leaves it to the resync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The status is published before the actions run: a crash in between repeats an action, never a decision."""

    status: Mapping[str, Any] | None
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    requeue_at: datetime | None = None
    watched: Mapping[str, Watched] = field(default_factory=dict)
    """Pool → input for judging its servers' counters; pools not listed are not watched."""


ANNOUNCEMENTS = frozenset({Reason.Fetching, Reason.Prefetching})
"""Reasons that announce an action of the same step; dropped when the step may not act."""

Subject = TypeVar("Subject")
Step = Callable[[Subject, datetime], StepResult]


def walk(steps: Sequence[Step[Subject]], subject: Subject, now: datetime) -> list[StepResult]:
    """Run every step, so that all conditions are reported; after a step that blocks, later steps lose their actions."""
    results: list[StepResult] = []
    for step in steps:
        result = step(subject, now)
        if any(earlier.blocks for earlier in results):
            announced = ANNOUNCEMENTS if result.actions else frozenset()
            causes = tuple(cause for cause in result.causes if cause.reason not in announced)
            result = replace(result, actions=(), causes=causes)
        results.append(result)
    return results


def earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def timestamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
