"""Whether a speed-up changed between two runs: what may be said, how often that is wrong, and what is not asked."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from scipy import stats
from tests.gate.across import GATE, ROWS, WORKLOADS, Row, counted
from tests.gate.rates import DOCUMENT
from tests.support.campaigns import LATENCY, THROUGHPUT, Truth, against, measure

from paceline import core, gate
from paceline.gate.across import welch

WEIGHTS = dict.fromkeys(WORKLOADS, 1.0)
FEW = 250


def steady(speed_up: float, seed: int, rounds: int = 4) -> Sequence[core.Measurement]:
    return measure(against(dict.fromkeys(WORKLOADS, speed_up)), cv=0.004, seed=seed, rounds=rounds)


def of(
    first: Sequence[core.Measurement], second: Sequence[core.Measurement], truth: Truth | None = None
) -> gate.ArmChanges:
    arms = list(truth or against({}))
    return gate.across(GATE, arms, WEIGHTS, first, second)[arms[-1]]


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_are_those_of_welchs_t_test(seed: int) -> None:
    dice = random.Random(seed)
    first = [dice.gauss(0.30, 0.01) for _ in range(4)]
    second = [dice.gauss(0.25, 0.03) for _ in range(6)]
    found = welch(first, second, error=0.01, floor=0.0)
    theirs = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.98)
    assert (found.lower, found.upper) == pytest.approx((theirs.low, theirs.high))


def test_rounds_that_agree_by_luck_are_held_to_vary_by_the_floor() -> None:
    found = welch([0.3, 0.3, 0.3], [0.3, 0.3, 0.3], error=0.01, floor=0.002)
    assert found.reach == pytest.approx(stats.t.isf(0.01, 4) * 0.002 * math.sqrt(2 / 3))


@pytest.mark.parametrize("truth", [LATENCY, THROUGHPUT], ids=["latency", "throughput"])
def test_each_run_by_itself_has_the_bounds_of_its_gate(truth: Truth) -> None:
    first, second = (measure(truth, cv=0.004, seed=seed) for seed in (1, 2))
    verdicts = gate.decide(GATE, list(truth), WEIGHTS, first).arms
    for arm, changes in gate.across(GATE, list(truth), WEIGHTS, first, second).items():
        if verdicts[arm].last:
            assert {name: one.first for name, one in changes.speed_ups.items()} == {
                "mean": verdicts[arm].mean,
                **verdicts[arm].workloads,
            }


def test_the_other_way_round_it_is_the_inverse() -> None:
    one, other = steady(1.4, 1), steady(1.2, 2, rounds=6)
    there, back = of(one, other).speed_ups["mean"].change, of(other, one).speed_ups["mean"].change
    assert there
    assert back
    assert (back.lower, back.ratio, back.upper) == pytest.approx((1 / there.upper, 1 / there.ratio, 1 / there.lower))


def test_a_node_that_is_twice_as_fast_changes_no_speed_up() -> None:
    """Nothing absolute is compared."""
    first, second = steady(1.4, 1), steady(1.4, 2)
    faster = [replace(one, output_throughput=2 * (one.output_throughput or 0)) for one in second]
    here, there = of(first, second), of(first, faster)
    assert here.speed_ups["mean"].change
    for name, one in here.speed_ups.items():
        assert one.change
        moved = there.speed_ups[name].change
        assert moved
        assert (moved.lower, moved.upper) == pytest.approx((one.change.lower, one.change.upper))


def test_one_complete_round_shows_nothing() -> None:
    found = of(steady(1.4, 1), steady(1.2, 2, rounds=1)).speed_ups["mean"]
    assert (found.second, found.change, found.rounds) == (None, None, (4, 1))


def test_a_round_without_a_valid_baseline_is_no_round() -> None:
    second = [replace(one, valid=one.round != 3 or one.arm != "baseline") for one in steady(1.2, 2)]
    assert of(steady(1.4, 1), second).speed_ups["mean"].rounds == (4, 3)


def test_acceptance_is_compared_only_where_both_runs_tell_it_in_every_round() -> None:
    """Lengths that fall from 2.8 to 2.3 tokens."""

    def told(run: Sequence[core.Measurement], length: float, *, but: str) -> list[core.Measurement]:
        candidate = [one for one in run if one.arm == "candidate" and (one.workload, one.round) != (but, 1)]
        metrics = {"acceptLength": length}
        return [replace(one, metrics=metrics) if one in candidate else one for one in run]

    found = of(told(steady(1.4, 1), 2.8, but="chat"), told(steady(1.2, 2), 2.3, but="")).acceptance
    assert list(found) == ["code", "swe", "terminal"]
    change = found["code"].change
    assert change
    assert change.upper < 1
    assert change.ratio == pytest.approx(2.3 / 2.8)


def test_what_the_baseline_could_not_keep_is_in_no_mean() -> None:
    rated = {"code": 1.0, "chat": 1.0}
    runs = [
        [replace(one, saturated=one.workload == "chat") for one in steady(1.4, seed) if one.workload in rated]
        for seed in (1, 2)
    ]
    found = gate.across(GATE, ("baseline", "candidate"), rated, *runs, rated=tuple(rated))["candidate"].speed_ups
    assert found["mean"].change == found["code"].change
    assert list(found) == ["mean", "code", "chat"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}, {row.noise}")
def test_it_is_wrong_no_more_often_than_it_says(row: Row) -> None:
    """On few campaigns; docs/gate.md has them on 4,000."""
    found = counted(row, FEW)
    assert found.wrong <= 1 - GATE.confidence
    (line,) = (one for one in DOCUMENT.read_text().splitlines() if one.startswith(f"| {row.name} | {row.noise} | "))
    wrong, shown = line.strip("| ").split(" | ")[2:] if row.falls else (*line.strip("| ").split(" | ")[2:], "")
    assert float(wrong) <= 1 - GATE.confidence
    if row.falls:
        assert found.shown == pytest.approx(float(shown), abs=0.08)
