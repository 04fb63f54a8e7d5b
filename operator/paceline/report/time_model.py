"""What the time of a run's rounds goes into, as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTime:
    """Of one arm's servers, seconds of each round that knows them."""

    arm: str
    starts: tuple[float, ...]
    parts: Mapping[str, tuple[float, ...]]
    fewer_graphs: str = ""
    """Its engine's arguments (`StartLines`)."""

    @property
    def start(self) -> float:
        return fmean(self.starts) if self.starts else 0.0

    def mean(self, part: str) -> float:
        return fmean(self.parts[part]) if self.parts.get(part) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeView:
    """`round`: mean seconds that a round held its accelerators, of which servers took so many to start and to answer
    measured workloads."""

    rounds: int
    round: float
    starting: float
    loads: float | None
    arms: tuple[ArmTime, ...]
    shortened: bool = False
    """Whether later rounds sent fewer requests, because more would show nothing (0068)."""
    advice: tuple[str, ...] = ()
