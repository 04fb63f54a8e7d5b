"""The gate against statistics that it does not share a line with: textbook formulas and scipy.stats."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tests.support.campaigns import WORKLOADS, Truth, measure

from paceline import core, gate
from paceline.gate.interval import interval, student_quantile

# Student's t has closed forms for these degrees of freedom.


@pytest.mark.parametrize("error", [0.05, 0.05 / 3, 0.05 / 6, 0.05 / 9, 0.001, 0.2])
def test_the_quantiles_are_the_exact_ones(error: float) -> None:
    p = 1 - error
    side = 4 * error * p
    assert student_quantile(error, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9)
    assert student_quantile(error, 2) == pytest.approx((2 * p - 1) / math.sqrt(2 * error * p), rel=1e-9)
    assert student_quantile(error, 4) == pytest.approx(
        2 * math.sqrt(math.cos(math.acos(math.sqrt(side)) / 3) / math.sqrt(side) - 1), rel=1e-9
    )


@pytest.mark.parametrize("degrees", [*range(1, 33), 63, 127, 255, 719])
def test_the_quantiles_are_scipys(degrees: int) -> None:
    assert student_quantile(0.5, degrees) == 0.0
    for error in (0.9, 0.6, 0.4, 0.2, 0.1, 0.05, 0.025, 0.01, 1e-3, 1e-4, 1e-6, 1e-9):
        assert student_quantile(error, degrees) == pytest.approx(-stats.t.ppf(error, degrees), rel=1e-12)


def test_an_interval_worked_out_by_hand() -> None:
    """Three rounds of 1.30x, 1.32x and 1.31x; one candidate and three looks."""
    logs = [math.log(x) for x in (1.30, 1.32, 1.31)]
    # Mean 0.27000, sd 0.00763; t = 5.3393 at 0.05 / 3 and two degrees of freedom; 5.3393 x 0.00763 / √3 = 0.02353.
    found = interval(logs, error=0.05 / 3, floor=0.002).bounds
    assert (found.ratio, found.lower, found.upper) == pytest.approx((1.30997, 1.27951, 1.34117), abs=2e-5)


def test_verdicts_are_those_of_t_tests_by_scipy() -> None:
    """Forty kinds of campaign, ten of each: candidates, effects, noises, weights and thresholds drawn at random."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        dice = random.Random(seed)
        names, truth, weights, rule = question(dice)
        for campaign in range(10):
            found = measure(truth, cv=dice.choice([0.002, 0.01, 0.03]), seed=1000 * seed + campaign)
            holes = [replace(m, valid=dice.random() > 0.01) for m in found]
            verdict = gate.decide(rule, names, weights, holes)
            assert said(verdict) == by_tests(rule, names, weights, holes)
            seen[verdict.outcome] += 1
    assert min(seen[outcome] for outcome in ("Promote", "Reject", "Inconclusive")) > 50, "or it tried only one kind"


def question(dice: random.Random) -> tuple[list[str], Truth, dict[str, float], core.Gate]:
    names = ["baseline", "a", "b", "c"][: dice.choice([2, 2, 3, 4])]
    truth: Truth = {name: {w: 100 * dice.uniform(0.94, 1.2) for w in WORKLOADS} for name in names}
    kind = dice.random()
    if kind < 0.4:  # Around the thresholds, where verdicts are hard.
        truth = {"baseline": dict.fromkeys(WORKLOADS, 100.0)} | {
            name: dict.fromkeys(WORKLOADS, 100 * dice.choice([0.97, 1.05, 1.06])) for name in names[1:]
        }
    elif kind < 0.7:  # All better, and close to one another.
        truth = {name: dict.fromkeys(WORKLOADS, 100 + 15 * (k > 0) + k) for k, name in enumerate(names)}
    weights = {w: dice.choice([0.0, 1.0, 1.0, 3.0]) for w in WORKLOADS} | {"code": 1.0}
    rule = core.Gate(
        min_improvement=dice.choice([0.0, 0.02, 0.05]),
        max_regression=dice.choice([0.01, 0.03, 0.1]),
        confidence=dice.choice([0.9, 0.95, 0.99]),
        variance_floor=dice.choice([0.0, 0.002, 0.01]),
        decide_after_rounds=dice.choice([(3, 5, 8), (2,), (4, 6)]),
    )
    return names, truth, weights, rule


Said = tuple[str, str | None, int, dict[str, str]]


def said(verdict: core.Verdict) -> Said:
    arms = {name: arm.outcome.value for name, arm in verdict.arms.items()}
    return verdict.outcome.value, verdict.winner, verdict.rounds, arms


def by_tests(
    rule: core.Gate, names: Sequence[str], weights: Mapping[str, float], measurements: Sequence[core.Measurement]
) -> Said:
    """The rule (docs/gate.md#the-rule) in p-values: one-sided t-tests of the mean log ratio against each threshold,
    at 1/(K·L) of what may go wrong. Where an interval is compared with another candidate's, the interval is scipy's."""
    candidates = names[1:]
    table = np.full((len(names), len(WORKLOADS), 1 + max(m.round for m in measurements)), np.nan)
    for m in measurements:
        if m.valid:
            table[names.index(m.arm), WORKLOADS.index(m.workload), m.round] = m.output_throughput
    error = (1 - rule.confidence) / (len(candidates) * len(rule.decide_after_rounds))
    minimum, tolerated = math.log(1 + rule.min_improvement), math.log(1 - rule.max_regression)
    logs = {}
    for k, name in enumerate(candidates, start=1):
        series = np.log(table[k] / table[0])
        series = series[:, ~np.isnan(series).any(axis=0)]
        heavy = [weights[w] for w in WORKLOADS]
        logs[name] = np.vstack([np.average(series, axis=0, weights=heavy), series])
    thresholds = np.array([minimum, *[tolerated] * len(WORKLOADS)])

    states = dict.fromkeys(candidates, "error")
    bounds: dict[str, tuple[float, float]] = {}
    rounds = 0
    for n in rule.decide_after_rounds:
        if settled(states, bounds):
            break
        for name in candidates:
            x = logs[name][:, :n]
            if states[name] not in ("error", "undecided") or x.shape[1] < n:
                continue
            rounds = n
            scale = np.maximum(x.std(axis=1, ddof=1), rule.variance_floor) / math.sqrt(n)
            t = (x.mean(axis=1) - thresholds) / scale
            shown_above, shown_below = stats.t.sf(t, n - 1) < error, stats.t.cdf(t, n - 1) < error
            states[name] = "rejected" if shown_below.any() else "promotable" if shown_above.all() else "undecided"
            low, high = stats.t.interval(1 - 2 * error, n - 1, loc=x[0].mean(), scale=scale[0])
            bounds[name] = (float(low), float(high))
    good = [name for name in candidates if states[name] == "promotable"]
    if good:
        best = max(bounds[name][0] for name in good)
        return "Promote", next(n for n in good if bounds[n][0] >= best - rule.variance_floor), rounds, states
    kinds = set(states.values())
    outcome = "Error" if kinds == {"error"} else "Reject" if kinds == {"rejected"} else "Inconclusive"
    return outcome, None, rounds, states


def settled(states: Mapping[str, str], bounds: Mapping[str, tuple[float, float]]) -> bool:
    best = max((bounds[name][0] for name, state in states.items() if state == "promotable"), default=-math.inf)
    waiting = [name for name, state in states.items() if state in ("error", "undecided")]
    return all(name in bounds and bounds[name][1] <= best for name in waiting)
