"""From rounds at several concurrencies to the table of a sweep: the best candidate against the baseline at each, and
the concurrency at which the baseline takes over. A crossover is only located between two measured concurrencies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds, Gate, Measurement
from paceline.gate.findings import shown
from paceline.gate.interval import Interval, interval
from paceline.gate.rounds import Rounds, rounds_table, weighted_means


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadLevel:
    """The load of a workload."""

    concurrency: int
    weight: float = 1.0


class Pace(StrEnum):
    """Result of the rounds at one concurrency."""

    FASTER = "Faster"
    """A candidate is faster than the baseline."""
    SLOWER = "Slower"
    """Every candidate is slower than the baseline."""
    OPEN = "Open"
    """No difference is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One candidate at one concurrency; `mean` is weighted over the workloads there."""

    mean: Bounds
    workloads: Mapping[str, Bounds]
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyResult:
    """One concurrency. `best` has the highest lower bound (the first of equals; None if no candidate was measured);
    `effects` omits candidates that were not valid together with the baseline in two rounds."""

    concurrency: int
    pace: Pace
    best: str | None
    effects: Mapping[str, Effect]


class Crossing(StrEnum):
    """How the faster side changes as the concurrency rises."""

    BASELINE_TAKES_OVER = "BaselineTakesOver"
    SPECULATION_TAKES_OVER = "SpeculationTakesOver"
    CROSSES_TWICE = "CrossesTwice"
    """The faster side changes at least twice."""
    SPECULATION_FASTER = "SpeculationFaster"
    """Speculation is faster at every concurrency with a shown difference."""
    BASELINE_FASTER = "BaselineFaster"
    NOT_SHOWN = "NotShown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """`results` are in order of concurrency. `between`: the two measured concurrencies around the only crossover."""

    results: tuple[ConcurrencyResult, ...]
    crossing: Crossing
    between: tuple[int, int] | None

    @property
    def sentence(self) -> str:
        """At which concurrencies to speculate, in one sentence."""
        return _sentence(self)

    @property
    def message(self) -> str:
        """The sentence with the undecided concurrencies and the numbers."""
        return "; ".join(filter(None, (self.sentence, _open(self.results), _numbers(self.results))))


def crossover(
    gate: Gate, arms: Sequence[str], loads: Mapping[str, LoadLevel], measurements: Sequence[Measurement]
) -> Crossover:
    """`arms` starts with the baseline; `loads` has every workload by name, at least one.

    A round counts at a concurrency if it is valid on all workloads there, so an arm that fails under the highest load
    keeps its results at the others. Bounds are computed as in the gate; `confidence` covers the table as a whole: the
    probability of a wrong line is split over candidates, looks, concurrencies and both directions.
    """
    baseline, *candidates = arms
    concurrencies = sorted({load.concurrency for load in loads.values()})
    claims = 2 * len(candidates) * len(concurrencies) * len(gate.decide_after_rounds)
    error = (1 - gate.confidence) / claims
    results = []
    for concurrency in concurrencies:
        here = {name: load.weight for name, load in loads.items() if load.concurrency == concurrency}
        rounds = rounds_table(baseline, here, [m for m in measurements if m.workload in here])
        effects = ((arm, _effect(rounds, gate, arm, error)) for arm in candidates)
        results.append(_result(concurrency, candidates, {arm: effect for arm, effect in effects if effect}))
    crossing, between = _crossing(results)
    return Crossover(results=tuple(results), crossing=crossing, between=between)


def _effect(rounds: Rounds, gate: Gate, arm: str, error: float) -> Effect | None:
    complete = rounds.complete(arm)
    # Use the rounds of the last look, because looks decide whether more are measured; before the first look, use all.
    used = max((n for n in gate.decide_after_rounds if n <= len(complete)), default=len(complete))
    if used < 2:
        return None
    logs = {w: rounds.speed_ups(arm, complete[:used], w) for w in rounds.workloads}

    def bounds(values: Sequence[float]) -> Bounds:
        one_sided: Interval = interval(values, error=error, floor=gate.variance_floor)
        return one_sided.bounds

    return Effect(
        mean=bounds(weighted_means(rounds.workloads, logs)),
        workloads={w: bounds(values) for w, values in logs.items()},
        rounds=used,
    )


def _result(concurrency: int, candidates: Sequence[str], effects: Mapping[str, Effect]) -> ConcurrencyResult:
    if any(effect.mean.lower > 1 for effect in effects.values()):
        pace = Pace.FASTER
    elif len(effects) == len(candidates) and all(effect.mean.upper < 1 for effect in effects.values()):
        pace = Pace.SLOWER
    else:
        pace = Pace.OPEN
    best = max(effects, key=lambda arm: effects[arm].mean.lower, default=None)
    return ConcurrencyResult(concurrency=concurrency, pace=pace, best=best, effects=effects)


def _crossing(results: Sequence[ConcurrencyResult]) -> tuple[Crossing, tuple[int, int] | None]:
    faster, slower = _at(results, Pace.FASTER), _at(results, Pace.SLOWER)
    if not faster or not slower:
        alone = {(True, False): Crossing.SPECULATION_FASTER, (False, True): Crossing.BASELINE_FASTER}
        return alone.get((bool(faster), bool(slower)), Crossing.NOT_SHOWN), None
    if max(faster) < min(slower):
        return Crossing.BASELINE_TAKES_OVER, (max(faster), min(slower))
    if max(slower) < min(faster):
        return Crossing.SPECULATION_TAKES_OVER, (max(slower), min(faster))
    return Crossing.CROSSES_TWICE, None


def _at(results: Sequence[ConcurrencyResult], pace: Pace) -> list[int]:
    return [result.concurrency for result in results if result.pace is pace]


# Messages.


def _sentence(crossover: Crossover) -> str:
    faster, slower = (_named(_at(crossover.results, pace)) for pace in (Pace.FASTER, Pace.SLOWER))
    low, high = crossover.between or (0, 0)
    between = f"somewhere between {low} and {high} simultaneous requests"
    return {
        Crossing.BASELINE_TAKES_OVER: f"speculate up to {low}, not at {slower}: the baseline takes over {between}",
        Crossing.SPECULATION_TAKES_OVER: f"speculate at {faster}, not up to {low}: speculation takes over {between}",
        Crossing.CROSSES_TWICE: f"speculate at {faster}, not at {slower}: the faster side changes more than once",
        Crossing.SPECULATION_FASTER: f"speculate at {faster}: the baseline is not shown to be faster anywhere",
        Crossing.BASELINE_FASTER: f"do not speculate at {slower}: no candidate is shown to be faster anywhere",
        Crossing.NOT_SHOWN: "no difference is shown: use more rounds or longer answers",
    }[crossover.crossing]


def _open(results: Sequence[ConcurrencyResult]) -> str:
    unknown = _at([result for result in results if result.effects], Pace.OPEN)
    return f"at {_named(unknown)} neither is shown to be faster" if unknown else ""


def _numbers(results: Sequence[ConcurrencyResult]) -> str:
    return ", ".join(
        f"{result.concurrency}: {result.best} {shown(result.effects[result.best].mean)}"
        if result.best
        else f"{result.concurrency}: no candidate could be measured"
        for result in results
    )


def _named(concurrencies: Sequence[int]) -> str:
    return " and ".join(filter(None, (", ".join(map(str, concurrencies[:-1])), *map(str, concurrencies[-1:]))))
