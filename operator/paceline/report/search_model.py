"""What a report says of a search, and of speeds over concurrencies: beside `model`, as words and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.core import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchArm:
    """One arm that was measured. `speed` is over the baseline, as the search estimates it; None where that is not
    known, and for the baseline."""

    name: str
    shape: str
    """In words; empty for what is no tree."""
    state: str
    """As `status.search` says it."""
    points: int
    speed: Bounds | None
    why: str
    """Why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """`grid_points` and `grid_starts` are of one repetition of every arm on every workload, the baseline included."""

    candidates: int
    measured: int
    """Candidates with a point."""
    points: int
    grid_points: int
    server_starts: int
    grid_starts: int
    next: str
    """What the next round is for; empty at the end."""
    arms: tuple[SearchArm, ...]
    """The best first; those that failed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """From this batch size on the arm drafts `steps` tokens; 0 is no speculation."""

    arm: str
    batch_size: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Output tokens per second of all requests of a dataset: arm → concurrency, rising, → tokens per second."""

    dataset: str
    lines: Mapping[str, Mapping[int, float]]
    thresholds: tuple[Threshold, ...]
    """Of arms with a schedule: where another depth begins."""
