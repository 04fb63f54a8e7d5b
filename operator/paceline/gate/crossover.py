"""From rounds at several concurrencies to the table of a sweep: at each, the best candidate against the baseline, and
where the baseline takes over. What was not measured is not claimed: a crossover lies somewhere between two that were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds, Gate, Measurement
from paceline.gate.findings import shown
from paceline.gate.interval import Interval, interval
from paceline.gate.rounds import Rounds, table, weighted_means


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Of a workload."""

    concurrency: int
    weight: float = 1.0


class Pace(StrEnum):
    """What is shown at one concurrency."""

    FASTER = "Faster"
    """A candidate is."""
    SLOWER = "Slower"
    """Every candidate is."""
    OPEN = "Open"
    """Neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One candidate at one concurrency; `mean` is over the workloads there, by weight."""

    mean: Bounds
    workloads: Mapping[str, Bounds]
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One concurrency. `best` is the candidate with the highest lower bound, the first of equal ones, None if none
    could be measured; `effects` lacks a candidate that was not valid, with the baseline, in two rounds."""

    concurrency: int
    pace: Pace
    best: str | None
    effects: Mapping[str, Effect]


class Crossing(StrEnum):
    """How the paces follow one another, rising in concurrency."""

    BASELINE_TAKES_OVER = "BaselineTakesOver"
    SPECULATION_TAKES_OVER = "SpeculationTakesOver"
    CROSSES_TWICE = "CrossesTwice"
    """Or more often."""
    SPECULATION_FASTER = "SpeculationFaster"
    """Where anything is shown."""
    BASELINE_FASTER = "BaselineFaster"
    NOT_SHOWN = "NotShown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """`spots` rise in concurrency. `between` are the two measured concurrencies that the one crossover lies between."""

    spots: tuple[Spot, ...]
    crossing: Crossing
    between: tuple[int, int] | None

    @property
    def sentence(self) -> str:
        """Where to speculate and where not."""
        return _sentence(self)

    @property
    def message(self) -> str:
        """The same with what is open and with the numbers."""
        return "; ".join(filter(None, (self.sentence, _open(self.spots), _numbers(self.spots))))


def crossover(
    gate: Gate, arms: Sequence[str], loads: Mapping[str, Load], measurements: Sequence[Measurement]
) -> Crossover:
    """`arms` has the baseline first; `loads` has every workload by name.

    A round counts at a concurrency if it is valid on all workloads there: an arm that fails under the highest load is
    known at the others. Bounds are the gate's, and `confidence` is of the table as a whole: each line of it is a claim
    of its own, so the chance of a wrong one is shared out to candidates, looks, concurrencies and both directions.
    """
    baseline, *candidates = arms
    concurrencies = sorted({load.concurrency for load in loads.values()})
    claims = 2 * len(candidates) * len(concurrencies) * len(gate.decide_after_rounds)
    error = (1 - gate.confidence) / claims
    spots = []
    for concurrency in concurrencies:
        here = {name: load.weight for name, load in loads.items() if load.concurrency == concurrency}
        rounds = table(baseline, here, [m for m in measurements if m.workload in here])
        found = ((arm, _effect(rounds, gate, arm, error)) for arm in candidates)
        spots.append(_spot(concurrency, candidates, {arm: effect for arm, effect in found if effect}))
    crossing, between = _crossing(spots)
    return Crossover(spots=tuple(spots), crossing=crossing, between=between)


def _effect(rounds: Rounds, gate: Gate, arm: str, error: float) -> Effect | None:
    complete = rounds.complete(arm)
    # As many as at a look: what a look has seen decided whether more were measured. All, where no look was possible.
    used = max((n for n in gate.decide_after_rounds if n <= len(complete)), default=len(complete))
    if used < 2:
        return None
    logs = {w: rounds.speed_ups(arm, complete[:used], w) for w in rounds.workloads}

    def bounds(values: Sequence[float]) -> Bounds:
        found: Interval = interval(values, error=error, floor=gate.variance_floor)
        return found.bounds

    return Effect(
        mean=bounds(weighted_means(rounds.workloads, logs)),
        workloads={w: bounds(found) for w, found in logs.items()},
        rounds=used,
    )


def _spot(concurrency: int, candidates: Sequence[str], effects: Mapping[str, Effect]) -> Spot:
    if any(effect.mean.lower > 1 for effect in effects.values()):
        pace = Pace.FASTER
    elif len(effects) == len(candidates) and all(effect.mean.upper < 1 for effect in effects.values()):
        pace = Pace.SLOWER
    else:
        pace = Pace.OPEN
    best = max(effects, key=lambda arm: effects[arm].mean.lower, default=None)
    return Spot(concurrency=concurrency, pace=pace, best=best, effects=effects)


def _crossing(spots: Sequence[Spot]) -> tuple[Crossing, tuple[int, int] | None]:
    faster, slower = _at(spots, Pace.FASTER), _at(spots, Pace.SLOWER)
    if not faster or not slower:
        alone = {(True, False): Crossing.SPECULATION_FASTER, (False, True): Crossing.BASELINE_FASTER}
        return alone.get((bool(faster), bool(slower)), Crossing.NOT_SHOWN), None
    if max(faster) < min(slower):
        return Crossing.BASELINE_TAKES_OVER, (max(faster), min(slower))
    if max(slower) < min(faster):
        return Crossing.SPECULATION_TAKES_OVER, (max(slower), min(faster))
    return Crossing.CROSSES_TWICE, None


def _at(spots: Sequence[Spot], pace: Pace) -> list[int]:
    return [spot.concurrency for spot in spots if spot.pace is pace]


# What is said of it.


def _sentence(found: Crossover) -> str:
    faster, slower = (_named(_at(found.spots, pace)) for pace in (Pace.FASTER, Pace.SLOWER))
    low, high = found.between or (0, 0)
    between = f"somewhere between {low} and {high} requests at a time"
    return {
        Crossing.BASELINE_TAKES_OVER: f"speculate up to {low}, not at {slower}: the baseline takes over {between}",
        Crossing.SPECULATION_TAKES_OVER: f"speculate at {faster}, not up to {low}: speculation takes over {between}",
        Crossing.CROSSES_TWICE: f"speculate at {faster}, not at {slower}: it crosses more than once",
        Crossing.SPECULATION_FASTER: f"speculate at {faster}: the baseline is shown to be faster nowhere",
        Crossing.BASELINE_FASTER: f"do not speculate at {slower}: a candidate is shown to be faster nowhere",
        Crossing.NOT_SHOWN: "nothing is shown: more rounds or longer answers tell more",
    }[found.crossing]


def _open(spots: Sequence[Spot]) -> str:
    unknown = _at(spots, Pace.OPEN)
    return f"at {_named(unknown)} neither is shown to be faster" if unknown else ""


def _numbers(spots: Sequence[Spot]) -> str:
    return ", ".join(
        f"{spot.concurrency}: {spot.best} {shown(spot.effects[spot.best].mean)}"
        if spot.best
        else f"{spot.concurrency}: no candidate could be measured"
        for spot in spots
    )


def _named(concurrencies: Sequence[int]) -> str:
    return " and ".join(filter(None, (", ".join(map(str, concurrencies[:-1])), *map(str, concurrencies[-1:]))))
