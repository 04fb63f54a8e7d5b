"""Rows of `paceline plan`: the cost of pools, likely and at worst."""

from collections.abc import Iterator, Sequence

from paceline.plan.costs import EvidenceCost
from paceline.plan.forecast import Forecast

HEAD = f"{'ROUNDS':>7} {'JOBS':>7} {'SERVER STARTS':>14} {'GPU-HOURS':>14}"
POOL = 40
"""Width of a deployment's and a pool's name."""


def by_pool(cases: Sequence[tuple[str, Forecast, Forecast]]) -> Iterator[str]:
    """A table of the pools of several deployments: name, likely and worst case."""
    yield f"{'DEPLOYMENT/POOL':<{POOL}} {HEAD}"
    for name, lower, upper in cases:
        for pool, cost in lower.pools.items():
            reused = f"  reuses {cost.reused}" if cost.reused else ""
            yield f"{f'{name}/{pool}':<{POOL}} {row(cost, upper.pools[pool])}{reused}"
    least = total([cost for _, lower, _ in cases for cost in lower.pools.values()])
    most = total([cost for _, _, upper in cases for cost in upper.pools.values()])
    yield f"{'all':<{POOL}} {row(least, most)}"
    yield from (f"\n{name}: Stalled: {lower.stalled}" for name, lower, _ in cases if lower.stalled)


def row(least: EvidenceCost, most: EvidenceCost, prefetches: int = 0) -> str:
    """A line with rounds, Jobs, server starts and GPU-hours; each round and each prefetch is a Job."""
    rounds, jobs = cost_span(least.jobs, most.jobs), cost_span(least.jobs + prefetches, most.jobs + prefetches)
    hours = cost_span(least.accelerator_seconds / 3600, most.accelerator_seconds / 3600, 1)
    return f"{rounds:>7} {jobs:>7} {cost_span(least.server_starts, most.server_starts):>14} {hours:>14}"


def total(costs: Sequence[EvidenceCost]) -> EvidenceCost:
    return EvidenceCost(
        jobs=sum(cost.jobs for cost in costs),
        server_starts=sum(cost.server_starts for cost in costs),
        accelerator_seconds=sum(cost.accelerator_seconds for cost in costs),
    )


def cost_span(least: float, most: float, digits: int = 0) -> str:
    """Both numbers, in ascending order: a search may need fewer rounds at worst than in the likely case."""
    least, most = sorted((least, most))
    first, last = f"{least:.{digits}f}", f"{most:.{digits}f}"
    return first if first == last else f"{first}-{last}"
