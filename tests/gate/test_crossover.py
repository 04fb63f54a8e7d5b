"""From which concurrency on the baseline is faster: what a sweep may say, and no more."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.campaigns import BASELINE_1, BASELINE_32, NARROW_32, WIDE_1, WIDE_32, Truth, measure
from tests.support.messages import Says
from tests.support.published_loads import DSPARK

from paceline import core
from paceline.gate import Crossing, Crossover, LoadLevel, Pace, crossover, decide

SWEEP = core.Gate(decide_after_rounds=(5,))
STEADY = 0.005


def over(speed_ups: Mapping[int, float]) -> Truth:
    """One candidate, so much faster at each concurrency."""
    return {
        "baseline": {f"code@{c}": 100.0 * c for c in speed_ups},
        "tree": {f"code@{c}": 100.0 * c * x for c, x in speed_ups.items()},
    }


def loads(truth: Truth) -> Mapping[str, LoadLevel]:
    return {name: LoadLevel(concurrency=int(name.rpartition("@")[2])) for name in truth["baseline"]}


def swept(truth: Truth, *, cv: float = STEADY, rounds: int = 5, gate: core.Gate = SWEEP, seed: int = 1) -> Crossover:
    return crossover(gate, list(truth), loads(truth), measure(truth, cv=cv, seed=seed, rounds=rounds))


def of_dspark(*arms: str) -> Truth:
    return {arm: {f"code@{c}": speed for c, speed in DSPARK[arm].items()} for arm in ("baseline", *arms)}


@pytest.mark.parametrize("seed", range(5))
def test_seven_draft_tokens_are_faster_up_to_128_requests_and_at_most_seven_at_all(seed: int) -> None:
    """Held out: neither the gate nor an emulated engine was made with vllm#52362."""
    fixed, adaptive = (swept(of_dspark(arm), cv=0.01, seed=seed) for arm in ("fixed", "adaptive"))
    assert (fixed.crossing, fixed.between) == (Crossing.BASELINE_TAKES_OVER, (128, 256))
    assert adaptive.crossing is Crossing.SPECULATION_FASTER


@pytest.mark.parametrize("seed", range(5))
def test_of_both_the_fixed_number_is_best_up_to_32_requests(seed: int) -> None:
    both = swept(of_dspark("fixed", "adaptive"), cv=0.01, seed=seed)
    assert {one.concurrency: one.best for one in both.results} == {
        concurrency: "fixed" if concurrency <= 32 else "adaptive" for concurrency in DSPARK["fixed"]
    }


GB10 = {"baseline": {"code@1": 25.0, "code@8": 316.0}, "eagle3": {"code@1": 35.0, "code@8": 270.0}}
"""Reported in an article on Qwen3-Coder-30B with EAGLE3 on one GB10, output tokens per second."""


@pytest.mark.parametrize("seed", range(20))
def test_the_gb10_speculates_below_some_number_and_not_above(seed: int) -> None:
    found = swept(GB10, cv=0.01, seed=seed)
    assert (found.crossing, found.between) == (Crossing.BASELINE_TAKES_OVER, (1, 8))
    assert [spot.pace for spot in found.results] == [Pace.FASTER, Pace.SLOWER]
    for spot, reported in zip(found.results, (35 / 25, 270 / 316), strict=True):
        assert spot.effects["eagle3"].mean.ratio == pytest.approx(reported, rel=0.02)


@pytest.mark.parametrize(
    ("speed_ups", "crossing", "between"),
    [
        ({1: 1.4, 4: 1.2, 8: 0.9, 16: 0.8}, Crossing.BASELINE_TAKES_OVER, (4, 8)),
        ({1: 1.4, 4: 1.0, 8: 0.9}, Crossing.BASELINE_TAKES_OVER, (1, 8)),
        ({1: 0.9, 32: 1.2}, Crossing.SPECULATION_TAKES_OVER, (1, 32)),
        ({1: 1.4, 8: 0.9, 32: 1.2}, Crossing.CROSSES_TWICE, None),
        ({1: 1.4, 8: 1.2}, Crossing.SPECULATION_FASTER, None),
        ({1: 1.4, 8: 1.0}, Crossing.SPECULATION_FASTER, None),
        ({1: 0.9, 8: 0.8}, Crossing.BASELINE_FASTER, None),
        ({1: 1.0, 8: 1.0}, Crossing.NOT_SHOWN, None),
    ],
)
def test_what_is_said(
    speed_ups: Mapping[int, float], crossing: Crossing, between: tuple[int, int] | None, says: Says
) -> None:
    found = swept(over(speed_ups))
    assert (found.crossing, found.between) == (crossing, between)
    says(found.message)


def test_noise_leaves_the_crossover_open_rather_than_guessed() -> None:
    found = swept(over({1: 1.4, 4: 1.03, 8: 0.97, 16: 0.7}), cv=0.04)
    assert found.between == (1, 16)


def test_a_table_without_effect_seldom_claims_one() -> None:
    """`confidence` is of the table: of 400 with six concurrencies and two candidates that are the baseline, at most 5 %
    claim anything (28 are within the binomial error of 20)."""
    truth = over(dict.fromkeys((1, 2, 4, 8, 16, 32), 1.0))
    twins = {**truth, "twin": truth["baseline"]}
    claims = sum(swept(twins, cv=0.02, seed=seed).crossing is not Crossing.NOT_SHOWN for seed in range(400))
    assert claims <= 28


class TestTheBestArm:
    def test_another_one_wins_at_another_concurrency(self) -> None:
        truth = {**over({1: 1.4, 32: 1.1}), "narrow": {"code@1": 120.0, "code@32": 3200 * 1.2}}
        assert [spot.best for spot in swept(truth).results] == ["tree", "narrow"]

    def test_the_baseline_is_faster_only_if_it_beats_every_candidate(self) -> None:
        truth = {**over({1: 1.4, 32: 0.8}), "narrow": {"code@1": 120.0, "code@32": 3200.0}}
        assert [spot.pace for spot in swept(truth).results] == [Pace.FASTER, Pace.OPEN]

    def test_datasets_of_a_concurrency_count_by_their_weights(self) -> None:
        truth = {
            "baseline": {"code@1": 100.0, "chat@1": 100.0, "code@8": 100.0, "chat@8": 100.0},
            "tree": {"code@1": 130.0, "chat@1": 90.0, "code@8": 130.0, "chat@8": 90.0},
        }
        heavy = {
            name: LoadLevel(concurrency=int(name[-1]), weight=9.0 if name == "chat@8" else 1.0) for name in WEIGHED
        }
        found = crossover(SWEEP, list(truth), heavy, measure(truth, cv=STEADY, seed=1, rounds=5))
        assert found.between == (1, 8)


WEIGHED = ("code@1", "chat@1", "code@8", "chat@8")


class TestWhatWasNotMeasured:
    def test_an_arm_that_fails_under_load_is_known_below(self, says: Says) -> None:
        truth = over({1: 1.4, 8: 1.2, 64: 1.1})
        failing = [
            replace(m, valid=m.arm == "baseline" or m.workload != "code@64")
            for m in measure(truth, cv=STEADY, seed=1, rounds=5)
        ]
        found = crossover(SWEEP, list(truth), loads(truth), failing)
        assert [spot.pace for spot in found.results] == [Pace.FASTER, Pace.FASTER, Pace.OPEN]
        says(found.message)

    def test_one_round_shows_nothing(self) -> None:
        found = swept(GB10, rounds=1)
        assert [spot.best for spot in found.results] == [None, None]
        assert found.crossing is Crossing.NOT_SHOWN

    def test_a_run_that_ended_early_says_what_its_rounds_show(self) -> None:
        found = swept(GB10, rounds=3)
        assert {spot.effects["eagle3"].rounds for spot in found.results} == {3}
        assert found.between == (1, 8)


def test_a_gates_own_rounds_make_a_table_too_and_it_claims_no_more_than_the_gate() -> None:
    """Its looks share in the error, so an interval here holds the gate's of the same workload."""
    gate = core.Gate()
    measurements = measure(GB10, cv=0.01, seed=3, rounds=4)
    found = crossover(gate, list(GB10), loads(GB10), measurements)
    (judged,) = decide(gate, list(GB10), dict.fromkeys(GB10["baseline"], 1.0), measurements).arms.values()
    for spot in found.results:
        mine, theirs = spot.effects["eagle3"].mean, judged.workloads[f"code@{spot.concurrency}"]
        assert mine.ratio == pytest.approx(theirs.ratio)
        assert mine.lower <= theirs.lower <= theirs.upper <= mine.upper


def test_published_wide_and_narrow_trees() -> None:
    """Four H200, as published for Qwen3-Coder-Next: wide alone, narrow and baseline at 32 (1.03x)."""
    truth = {
        arm: {f"{w}@1": alone[w] for w in alone} | {f"{w}@32": many[w] for w in many}
        for arm, alone, many in (("baseline", BASELINE_1, BASELINE_32), ("wide", WIDE_1, WIDE_32))
    }
    truth["narrow"] = {f"{w}@1": 0.95 * x for w, x in WIDE_1.items()} | {f"{w}@32": x for w, x in NARROW_32.items()}
    found = swept(truth)
    assert [spot.best for spot in found.results] == ["wide", "wide"]
    assert found.crossing is Crossing.SPECULATION_FASTER
