"""The watcher's input and result for a pool."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from paceline.core import GuardSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The measurements of the served arm on one workload in the evidence, per server. None: not measured."""

    concurrency: float
    """Mean number of requests under way."""
    accept_length: float | None = None
    """Tokens per verify step, including the target's own: 1 if no draft is accepted."""
    ttft_seconds: float | None = None
    """Mean time to first token."""
    itl_seconds: float | None = None
    """Mean time per token after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A watched pool, from its status; `revision`, `arm`, `engine` and `version` are what it serves.

    `verify_tokens`: tokens of a verify step, including the target's own; 1 without speculation. `acceptance_drop`:
    share of the expected accepted drafts that may be missing. `speculates_up_to`: concurrency up to which the evidence
    shows the arm faster; None if unknown. `source`: where its counters are read. `depth_follows_load`: the engine
    chooses how many tokens it drafts, so the acceptance length at one load does not predict another's.
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
    """Kinds of judgement on a window of a pool's traffic, worst first."""

    HUNG = "Hung"
    """Requests are under way, but no token has come for half a window; the servers count as ready."""
    UNREADABLE = "Unreadable"
    """No server could be read for half a window, or the engine exposes no counters."""
    ACCEPTANCE_DROPPED = "AcceptanceDropped"
    BEYOND_CROSSOVER = "BeyondCrossover"
    """More requests are under way than the load up to which the evidence shows the arm faster. Only reported."""
    IDLE = "Idle"
    """Too little traffic to judge."""
    AS_EXPECTED = "AsExpected"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNumbers:
    """Numbers of the window; None: unknown. `running_requests`: requests under way (running or waiting) per server. A
    drop is below `least_accept_length`; `speculates_up_to` is copied from `Watched`."""

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
    """`message`: one sentence with the numbers of the latest window; `since`: when `kind` began, RFC 3339; `revision`:
    of the judged `Watched`."""

    kind: JudgementKind
    message: str
    revision: str
    since: str
    numbers: WindowNumbers = WindowNumbers()
