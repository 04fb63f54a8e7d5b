"""What the gate says in the situations it was made for, told with published numbers (Qwen3-Coder-Next with EAGLE3)."""

import math
from dataclasses import replace

import pytest
from tests.support.campaigns import LATENCY, THROUGHPUT, THROUGHPUT_GATE, WORKLOADS, Truth, against, measure

from paceline import core, gate
from paceline.core import ArmOutcome, Outcome

EVEN = dict.fromkeys(WORKLOADS, 1.0)
STEADY = 0.003
"""The coefficient of variation of a point that has to be reached: 0.3 to 0.7 %."""


def decided(
    truth: Truth, measurements: list[core.Measurement], rule: core.Gate | None = None, **weights: float
) -> core.Verdict:
    return gate.decide(rule or core.Gate(), list(truth), weights or EVEN, measurements)


@pytest.mark.parametrize("cv", [0.003, 0.005, 0.007])
def test_latency_promotes_the_wide_tree_after_four_rounds(cv: float) -> None:
    verdict = decided(LATENCY, measure(LATENCY, cv=cv, seed=1))

    wide = verdict.arms["wide"]
    assert (verdict.outcome, verdict.winner, verdict.rounds, verdict.final) == (Outcome.PROMOTE, "wide", 4, True)
    assert (wide.outcome, wide.reason) == (ArmOutcome.PROMOTABLE, "FasterThanMinimum")
    assert wide.mean is not None
    assert wide.mean.ratio == pytest.approx(1.364, abs=0.01)
    assert {w: round(found.ratio, 1) for w, found in wide.workloads.items()} == {
        "code": 1.4,
        "swe": 1.5,
        "terminal": 1.4,
        "chat": 1.2,
    }


@pytest.mark.parametrize("cv", [0.003, 0.005, 0.007])
def test_throughput_rejects_the_wide_tree_for_one_workload_and_promotes_the_narrow_one(cv: float) -> None:
    verdict = decided(THROUGHPUT, measure(THROUGHPUT, cv=cv, seed=2), THROUGHPUT_GATE)

    wide, narrow = verdict.arms["wide"], verdict.arms["narrow"]
    assert (verdict.outcome, verdict.winner) == (Outcome.PROMOTE, "narrow")
    assert (wide.outcome, wide.reason) == (ArmOutcome.REJECTED, "WorkloadRegressed")
    assert wide.mean is not None
    assert narrow.mean is not None
    assert wide.mean.ratio > 1.06 > narrow.mean.ratio, "the mean alone would have chosen the wrong one"
    assert wide.workloads["terminal"].ratio == pytest.approx(0.890, abs=0.01)
    assert gate.explain(wide).startswith("WorkloadRegressed: terminal 0.8")
    assert "0.970x" in gate.explain(wide)


def test_a_tree_that_reaches_less_than_the_minimum_is_rejected_though_it_is_faster() -> None:
    truth = {arm: THROUGHPUT[arm] for arm in ("baseline", "narrow")}
    verdict = decided(truth, measure(truth, cv=STEADY, seed=3), core.Gate(min_improvement=0.05))

    assert (verdict.outcome, verdict.winner) == (Outcome.REJECT, None)
    assert verdict.arms["narrow"].reason == "BelowMinimumImprovement"


def test_a_tree_that_is_slower_everywhere_is_rejected_as_slower() -> None:
    truth = against(dict.fromkeys(WORKLOADS, 0.93))
    verdict = decided(truth, measure(truth, cv=STEADY, seed=4))

    assert (verdict.outcome, verdict.rounds, verdict.final) == (Outcome.REJECT, 4, True)
    assert verdict.arms["candidate"].reason == "SlowerThanBaseline"


def test_noise_that_hides_the_effect_ends_inconclusive_and_says_what_was_not_shown() -> None:
    truth = against(dict.fromkeys(WORKLOADS, 1.07))
    verdict = decided(truth, measure(truth, cv=0.1, seed=5))

    candidate = verdict.arms["candidate"]
    assert (verdict.outcome, verdict.rounds, verdict.final) == (Outcome.INCONCLUSIVE, 8, True)
    assert candidate.outcome is ArmOutcome.UNDECIDED
    assert "1.050x" in gate.explain(candidate)


class TestTheMargin:
    """The margin: the mean that these rounds, at their own noise, could just not have told from 1x."""

    def test_it_is_what_the_interval_reaches_to_either_side(self) -> None:
        wide = decided(LATENCY, measure(LATENCY, cv=STEADY, seed=1)).arms["wide"]
        assert wide.margin is not None
        assert wide.mean is not None
        assert wide.mean.ratio / wide.mean.lower == pytest.approx(1 + wide.margin)
        assert wide.mean.upper / wide.mean.ratio == pytest.approx(1 + wide.margin)

    def test_a_difference_is_told_from_none_above_it_and_not_below(self) -> None:
        """The same noise over a candidate that is just slower: its interval holds 1x until the margin is passed."""
        equal = against(dict.fromkeys(WORKLOADS, 1.0))
        rule = core.Gate(min_improvement=0.0, decide_after_rounds=(3,))
        noise = decided(equal, measure(equal, cv=STEADY, seed=2, rounds=3), rule).arms["candidate"]
        assert noise.margin is not None
        assert noise.mean is not None
        for part, told in ((0.98, False), (1.02, True)):
            slower = 1 / (1 + noise.margin) ** part / noise.mean.ratio
            truth = against(dict.fromkeys(WORKLOADS, slower))
            verdict = decided(truth, measure(truth, cv=STEADY, seed=2, rounds=3), rule)
            assert (verdict.arms["candidate"].reason == "SlowerThanBaseline") is told

    def test_noise_raises_it_and_it_is_said_where_nothing_was_decided(self) -> None:
        truth = against(dict.fromkeys(WORKLOADS, 1.055))
        quiet, loud = (decided(truth, measure(truth, cv=cv, seed=3)).arms["candidate"] for cv in (0.02, 0.1))
        assert quiet.margin is not None
        assert loud.margin is not None
        assert loud.margin == pytest.approx(5 * quiet.margin, rel=0.1)
        assert gate.explain(loud).endswith(f"; margin {loud.margin:.1%}")

    def test_rounds_that_agree_by_luck_do_not_lower_it_below_the_variance_floor(self) -> None:
        verdict = decided(LATENCY, measure(LATENCY, cv=0.0, seed=4), core.Gate(variance_floor=0.002))
        # Student's t at 0.05 / 3 looks and three degrees of freedom, over the root of four rounds.
        assert verdict.arms["wide"].margin == pytest.approx(math.exp(3.7405 * 0.002 / math.sqrt(4)) - 1, rel=1e-4)

    def test_without_a_look_there_is_none(self) -> None:
        assert decided(LATENCY, measure(LATENCY, cv=STEADY, seed=5, rounds=2)).arms["wide"].margin is None


class TestLooks:
    truth = against(dict.fromkeys(WORKLOADS, 1.055))

    def test_before_the_first_look_nothing_is_said(self) -> None:
        verdict = decided(self.truth, measure(self.truth, cv=STEADY, seed=6, rounds=2))

        assert (verdict.outcome, verdict.rounds, verdict.final) == (Outcome.ERROR, 0, False)
        assert verdict.arms["candidate"].reason == "TooFewRounds"
        assert verdict.arms["candidate"].mean is None
        assert gate.undecided(verdict) == ("candidate",)

    def test_between_two_looks_the_earlier_one_stands(self) -> None:
        four, five = (decided(self.truth, measure(self.truth, cv=0.01, seed=6, rounds=n)) for n in (4, 5))

        assert four == five
        assert (five.outcome, five.rounds, five.final) == (Outcome.INCONCLUSIVE, 4, False)

    def test_between_two_looks_the_bounds_of_now_can_be_asked_for(self) -> None:
        five = measure(self.truth, cv=0.01, seed=6, rounds=5)
        now = gate.so_far(core.Gate(), list(self.truth), EVEN, five)
        looks_at_five = decided(self.truth, five, core.Gate(decide_after_rounds=(4, 5, 8)))
        assert now.arms["candidate"].rounds == 5
        assert now.arms == looks_at_five.arms

    def test_at_a_look_the_bounds_of_now_are_those_of_the_look(self) -> None:
        four = measure(self.truth, cv=0.01, seed=6, rounds=4)
        assert gate.so_far(core.Gate(), list(self.truth), EVEN, four) == decided(self.truth, four)

    def test_one_round_has_no_bounds(self) -> None:
        one = measure(self.truth, cv=0.01, seed=6, rounds=1)
        assert gate.so_far(core.Gate(), list(self.truth), EVEN, one).arms["candidate"].mean is None

    def test_rounds_after_the_last_look_are_not_used(self) -> None:
        eight, ten = (decided(self.truth, measure(self.truth, cv=0.01, seed=6, rounds=n)) for n in (8, 10))

        assert eight == ten
        assert eight.final

    def test_a_broken_round_is_left_out_and_the_next_one_takes_its_place(self) -> None:
        measurements = measure(LATENCY, cv=STEADY, seed=7, rounds=5)
        broken = [replace(m, valid=(m.round, m.arm, m.workload) != (1, "wide", "chat")) for m in measurements]
        without = [m for m in measurements if m.round != 1]

        assert decided(LATENCY, broken) == decided(LATENCY, without)
        assert decided(LATENCY, broken).winner == "wide"

    def test_a_broken_baseline_breaks_the_round_for_every_candidate(self) -> None:
        measurements = measure(THROUGHPUT, cv=STEADY, seed=8, rounds=3)
        broken = [replace(m, valid=(m.round, m.arm) != (0, "baseline")) for m in measurements]

        verdict = decided(THROUGHPUT, broken, THROUGHPUT_GATE)
        assert verdict.outcome is Outcome.ERROR
        assert gate.undecided(verdict) == ("narrow", "wide")

    def test_a_verdict_stands_though_later_rounds_would_speak_against_it(self) -> None:
        good, bad = against(dict.fromkeys(WORKLOADS, 1.3)), against(dict.fromkeys(WORKLOADS, 0.7))
        later = [replace(m, round=m.round + 4) for m in measure(bad, cv=STEADY, seed=9, rounds=4)]

        verdict = decided(good, [*measure(good, cv=STEADY, seed=9, rounds=4), *later])
        assert (verdict.outcome, verdict.rounds) == (Outcome.PROMOTE, 4)


class TestSeveralCandidates:
    def truth(self, **speed_ups: float) -> Truth:
        arms = {name: dict.fromkeys(WORKLOADS, 100 * x) for name, x in speed_ups.items()}
        return {"baseline": dict.fromkeys(WORKLOADS, 100.0), **arms}

    def test_the_error_is_split_among_the_candidates_there_were_at_the_start(self) -> None:
        alone, both = self.truth(a=1.2), self.truth(a=1.2, b=1.2)
        measurements = measure(both, cv=STEADY, seed=10, rounds=4)
        one = decided(alone, [m for m in measurements if m.arm != "b"]).arms["a"]
        two = decided(both, measurements).arms["a"]

        assert one.mean is not None
        assert two.mean is not None
        assert one.mean.ratio == two.mean.ratio
        assert one.mean.lower > two.mean.lower

    def test_what_is_as_good_goes_to_the_first_in_the_order_of_arms(self) -> None:
        truth = self.truth(small=1.2, large=1.2005)
        verdict = decided(truth, measure(truth, cv=0.0, seed=11))
        assert verdict.winner == "small"

    def test_what_is_better_wins_wherever_it_stands(self) -> None:
        truth = self.truth(small=1.2, large=1.25)
        verdict = decided(truth, measure(truth, cv=0.0, seed=11))
        assert verdict.winner == "large"

    def test_it_goes_on_while_an_undecided_candidate_could_still_be_better(self) -> None:
        truth = self.truth(sure=1.10, hope=1.30)
        steady = [m for m in measure(truth, cv=STEADY, seed=12) if m.arm != "hope"]
        shaky = [m for m in measure(truth, cv=0.2, seed=12) if m.arm == "hope"]

        verdict = decided(truth, [m for m in [*steady, *shaky] if m.round < 4])
        assert (verdict.outcome, verdict.winner, verdict.final) == (Outcome.PROMOTE, "sure", False)
        assert gate.undecided(verdict) == ("hope",)

    def test_it_stops_when_the_undecided_ones_cannot_be_better(self) -> None:
        truth = self.truth(sure=1.30, hope=1.052)
        verdict = decided(truth, measure(truth, cv=STEADY, seed=13))

        assert (verdict.winner, verdict.rounds, verdict.final) == ("sure", 4, True)
        assert verdict.arms["hope"].outcome is ArmOutcome.UNDECIDED
        assert gate.undecided(verdict) == ()

    def test_a_candidate_that_had_its_last_look_is_not_measured_again(self) -> None:
        """It stays undecided, and the other one still lacks its look after eight rounds."""
        truth = self.truth(open=1.055, slow=1.055)
        verdict = decided(
            truth,
            [replace(m, valid=(m.round, m.arm) != (1, "slow")) for m in measure(truth, cv=0.01, seed=22, rounds=8)],
        )

        assert {name: (arm.outcome.value, arm.rounds) for name, arm in verdict.arms.items()} == {
            "open": ("undecided", 8),
            "slow": ("undecided", 6),
        }
        assert not verdict.final
        assert gate.undecided(verdict) == ("slow",)

    def test_a_candidate_that_could_not_be_measured_is_not_blamed(self) -> None:
        truth = self.truth(slow=0.8, broken=1.2)
        verdict = decided(truth, [m for m in measure(truth, cv=STEADY, seed=14) if m.arm != "broken"])

        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert verdict.arms["slow"].outcome is ArmOutcome.REJECTED
        assert (verdict.arms["broken"].outcome, verdict.arms["broken"].reason) == (
            ArmOutcome.ERROR,
            "NoCompleteRound",
        )
        assert gate.undecided(verdict) == ("broken",)


class TestNothingAccepted:
    truth = against(dict.fromkeys(WORKLOADS, 0.85))

    def test_it_is_rejected_after_one_round(self) -> None:
        one = [
            replace(m, nothing_accepted=m.arm != "baseline") for m in measure(self.truth, cv=STEADY, seed=15, rounds=1)
        ]
        verdict = decided(self.truth, one)

        assert (verdict.outcome, verdict.rounds, verdict.final) == (Outcome.REJECT, 1, True)
        assert verdict.arms["candidate"].reason == "NothingAccepted"
        assert "code, swe, terminal, chat" in gate.explain(verdict.arms["candidate"])

    def test_an_incomplete_round_does_not_count(self) -> None:
        one = [
            replace(m, nothing_accepted=m.arm != "baseline", valid=m.workload != "chat")
            for m in measure(self.truth, cv=STEADY, seed=15, rounds=1)
        ]
        verdict = decided(self.truth, one)

        assert (verdict.outcome, verdict.arms["candidate"].reason) == (Outcome.ERROR, "NoCompleteRound")

    def test_the_other_candidates_go_on(self) -> None:
        measurements = [
            replace(m, nothing_accepted=m.arm == "wide") for m in measure(THROUGHPUT, cv=STEADY, seed=16, rounds=1)
        ]
        verdict = decided(THROUGHPUT, measurements, THROUGHPUT_GATE)

        assert gate.undecided(verdict) == ("narrow",)
        assert not verdict.final


class TestLimits:
    rule = core.Gate(limits=(core.Limit(metric="p95TTFT", max_increase=0.20),))

    def with_ttft(self, factor: float | None) -> list[core.Measurement]:
        """`factor` is the candidate's p95 time to first token over the baseline's; None: the candidate reports none."""
        seconds = {"baseline": {"p95TTFT": 0.05}, "wide": {} if factor is None else {"p95TTFT": 0.05 * factor}}
        return [replace(m, metrics=seconds[m.arm]) for m in measure(LATENCY, cv=STEADY, seed=17)]

    def test_below_the_limit_it_is_promoted(self) -> None:
        assert decided(LATENCY, self.with_ttft(1.10), self.rule).outcome is Outcome.PROMOTE

    def test_above_the_limit_it_is_rejected_however_fast_it_is(self) -> None:
        verdict = decided(LATENCY, self.with_ttft(1.30), self.rule)

        assert (verdict.outcome, verdict.arms["wide"].reason) == (Outcome.REJECT, "LimitExceeded")
        assert "p95TTFT on code 1.300x" in gate.explain(verdict.arms["wide"])

    def test_at_the_limit_it_is_not_decided(self) -> None:
        assert decided(LATENCY, self.with_ttft(1.20), self.rule).outcome is Outcome.INCONCLUSIVE

    @pytest.mark.parametrize("factor", [None, math.nan, 0.0, -1.0, math.inf])
    def test_a_metric_that_is_missing_is_never_below_a_limit(self, factor: float | None) -> None:
        verdict = decided(LATENCY, self.with_ttft(factor), self.rule)

        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "p95TTFT on code " in gate.explain(verdict.arms["wide"])


def test_weights_count_in_the_mean_but_protect_no_workload() -> None:
    light = decided(THROUGHPUT, measure(THROUGHPUT, cv=0.0, seed=18), code=1, swe=1, terminal=1, chat=7).arms["wide"]
    even = decided(THROUGHPUT, measure(THROUGHPUT, cv=0.0, seed=18)).arms["wide"]

    assert light.mean is not None
    assert even.mean is not None
    assert light.mean.ratio > even.mean.ratio
    assert light.reason == even.reason == "WorkloadRegressed"


@pytest.mark.parametrize(
    ("arms", "workloads", "looks", "place"),
    [
        (["baseline"], EVEN, (3,), "arms"),
        (["baseline", "a", "a"], EVEN, (3,), "arms"),
        (["a", "baseline"], EVEN, (3,), "arms"),
        (["baseline", "a"], {}, (3,), "workloads"),
        (["baseline", "a"], {"code": 0.0}, (3,), "workloads"),
        (["baseline", "a"], EVEN, (), "decideAfterRounds"),
        (["baseline", "a"], EVEN, (1, 3), "decideAfterRounds"),
        (["baseline", "a"], EVEN, (5, 3), "decideAfterRounds"),
    ],
)
def test_what_is_no_question_is_refused(
    arms: list[str], workloads: dict[str, float], looks: tuple[int, ...], place: str
) -> None:
    with pytest.raises(ValueError, match=f"^{place}: "):
        gate.decide(core.Gate(decide_after_rounds=looks), arms, workloads, [])
