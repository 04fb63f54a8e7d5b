"""Rows of `paceline plan`: what pools measure, likely and at worst."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paceline.plan.costs import Cost
from paceline.plan.forecast import Forecast

HEAD = f"{'ROUNDS':>7} {'JOBS':>7} {'SERVER STARTS':>14} {'GPU-HOURS':>14}"
POOL = 40
"""Characters of a deployment's name and a pool's."""


class Forecasts(NamedTuple):
    """Of a deployment: the likely case and the worst."""

    manifest: Mapping[str, Any]
    lower: Forecast
    upper: Forecast


def by_pool(forecasts: Sequence[Forecasts]) -> Iterator[str]:
    """A table of several deployments' pools, and why one would be Stalled."""
    yield f"{'DEPLOYMENT/POOL':<{POOL}} {HEAD}"
    for manifest, lower, upper in forecasts:
        name = manifest["metadata"]["name"]
        for pool, cost in lower.pools.items():
            reused = f"  reuses {cost.reused}" if cost.reused else ""
            yield f"{f'{name}/{pool}':<{POOL}} {row(cost, upper.pools[pool])}{reused}"
    least = total([cost for each in forecasts for cost in each.lower.pools.values()])
    most = total([cost for each in forecasts for cost in each.upper.pools.values()])
    yield f"{'all':<{POOL}} {row(least, most)}"
    for manifest, lower, _ in forecasts:
        if lower.stalled:
            yield f"\n{manifest['metadata']['name']}: Stalled: {lower.stalled}"


def row(least: Cost, most: Cost, prefetches: int = 0) -> str:
    """Each round is a Job, and so is each prefetch."""
    rounds, jobs = span(least.jobs, most.jobs), span(least.jobs + prefetches, most.jobs + prefetches)
    hours = span(least.accelerator_seconds / 3600, most.accelerator_seconds / 3600, 1)
    return f"{rounds:>7} {jobs:>7} {span(least.server_starts, most.server_starts):>14} {hours:>14}"


def total(costs: Sequence[Cost]) -> Cost:
    return Cost(
        jobs=sum(cost.jobs for cost in costs),
        server_starts=sum(cost.server_starts for cost in costs),
        accelerator_seconds=sum(cost.accelerator_seconds for cost in costs),
    )


def span(least: float, most: float, digits: int = 0) -> str:
    """In order: a search may need fewer rounds where nothing is clear."""
    least, most = sorted((least, most))
    first, last = f"{least:.{digits}f}", f"{most:.{digits}f}"
    return first if first == last else f"{first}-{last}"
