"""The report's view of a SpeculativeDeployment: what serves, since when, on which runs, and its history."""

from dataclasses import dataclass

from paceline.core import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionRow:
    type: str
    status: str
    reason: str
    message: str
    since: str
    tone: str
    """good, bad or open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """One line of a pool's history. `time` is as in status."""

    time: str
    when: str
    """The time in readable form."""
    what: str
    """The event: a change (Promoted, RolledBack), a run's result (verdict Reject), a hold, or the guard's finding."""
    arm: str
    speed_up: float | None
    emulated: bool
    imported: bool
    why: str
    run: str
    """The run on which it is based; empty if none."""
    revision: str
    kept: bool | None
    """Whether a ControllerRevision still keeps its rendering, so that a rollback is possible; None if not known."""
    request: str
    """The request for it, as VERB=VALUE; empty if the operator decided alone."""
    tone: str
    """good, bad or open; empty for an event that is neither news nor trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of one server, now or as measured; None if unknown. Times in seconds."""

    of: str
    """Their source in words: `now, mean of 2 servers`, `measured at code@1`."""
    requests: float | None
    tokens_per_second: float | None
    accept_length: float | None
    ttft: float | None
    per_token: float | None
    emulated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    name: str
    arm: str
    """The serving arm; empty if nothing serves."""
    revision: str
    since: str
    speed_up: float | None
    bounds: Bounds | None
    """Bounds of the speed-up, if the verdict in status has them."""
    emulated: bool
    """Whether its numbers come from a run without a real model."""
    imported: bool
    ready: int
    asked: int | None
    """None if an autoscaler decides."""
    address: str
    marks: tuple[tuple[str, str], ...]
    """Word and tone of each unusual state: degraded, held, measuring."""
    says: str
    """Why it serves this arm, in a paragraph."""
    advice: str
    """What a person can do now, as a command; empty if nothing."""
    evidence: str
    """The run that justified the serving arm."""
    verdict: str
    """The run that answers the current question."""
    under_way: str
    """The run in progress."""
    search: str
    """The latest run with a search."""
    progress: tuple[str, ...]
    """Progress of the current run."""
    guard: str
    """The guard's judgement of the serving arm."""
    rates: tuple[Rates, ...]
    """Current rates, if they could be read, and measured rates."""
    unread: tuple[str, ...]
    """Reasons why something could not be read."""
    history: tuple[EventView, ...]
    """Newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    name: str
    namespace: str
    state: str
    tone: str
    summary: str
    engine: str
    remarks: tuple[str, ...]
    """Remarks: what is not read yet, suspended, refused or noted."""
    conditions: tuple[ConditionRow, ...]
    pools: tuple[PoolView, ...]

    @property
    def emulated(self) -> bool:
        return any(pool.emulated or any(one.emulated for one in pool.history) for pool in self.pools)
