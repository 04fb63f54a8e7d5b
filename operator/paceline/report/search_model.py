"""The report's content for a search, and for speeds over concurrencies; extends `model`."""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.core import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchArm:
    """One measured arm. `speed` is relative to the baseline, as the search estimates it; None if not known, and for the
    baseline."""

    name: str
    shape: str
    """The tree in words; empty for other shapes."""
    state: str
    """The state in `status.search`."""
    points: int
    speed: Bounds | None
    why: str
    """Why the arm failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """`grid_points` and `grid_starts` are for measuring every arm on every workload once, including the baseline."""

    candidates: int
    measured: int
    """Candidates with a point."""
    points: int
    grid_points: int
    server_starts: int
    grid_starts: int
    next: str
    """The purpose of the next round; empty at the end."""
    arms: tuple[SearchArm, ...]
    """Best first; failed arms last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """From this batch size on, the arm drafts `steps` tokens; 0 disables speculation."""

    arm: str
    batch_size: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Output tokens per second of all requests of a dataset: arm → concurrency, ascending, → tokens per second."""

    dataset: str
    lines: Mapping[str, Mapping[int, float]]
    thresholds: tuple[Threshold, ...]
    """For arms with a schedule: where the depth changes."""
