"""The result of a round: what its client reports. `result_log.py` encodes it for the client's log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, PlainSerializer

from paceline.core.manifest import Scalar
from paceline.core.numbers import ContextNumbers, Numbers, TimeParts
from paceline.evidence.arguments import Difference
from paceline.evidence.clocks import Clocks
from paceline.evidence.failures import Failure
from paceline.evidence.outputs import Outputs

NamedFailure = Annotated[
    Failure | None,
    BeforeValidator(lambda name: name if isinstance(name, Failure) else Failure.__members__.get(name)),
    PlainSerializer(lambda failure: failure and failure.name, return_type=str | None),
]
"""Serialised by name; a name that this release does not know becomes None."""


MOST_WINDOWS = 4
"""Most windows of a warm-up."""
WARM = 0.05
"""A warm-up ends with the window in which requests are at most this much faster than in the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(ContextNumbers):
    """Requests of one load with prompts of about one length, in a round's result."""

    __pydantic_config__ = ConfigDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Numbers):
    """One arm on one workload, in a round's result.

    `steady_throughput`: chunks of answers per second in the window with at least 90 % of the concurrency, times the
    tokens per chunk of all answers; judged for a closed loop (0025). `accept_length`: the server's average since the
    flush before the workload; `verify_calls` and `retractions`: differences of its counters.
    """

    __pydantic_config__ = ConfigDict()

    workload: str
    asked: int
    completed: int
    errors: int
    fullness: float | None = None
    """Mean number of requests under way in the steady window, as a fraction of the concurrency. On a ramp, which has no
    such window: the largest number of requests under way, as a fraction of its top."""
    contexts: tuple[Context, ...] = ()
    good_tokens: int | None = None
    mean_input: float | None = None
    """Tokens of a prompt, including the server's template; equal on all arms of a round."""
    p50_input: int | None = None
    p99_input: int | None = None
    client_cpu: float | None = None
    """Share of a CPU that the client used."""
    client_lag: float | None = None
    """Seconds that an event waited for the client's loop, on average."""

    @property
    def duration(self) -> float | None:
        """The client's duration in seconds, from tokens and throughput."""
        return self.output_tokens / self.output_throughput if self.output_tokens and self.output_throughput else None

    @property
    def goodput(self) -> float | None:
        """Requests per second that met the SLO, over the client's duration: vLLM's and AIPerf's `goodput`."""
        return _per(self.good_requests, self.duration)

    @property
    def good_throughput(self) -> float | None:
        """Output tokens per second of requests that met the SLO."""
        return _per(self.good_tokens, self.duration)

    @property
    def request_speed(self) -> float | None:
        """Output tokens per second of a request under way: the inverse of normalised latency (0014). Judged at a rate
        and on a ramp."""
        if not (self.output_tokens and self.completed and self.mean_e2e):
            return None
        return self.output_tokens / (self.completed * self.mean_e2e)


def _per(count: int | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(TimeParts):
    """What a server's time went into, in a round's result."""

    __pydantic_config__ = ConfigDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One fresh server process of one arm. `exit_code`, `error` and `failure` are set if it failed.

    `resolved`: values of the plan's watched arguments; `rest_sha256`: first 8 hex digits of the SHA-256 of all
    comparable arguments; `differs`: the first of these that differ from the baseline's (`arguments`); `differing`:
    how many do; `version`: the engine's, as the server reports it.
    """

    arm: str
    start_seconds: float | None = None
    seconds: Parts = Parts()
    exit_code: int | None = None
    error: str = ""
    resolved: Mapping[str, Scalar] = field(default_factory=dict)
    rest_sha256: str = ""
    differs: tuple[Difference, ...] | None = None
    """None: not compared, because there was no baseline or the client is of an older release."""
    differing: int = 0
    version: str = ""
    kv_tokens: int | None = None
    """Capacity of the server's KV cache in tokens, if reported."""
    clocks: Clocks | None = None
    """State of the GPUs around the loads; None without a driver."""
    no_energy: str = ""
    """Why the energy of a load is unknown; "" if it is known, and without a driver."""
    points: tuple[Point, ...] = ()
    outputs: Outputs | None = None
    """None: not asked for, or the round ended before it."""
    failure: NamedFailure = None
    """A failure that the client saw but `exit_code` does not show: StartTimeout or TimedOut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """`started` and `finished`: epoch seconds. `overhead_seconds`: the time in between without the starts of servers
    that became ready and without the client's durations of measured workloads. Warm-ups and failures count as overhead,
    as they give no result."""

    round: int
    try_: int
    replicates: tuple[Replicate, ...]
    gpus: tuple[str, ...] = ()
    gpu_model: str | None = None
    driver: str | None = None
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Dataset → the first 12 hex digits of the SHA-256 of its prompts."""
    prompts: Mapping[str, int] = field(default_factory=dict)
    """Dataset → number of usable prompts. A client of an older release does not report it."""
    engine_version: str = ""
    paceline: str = ""
    """Release of the client; "" if it does not report one."""
    emulated: bool = False
    started: float = 0.0
    finished: float = 0.0
    overhead_seconds: float = 0.0
    lines_sha256: str = ""
    """SHA-256 of the file at the plan's `lines_path`; "" if the file could not be written."""
    lines_bytes: int = 0
    notes: tuple[str, ...] = ()
    """Problems that do not invalidate the round, such as an unwritable results directory."""
