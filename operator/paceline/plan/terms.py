"""The words of a plan: what was found, what a step says, what is to be done."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from paceline.api.reasons import Mark, Reason

Manifest = dict[str, Any]
Found = Mapping[str, Any]
"""An object as the cluster holds it; never edited."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply; unsent if nothing would change. `why` reaches the log, the Event and `paceline plan`."""

    manifest: Manifest
    why: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Of this very object: another one of the same name is left alone."""

    found: Found
    why: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """This very object belongs to `reference` from now on; nothing else of it is touched."""

    found: Found
    reference: Manifest
    why: str


Action = Apply | Delete | Adopt


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One Event: a transition worth telling, in the past tense."""

    reason: str
    note: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one step has to say. `record` are fields of the record of status that the step speaks of."""

    marks: tuple[Mark, ...] = ()
    actions: tuple[Action, ...] = ()
    notes: tuple[str, ...] = ()
    """Worth knowing, and no reason to stop: sentences that begin with the field."""
    record: Mapping[str, Any] = field(default_factory=dict)
    holds: bool = False
    """Later steps must not act now."""
    wake: datetime | None = None
    """Look again then, if no event comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """Publish the status, then act: a crash between repeats an action, never a decision."""

    status: Mapping[str, Any] | None
    actions: tuple[Action, ...] = ()
    happenings: tuple[Happening, ...] = ()
    wake: datetime | None = None


PROMISES = frozenset({Reason.Fetching, Reason.Prefetching})
"""What a step says that is about to act: not so if it may not."""

Subject = TypeVar("Subject")
Step = Callable[[Subject, datetime], Said]


def walk(steps: Sequence[Step[Subject]], subject: Subject, now: datetime) -> list[Said]:
    """Every step speaks; none acts after one that holds, or says that it does."""
    said: list[Said] = []
    for step in steps:
        say = step(subject, now)
        if any(earlier.holds for earlier in said):
            promised = PROMISES if say.actions else frozenset()
            say = replace(say, actions=(), marks=tuple(mark for mark in say.marks if mark.reason not in promised))
        said.append(say)
    return said


def earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def timestamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def owned_by(found: Found, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in found["metadata"].get("ownerReferences", ()))


def condition(found: Found, kind: str) -> Mapping[str, Any] | None:
    """The condition of this type if it is True."""
    return next(
        (c for c in found.get("status", {}).get("conditions", ()) if c["type"] == kind and c["status"] == "True"), None
    )
