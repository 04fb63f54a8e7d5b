"""Starts and workloads of a plan that exceed its timeouts: their rounds would end in Error, hours later."""

import math
from collections.abc import Iterator, Sequence

from paceline.core import PoolSettings, Timeouts
from paceline.plan.costs import Assumptions


def too_slow(pools: Sequence[PoolSettings], timeouts: Timeouts, at: str, slowest: Assumptions) -> Iterator[str]:
    """One line per start and workload that may not finish in time if all is as slow as `slowest`. `at` is the path of
    the timeouts."""
    if slowest.start_seconds > timeouts.start:
        yield (
            f"  Too slow: a server may take {slowest.start_seconds:.0f} s to start, but a round waits for "
            f"{_minutes(timeouts.start)}; set {at}.start to {_more(slowest.start_seconds)} or more."
        )
    for pool in pools:
        for workload in pool.workloads:
            takes, may = slowest.of_workload(workload), timeouts.of(workload)
            if takes > may:
                yield (
                    f"  Too slow: {pool.name} {workload.name} may take {_minutes(takes)} on one arm, but a round "
                    f"waits for {_minutes(may)}; set {at}.workload to {_more(takes)} or more, or lower requests or "
                    "maxTokens."
                )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _more(seconds: float) -> str:
    """A Go duration with a quarter added."""
    return f"{math.ceil(seconds * 1.25 / 60)}m"
