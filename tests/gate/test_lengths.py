"""How long the answers are: over the run, against what rounds differ by anyway."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.support.campaigns import LATENCY, WORKLOADS, measure
from tests.support.messages import Says

from paceline import core, gate
from paceline.core import Outcome

EVEN = dict.fromkeys(WORKLOADS, 1.0)
BASELINE = 26_000
"""Tokens that 64 answers of about 400 have."""


def decided(tokens: Callable[[int, str], float | None], rounds: int = 9) -> core.Verdict:
    """`tokens` of the candidate, by round and workload."""
    measurements = [
        replace(m, metrics={} if (n := written(m, tokens)) is None else {"outputTokens": n})
        for m in measure(LATENCY, cv=0.003, seed=1, rounds=rounds)
    ]
    return gate.decide(core.Gate(), list(LATENCY), EVEN, measurements)


def written(m: core.Measurement, tokens: Callable[[int, str], float | None]) -> float | None:
    """Other prompts each round, the same on both arms: what the baseline writes varies by a fifth between rounds."""
    base = BASELINE * random.Random(f"{m.round} {m.workload}").uniform(0.9, 1.1)
    factor = 1.0 if m.arm == "baseline" else tokens(m.round, m.workload)
    return None if factor is None else base * factor


def test_prompts_that_differ_between_rounds_cancel() -> None:
    verdict = decided(lambda n, w: 1.0)
    assert verdict.outcome is Outcome.PROMOTE
    assert verdict.arms["wide"].lengths["chat"].ratio == pytest.approx(1.0)


def test_answers_that_part_by_rounding_are_as_often_longer_as_shorter() -> None:
    """3.4 %: the deviation of 64 answers of which 70 % part. A third of such rounds are beyond 5 % somewhere."""
    verdict = decided(lambda n, w: random.Random(f"wide {n} {w}").gauss(1, 0.034))
    assert (verdict.outcome, verdict.rounds) == (Outcome.PROMOTE, 4)
    found = verdict.arms["wide"].lengths["code"]
    assert found.lower < 1 < found.upper


@pytest.mark.parametrize("factor", [0.88, 1.11])
def test_one_that_writes_otherwise_on_one_workload_is_rejected_however_fast_it_is(factor: float, says: Says) -> None:
    verdict = decided(lambda n, w: factor * random.Random(f"{n}").gauss(1, 0.01) if w == "chat" else 1.0)
    wide = verdict.arms["wide"]
    assert (verdict.outcome, wide.reason) == (Outcome.REJECT, "LengthsDiffer")
    says(wide.message)


@pytest.mark.parametrize("factor", [0.96, 1.04])
def test_a_drift_within_the_bound_is_shown_and_promotes_all_the_same(factor: float) -> None:
    verdict = decided(lambda n, w: factor)
    assert verdict.outcome is Outcome.PROMOTE
    assert verdict.arms["wide"].lengths["code"].ratio == pytest.approx(factor)


def test_one_wild_round_shows_nothing() -> None:
    verdict = decided(lambda n, w: 1.2 if n == 2 else 1.0)
    assert verdict.outcome is Outcome.PROMOTE


def test_where_a_round_does_not_know_them_nothing_is_said() -> None:
    verdict = decided(lambda n, w: None if (n, w) == (1, "chat") else 1.2)
    assert "chat" not in verdict.arms["wide"].lengths
    assert verdict.arms["wide"].reason == "LengthsDiffer"
