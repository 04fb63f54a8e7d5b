"""A rule that is chosen after the rounds were seen: what still holds, and what does not (docs/gate.md)."""

import dataclasses
import math

from tests.support.campaigns import against, measure

from paceline.core import Gate, Measurement, Outcome, Verdict
from paceline.gate import decide
from paceline.gate.interval import interval
from paceline.gate.rounds import rounds_table, weighted_means

CAMPAIGNS = 1000
GATE = Gate(max_regression=0.5)
"""Its bar on single workloads is out of the way: here it is about the mean."""
WEIGHTS = {"code": 1.0, "chat": 1.0}
TRUTH = against(dict.fromkeys(WEIGHTS, 1.05))


def judged(gate: Gate, measured: list[Measurement]) -> Verdict:
    return decide(gate, list(TRUTH), WEIGHTS, measured)


def test_rounds_beyond_the_look_that_decides_change_nothing() -> None:
    """So a gate that is asked late says what it would have said, had it been asked from the first look on."""
    clear = against(dict.fromkeys(WEIGHTS, 1.5))
    for seed in range(50):
        measured = measure(clear, cv=0.02, seed=seed, rounds=9)
        early = [one for one in measured if one.round < 4]
        assert judged(GATE, measured) == judged(GATE, early)


def lower(measured: list[Measurement], look: int) -> float:
    """The bound at one look: the error is shared out to all of them."""
    rounds = rounds_table("baseline", WEIGHTS, measured)
    logs = {name: rounds.speed_ups("candidate", range(look), name) for name in WEIGHTS}
    error = (1 - GATE.confidence) / len(GATE.decide_after_rounds)
    return math.exp(interval(weighted_means(WEIGHTS, logs), error=error, floor=GATE.variance_floor).lower)


def test_whatever_minimum_is_chosen_afterwards_the_bounds_hold_at_all_looks_at_once() -> None:
    """The highest minimum with which it passes at some look is the highest lower bound: that is above the truth as
    seldom as the gate promises."""
    wrong = 0
    for seed in range(CAMPAIGNS):
        measured = measure(TRUTH, cv=0.02, seed=seed, rounds=GATE.decide_after_rounds[-1])
        wrong += max(lower(measured, look) for look in GATE.decide_after_rounds) > 1.05
    assert 0 < wrong / CAMPAIGNS <= 1 - GATE.confidence


def test_a_confidence_that_is_chosen_afterwards_promises_nothing() -> None:
    """Whoever lowers it until the candidate passes errs as often as the lowest one allows, and not one time in
    twenty."""
    passes = 0
    for seed in range(CAMPAIGNS // 5):
        measured = measure(TRUTH, cv=0.02, seed=seed, rounds=8)
        tried = (0.95, 0.9, 0.8, 0.6, 0.5)
        passes += any(
            judged(dataclasses.replace(GATE, confidence=confidence), measured).outcome is Outcome.PROMOTE
            for confidence in tried
        )
    assert passes / (CAMPAIGNS // 5) > 0.1
