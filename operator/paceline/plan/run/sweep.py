"""Runs over several concurrencies: at which loads speculation pays. A Sweep reports only this table; a Gate run uses it
to advise splitting a pool."""

from collections.abc import Iterator

from paceline.api.run_status import CrossoverSpot
from paceline.core import BASELINE, Bounds
from paceline.gate import Crossing, Crossover, Pace
from paceline.gate.crossover import ConcurrencyResult
from paceline.plan.run.evidence import Evidence

_SPLIT = (Crossing.BASELINE_TAKES_OVER, Crossing.SPECULATION_TAKES_OVER, Crossing.CROSSES_TWICE)
"""Crossings at which no single arm is fastest at all concurrencies."""


def nothing_measured(table: Crossover) -> bool:
    """No candidate could be measured at any concurrency."""
    return all(row.best is None for row in table.results)


def crossover_status(evidence: Evidence) -> tuple[CrossoverSpot, ...]:
    """`status.crossover`."""
    table = evidence.crossover
    return () if table is None or nothing_measured(table) else tuple(_row_status(row) for row in table.results)


def effects(table: Crossover) -> Iterator[tuple[str, str, Bounds]]:
    """Arm, workload and bounds, in the order of concurrencies."""
    for row in table.results:
        for arm, effect in row.effects.items():
            for workload, bounds in effect.workloads.items():
                yield arm, workload, bounds


def advice_to_split(evidence: Evidence) -> str:
    """Advice to split the pool if no single arm is fastest at all its concurrencies; else ""."""
    table = evidence.crossover
    if table is None or table.crossing not in _SPLIT:
        return ""
    return f"{table.sentence} ({', '.join(_slower(table))}): split the pool by concurrency"


def _slower(table: Crossover) -> Iterator[str]:
    for row in table.results:
        if row.pace is Pace.SLOWER and row.best:
            for workload, bounds in row.effects[row.best].workloads.items():
                if bounds.upper < 1:
                    yield f"{workload} {bounds.ratio:.3f}x"


def _row_status(row: ConcurrencyResult) -> CrossoverSpot:
    if row.best is None:
        return CrossoverSpot(concurrency=row.concurrency)
    effect = row.effects[row.best]
    fastest = {Pace.FASTER: row.best, Pace.SLOWER: BASELINE, Pace.OPEN: ""}[row.pace]
    return CrossoverSpot(
        concurrency=row.concurrency,
        fastest=fastest,
        arm=row.best,
        ratio=effect.mean.ratio,
        lower=effect.mean.lower,
        upper=effect.mean.upper,
        rounds=effect.rounds,
    )
