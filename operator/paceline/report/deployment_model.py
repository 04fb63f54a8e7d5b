"""What a report says of a SpeculativeDeployment: what serves, since when, on which runs, what came before."""

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
    """One line of a pool's history. `time` as status has it."""

    time: str
    when: str
    """The same as people read it."""
    what: str
    """How what serves changed (Promoted, RolledBack), what a run found (verdict Reject), what was held or watched."""
    arm: str
    speed_up: float | None
    emulated: bool
    imported: bool
    why: str
    run: str
    """The run that it rests on; empty if none."""
    revision: str
    kept: bool | None
    """Whether a ControllerRevision still holds its rendering, so that one can go back to it; None if not known."""
    request: str
    """Who asked for it, as VERB=VALUE; empty if the operator decided by itself."""
    tone: str
    """good, bad or open; empty for what is neither news nor trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one server, now or as measured; None: nothing shows it. Times in seconds."""

    of: str
    """As people read it: `now, mean of 2 servers`, `measured at code@1`."""
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
    """What serves; empty if nothing does."""
    revision: str
    since: str
    speed_up: float | None
    bounds: Bounds | None
    """Of the speed-up, where the verdict in status has them."""
    emulated: bool
    """Whether its numbers are of a run in which no model ran."""
    imported: bool
    ready: int
    asked: int | None
    """None where an autoscaler decides."""
    address: str
    marks: tuple[tuple[str, str], ...]
    """Word and tone of what is out of the ordinary: degraded, held, measuring."""
    says: str
    """Why it serves that, in a paragraph."""
    advice: str
    """What a person can do about it now, as a command; empty if nothing."""
    evidence: str
    """The run that earned what serves its place."""
    verdict: str
    """The run that answers the present question."""
    under_way: str
    """The run that is being measured now."""
    search: str
    """The latest run that searched."""
    progress: tuple[str, ...]
    """Of the run under way."""
    guard: str
    """What the guard says of what serves."""
    rates: tuple[Rates, ...]
    """Now, if it could be read, and as measured."""
    unread: tuple[str, ...]
    """Why something could not be read."""
    history: tuple[EventView, ...]
    """The latest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    name: str
    namespace: str
    state: str
    tone: str
    summary: str
    engine: str
    remarks: tuple[str, ...]
    """What is not read yet, suspended, refused or noted."""
    conditions: tuple[ConditionRow, ...]
    pools: tuple[PoolView, ...]

    @property
    def emulated(self) -> bool:
        return any(pool.emulated or any(one.emulated for one in pool.history) for pool in self.pools)
