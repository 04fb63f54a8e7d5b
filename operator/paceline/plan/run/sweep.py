"""A run over several concurrencies: at which of them speculation pays. Of a Sweep this table is all there is; of a Gate
run it tells whether one pool is asked to be two."""

from collections.abc import Iterator

from paceline.api.run_status import CrossoverSpot
from paceline.core import BASELINE, Bounds
from paceline.evidence.round_status import measurements
from paceline.gate import Crossing, Crossover, Load, Pace, crossover
from paceline.gate.crossover import ConcurrencyResult
from paceline.plan.run.snapshot import Evidence

SPLIT = (Crossing.BASELINE_TAKES_OVER, Crossing.SPECULATION_TAKES_OVER, Crossing.CROSSES_TWICE)
"""No one arm is right for all of the concurrencies."""


def found(evidence: Evidence) -> Crossover | None:
    """None for a run of one concurrency: at a rate, nothing is known of it."""
    spec = evidence.spec
    loads = {
        workload.name: Load(concurrency=workload.concurrency, weight=workload.weight)
        for workload in spec.workloads
        if workload.rate is None
    }
    if len({load.concurrency for load in loads.values()}) < 2:
        return None
    return crossover(spec.gate, [arm.name for arm in spec.arms], loads, measurements(evidence.records))


def nothing(table: Crossover) -> bool:
    """No candidate could be measured at any concurrency."""
    return all(spot.best is None for spot in table.results)


def spots(evidence: Evidence) -> tuple[CrossoverSpot, ...]:
    """`status.crossover`."""
    table = found(evidence)
    return () if table is None or nothing(table) else tuple(_spot(spot) for spot in table.results)


def effects(table: Crossover) -> Iterator[tuple[str, str, Bounds]]:
    """Arm, workload and bounds, in the order of concurrencies."""
    for spot in table.results:
        for arm, effect in spot.effects.items():
            for workload, bounds in effect.workloads.items():
                yield arm, workload, bounds


def crossing(evidence: Evidence) -> str:
    """Of a pool: that its concurrencies are not for one server, at which workloads, and what to do. "" if they are."""
    table = found(evidence)
    if table is None or table.crossing not in SPLIT:
        return ""
    return f"{table.sentence} ({', '.join(_slower(table))}): split the pool by concurrency"


def _slower(table: Crossover) -> Iterator[str]:
    for spot in table.results:
        if spot.pace is Pace.SLOWER and spot.best:
            for workload, bounds in spot.effects[spot.best].workloads.items():
                if bounds.upper < 1:
                    yield f"{workload} {bounds.ratio:.3f}x"


def _spot(spot: ConcurrencyResult) -> CrossoverSpot:
    if spot.best is None:
        return CrossoverSpot(concurrency=spot.concurrency)
    effect = spot.effects[spot.best]
    fastest = {Pace.FASTER: spot.best, Pace.SLOWER: BASELINE, Pace.OPEN: ""}[spot.pace]
    return CrossoverSpot(
        concurrency=spot.concurrency,
        fastest=fastest,
        arm=spot.best,
        ratio=effect.mean.ratio,
        lower=effect.mean.lower,
        upper=effect.mean.upper,
        rounds=effect.rounds,
    )
