"""What a plan says that its rounds can show, against the gate itself."""

import math

import pytest
from tests.support.campaigns import WORKLOADS, against, measure

from paceline import core, gate
from paceline.gate import Noise

ONLY_THE_MEAN = core.Gate(min_improvement=0.0, max_regression=0.5, decide_after_rounds=(3, 5, 8))


def test_the_smallest_difference_worked_out_by_hand() -> None:
    """docs/gate.md: one candidate and three looks leave 0.05 / 3, whose quantile at two degrees of freedom is 5.339."""
    shown = gate.smallest_shown(ONLY_THE_MEAN, 1, 3, Noise(mean=0.0076, workload=0.0))
    assert shown == pytest.approx(math.expm1(5.339 * 0.0076 / math.sqrt(3)), abs=1e-5)


def test_the_minimum_comes_on_top_and_more_candidates_and_fewer_rounds_show_less() -> None:
    noise, rule = Noise(mean=0.015, workload=0.02), core.Gate()
    assert gate.smallest_shown(rule, 1, 8, noise) > rule.min_improvement
    assert gate.smallest_shown(rule, 1, 4, noise) > gate.smallest_shown(rule, 1, 8, noise)
    assert gate.smallest_shown(rule, 3, 4, noise) > gate.smallest_shown(rule, 1, 4, noise)


def test_a_workload_that_varies_more_than_the_mean_may_be_what_decides() -> None:
    mean, each = Noise(mean=0.01, workload=0.01), Noise(mean=0.01, workload=0.10)
    assert gate.smallest_shown(core.Gate(), 1, 4, each) > gate.smallest_shown(core.Gate(), 1, 4, mean) + 0.05


def test_rounds_cannot_agree_better_than_the_floor() -> None:
    silent, floor = Noise(mean=0.0, workload=0.0), Noise(mean=0.002, workload=0.002)
    assert gate.smallest_shown(core.Gate(), 1, 4, silent) == gate.smallest_shown(core.Gate(), 1, 4, floor)


@pytest.mark.parametrize("look", [4, 8])
def test_a_candidate_with_that_advantage_is_promoted_every_second_time(look: int) -> None:
    """Of 400 seeded campaigns with one look, at a point's noise of 0.5 % and a start's of 1 %."""
    rule = core.Gate(decide_after_rounds=(look,))
    noise = Noise(mean=math.sqrt(2 * 0.01**2 + 2 * 0.005**2 / 4), workload=math.sqrt(2 * 0.01**2 + 2 * 0.005**2))
    truth = against(dict.fromkeys(WORKLOADS, 1 + gate.smallest_shown(rule, 1, look, noise)))
    weights = dict.fromkeys(WORKLOADS, 1.0)
    campaigns = (measure(truth, cv=0.005, start=0.01, seed=seed, rounds=look) for seed in range(400))
    outcomes = [gate.decide(rule, list(truth), weights, campaign).outcome for campaign in campaigns]
    assert 0.40 < outcomes.count(core.Outcome.PROMOTE) / 400 < 0.60


def test_noise_of_earlier_rounds_is_that_which_made_them() -> None:
    """Of a hundred runs of eight rounds, and of the workload that varies most."""
    truth = against(dict.fromkeys(WORKLOADS, 1.3))
    runs = [
        gate.rounds_table(
            "baseline", dict.fromkeys(WORKLOADS, 1.0), measure(truth, cv=0.02, start=0.01, seed=seed, rounds=8)
        )
        for seed in range(100)
    ]
    found = gate.observed_noise(runs)
    assert found is not None
    noise, rounds = found
    assert rounds == 800
    assert noise.mean == pytest.approx(math.sqrt(2 * 0.01**2 + 2 * 0.02**2 / 4), rel=0.1)
    assert noise.workload == pytest.approx(math.sqrt(2 * 0.01**2 + 2 * 0.02**2), rel=0.1)


def test_of_one_round_no_noise_is_known() -> None:
    once = measure(against({"code": 1.2}), cv=0.01, seed=1, rounds=1)
    assert gate.observed_noise([gate.rounds_table("baseline", {"code": 1.0}, once)]) is None
    assert gate.observed_noise([]) is None


def test_assumed_noise_is_less_with_more_requests_and_with_more_workloads() -> None:
    few, many = (gate.assumed_noise({"code": sent}, {"code": 1.0}) for sent in (16, 64))
    four = gate.assumed_noise(dict.fromkeys(WORKLOADS, 16), dict.fromkeys(WORKLOADS, 1.0))
    assert few.mean == few.workload > many.mean
    assert four.workload == few.workload
    assert four.mean == pytest.approx(math.sqrt(2 * 0.01**2 + (2 * 0.005**2 + 0.15**2 / 16) / 4))
