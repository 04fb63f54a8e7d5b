"""What the planner tells the watcher of a pool, and what it is told."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from paceline.core import GuardSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the evidence measured of the served arm on one workload, of one server. None: not measured."""

    concurrency: float
    """Requests under way, mean."""
    accept_length: float | None = None
    """Tokens per verify step, its own token included: 1 if no draft is accepted."""
    ttft_seconds: float | None = None
    """Mean."""
    itl_seconds: float | None = None
    """Mean time per token after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A pool that is watched, as status has it: what it serves is `revision`, `arm`, `engine` and `version`.

    `verify_tokens` are those of a verify step, its own token included; 1 without speculation. `acceptance_drop` is the
    share of the expected accepted drafts that may be missing. `speculates_up_to` is the concurrency up to which the
    evidence shows the arm faster; None if unknown. `source` is where its counters are read. `depth_follows_load` says
    that the engine chooses how many tokens it drafts, so that the acceptance length at one load says nothing of that at
    another.
    """

    revision: str
    arm: str
    engine: str
    version: str
    verify_tokens: int
    expected: tuple[Expected, ...]
    acceptance_drop: float
    window: timedelta
    speculates_up_to: float | None = None
    source: GuardSource = GuardSource.PODS
    depth_follows_load: bool = False


class JudgementKind(StrEnum):
    """What a window of a pool's traffic shows; the worst first."""

    HUNG = "Hung"
    """Requests are under way, and no token has come for half a window; the servers count as ready."""
    UNREADABLE = "Unreadable"
    """No server could be read for half a window, or the engine shows nothing."""
    ACCEPTANCE_DROPPED = "AcceptanceDropped"
    BEYOND_CROSSOVER = "BeyondCrossover"
    """More requests are under way than the evidence showed the arm faster for. Told only."""
    IDLE = "Idle"
    """Too little traffic to judge."""
    AS_EXPECTED = "AsExpected"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNumbers:
    """Of the window; None: not known. `running_requests` are those under way (running or waiting) of one server. Below
    `least_accept_length` a drop is found; `speculates_up_to` is that of `Watched`."""

    accept_length: float | None = None
    expected_accept_length: float | None = None
    least_accept_length: float | None = None
    running_requests: float | None = None
    speculates_up_to: float | None = None
    ttft_seconds: float | None = None
    expected_ttft_seconds: float | None = None
    itl_seconds: float | None = None
    expected_itl_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`message` is one sentence with its numbers, of the latest window; `since` is when `kind` began, RFC 3339.
    `revision` is that of the `Watched` it judges."""

    kind: JudgementKind
    message: str
    revision: str
    since: str
    numbers: WindowNumbers = WindowNumbers()
