"""A run with an incumbent: what replaces what a pool serves is shown not to be slower than it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.campaigns import WORKLOADS, Truth, measure
from tests.support.messages import Says

from paceline import core, gate
from paceline.core import INCUMBENT, ArmOutcome, Measurement, Outcome

EVEN = dict.fromkeys(WORKLOADS, 1.0)
Ends = Mapping[tuple[int, str], str]
"""Round and arm → why its server ended there."""
NONE: Ends = {}
ON_TIME: Mapping[str, float] = {}


def arms(**speeds: float | Mapping[str, float]) -> Truth:
    """Arm → its speed on every workload, or on each."""
    return {
        name: {w: 100 * x for w, x in (dict.fromkeys(WORKLOADS, of) if isinstance(of, float) else of).items()}
        for name, of in speeds.items()
    }


def decided(
    truth: Truth,
    rounds: int = 9,
    ends: Ends = NONE,
    ttft: Mapping[str, float] = ON_TIME,
    rule: core.Gate | None = None,
) -> core.Verdict:
    """`ttft`: of an arm, as a factor."""
    rule = rule or core.Gate(decide_after_rounds=core.default_looks(len(truth)))
    measured = [
        replace(m, metrics={"meanTTFT": 0.05 * ttft.get(m.arm, 1.0)})
        for m in measure(truth, cv=0.003, seed=1, rounds=rounds)
    ]
    return gate.decide(rule, list(truth), EVEN, ended(measured, ends))


def ended(measured: list[Measurement], ends: Ends) -> list[Measurement]:
    """A round in which an arm "is not there" lacks it."""
    said = ((m, ends.get((m.round, m.arm), "")) for m in measured)
    return [replace(m, valid=False, ended=why) if why else m for m, why in said if why != "is not there"]


def outcomes(verdict: core.Verdict) -> dict[str, tuple[str, str]]:
    return {name: (arm.outcome.value, arm.reason) for name, arm in verdict.arms.items()}


def test_the_candidate_wins_that_beats_the_baseline_and_is_as_fast_as_the_incumbent(says: Says) -> None:
    verdict = decided(arms(baseline=1.0, wide=1.2, incumbent=1.2))
    assert (verdict.outcome, verdict.winner, verdict.rounds, verdict.final) == (Outcome.PROMOTE, "wide", 3, True)
    wide = verdict.arms["wide"]
    assert wide.mean
    assert wide.incumbent
    assert (wide.mean.ratio, wide.incumbent.ratio) == pytest.approx((1.2, 1.0), rel=0.01)
    says(wide.message)


def test_one_that_beats_the_new_baseline_but_is_slower_than_what_serves_is_rejected(says: Says) -> None:
    """The new release made everything slower: so does the baseline."""
    verdict = decided(arms(baseline=0.7, wide=0.9, incumbent=1.0))
    assert outcomes(verdict) == {
        "baseline": ("rejected", "SlowerThanIncumbent"),
        "wide": ("rejected", "SlowerThanIncumbent"),
    }
    assert (verdict.outcome, verdict.winner) == (Outcome.REJECT, None)
    says(*(arm.message for arm in verdict.arms.values()))


def test_one_slower_workload_is_enough(says: Says) -> None:
    verdict = decided(arms(baseline={**dict.fromkeys(WORKLOADS, 1.1), "chat": 0.93}, incumbent=1.0))
    assert (verdict.outcome, verdict.arms["baseline"].reason) == (Outcome.REJECT, "SlowerThanIncumbent")
    says(verdict.arms["baseline"].message)


def test_without_a_candidate_that_may_the_baseline_replaces_it(says: Says) -> None:
    verdict = decided(arms(baseline=1.0, wide=0.9, incumbent=1.0))
    assert (verdict.outcome, verdict.winner, verdict.final) == (Outcome.PROMOTE, "baseline", True)
    baseline = verdict.arms["baseline"]
    assert (baseline.reason, baseline.mean, baseline.workloads) == ("AsFastAsIncumbent", None, {})
    assert verdict.arms["wide"].reason == "SlowerThanBaseline", "the baseline's comparison is named first"
    says(baseline.message)


def test_a_run_may_be_of_nothing_but_baseline_and_incumbent() -> None:
    verdict = decided(arms(baseline=1.0, incumbent=1.0))
    assert (verdict.outcome, verdict.winner, verdict.rounds) == (Outcome.PROMOTE, "baseline", 4)
    assert gate.undecided(verdict) == ()


def test_while_a_candidate_is_open_the_baseline_does_not_win() -> None:
    truth = arms(baseline=1.0, wide=1.052, incumbent=1.0)
    verdict = decided(truth, rounds=3)
    assert (verdict.outcome, verdict.winner, verdict.final) == (Outcome.INCONCLUSIVE, None, False)
    assert (gate.undecided(verdict), gate.baseline_is_open(verdict)) == (("wide",), False)
    assert gate.without_more_rounds(verdict).winner == "baseline", "if the run ends here"


def test_an_open_baseline_asks_for_rounds_until_a_candidate_is_promotable() -> None:
    """Its server is as far behind as is tolerated."""
    alone = decided(arms(baseline=0.97, wide=0.9, incumbent=1.0), rounds=3)
    assert (alone.final, gate.undecided(alone), gate.baseline_is_open(alone)) == (False, (), True)
    beside = decided(arms(baseline=0.97, wide=1.2, incumbent=1.0), rounds=3)
    assert (beside.winner, beside.final, gate.baseline_is_open(beside)) == ("wide", True, False)
    at_the_end = decided(arms(baseline=0.97, wide=0.9, incumbent=1.0), rounds=9)
    assert (at_the_end.outcome, at_the_end.final) == (Outcome.INCONCLUSIVE, True)
    assert at_the_end.arms["baseline"].reason == "MayBeSlowerThanIncumbent"


def test_the_error_is_split_among_all_that_may_replace_it() -> None:
    looks = core.Gate(decide_after_rounds=(3, 6, 9))
    without = decided(arms(baseline=1.0, wide=1.2), rule=looks).arms["wide"].mean
    beside = decided(arms(baseline=1.0, wide=1.2, incumbent=1.2), rule=looks).arms["wide"].mean
    assert without
    assert beside
    assert without.lower > beside.lower


class TestTheFirstToken:
    """It may come 25 % later than on the incumbent, in closed loops too, unless a limit says otherwise."""

    truth = arms(baseline=1.0, wide=1.2, incumbent=1.0)

    def test_beyond_the_limit(self, says: Says) -> None:
        verdict = decided(self.truth, ttft={"wide": 1.4})
        assert (verdict.winner, verdict.arms["wide"].reason) == ("baseline", "LimitExceeded")
        says(verdict.arms["wide"].message)

    def test_a_limit_of_the_gate_takes_its_place(self) -> None:
        limit = core.Limit(metric="meanTTFT", max_increase=0.6)
        rule = core.Gate(limits=(limit,), decide_after_rounds=(3, 6, 9))
        assert decided(self.truth, ttft={"wide": 1.4}, rule=rule).winner == "wide"

    def test_where_it_is_unknown_nothing_is_shown(self) -> None:
        measured = measure(self.truth, cv=0.003, seed=1)
        rule = core.Gate(decide_after_rounds=(3, 6, 9))
        verdict = gate.decide(rule, list(self.truth), EVEN, measured)
        assert (verdict.outcome, verdict.arms["wide"].reason) == (Outcome.INCONCLUSIVE, "MayBeSlowerThanIncumbent")
        assert "meanTTFT on code is missing in a round" in verdict.arms["wide"].message


class TestBroken:
    """One of baseline and incumbent fails in two rounds in which the other one lived."""

    truth = arms(baseline=0.8, wide=0.9, incumbent=1.0)

    @pytest.mark.parametrize("why", ["ServerCrashed", "ServerArguments", "ImagePull", "StartTimeout"])
    def test_an_incumbent_that_cannot_run_is_no_bar(self, why: str, says: Says) -> None:
        """Without a complete round: it cannot run at all."""
        verdict = decided(self.truth, rounds=3, ends=dict.fromkeys([(0, INCUMBENT), (1, INCUMBENT)], why))
        assert outcomes(verdict) == {
            "baseline": ("promotable", "IncumbentUnreliable"),
            "wide": ("promotable", "FasterThanMinimum"),
            INCUMBENT: ("rejected", "Unreliable"),
        }
        assert (verdict.winner, verdict.final) == ("wide", True)
        says(verdict.arms["baseline"].message)

    def test_then_a_change_without_candidates_is_decided_at_once(self) -> None:
        truth = arms(baseline=0.8, incumbent=1.0)
        verdict = decided(truth, rounds=2, ends=dict.fromkeys([(0, INCUMBENT), (1, INCUMBENT)], "ServerCrashed"))
        assert (verdict.outcome, verdict.winner, verdict.final) == (Outcome.PROMOTE, "baseline", True)

    def test_a_baseline_that_cannot_run_is_rejected_and_candidates_are_judged_beside_the_incumbent(
        self, says: Says
    ) -> None:
        ends = dict.fromkeys([(0, "baseline"), (1, "baseline")], "ServerArguments")
        gone = {(n, "baseline"): "is not there" for n in range(2, 9)}
        verdict = decided(arms(baseline=0.8, wide=1.0, slow=0.9, incumbent=1.0), ends=ends | gone)
        assert outcomes(verdict) == {
            "baseline": ("rejected", "Unreliable"),
            "wide": ("promotable", "AsFastAsIncumbent"),
            "slow": ("rejected", "SlowerThanIncumbent"),
        }
        assert verdict.winner == "wide"
        says(verdict.arms["baseline"].message)

    def test_without_a_candidate_the_change_is_rejected(self) -> None:
        ends = dict.fromkeys([(0, "baseline"), (1, "baseline")], "OutOfMemory")
        verdict = decided(arms(baseline=1.0, incumbent=1.0), rounds=2, ends=ends)
        assert (verdict.outcome, verdict.final) == (Outcome.REJECT, True)

    @pytest.mark.parametrize("other", ["ServerCrashed", "is not there"])
    def test_a_round_in_which_the_other_one_did_not_live_counts_against_neither(self, other: str) -> None:
        ends = {(n, arm): "ServerCrashed" for n in (0, 1) for arm in ("baseline", INCUMBENT)}
        ends |= {(n, "baseline"): other for n in (0, 1)}
        assert decided(self.truth, rounds=2, ends=ends).outcome is Outcome.ERROR

    def test_the_first_that_is_shown_to_be_broken_is_the_one(self) -> None:
        """With whom nothing is compared any more shows nothing of the other one."""
        first = dict.fromkeys([(0, INCUMBENT), (1, INCUMBENT)], "ServerCrashed")
        later = dict.fromkeys([(2, "baseline"), (3, "baseline")], "ServerCrashed")
        verdict = decided(arms(baseline=1.0, incumbent=1.0), rounds=4, ends=first | later)
        assert outcomes(verdict)["baseline"] == ("promotable", "IncumbentUnreliable")

    def test_a_busy_client_is_nobodys_fault(self) -> None:
        verdict = decided(self.truth, rounds=2, ends=dict.fromkeys([(0, "baseline"), (1, "baseline")], "ClientBusy"))
        assert verdict.outcome is Outcome.ERROR

    def test_a_baseline_that_breaks_after_it_has_passed_does_not_replace_anything(self) -> None:
        truth = arms(baseline=1.0, wide=1.052, incumbent=1.0)
        verdict = decided(truth, rounds=6, ends=dict.fromkeys([(3, "baseline"), (4, "baseline")], "ServerCrashed"))
        assert outcomes(verdict)["baseline"] == ("rejected", "Unreliable")
        assert verdict.arms["wide"].outcome is ArmOutcome.PROMOTABLE, "beside the incumbent alone"


def test_between_two_looks_both_are_compared() -> None:
    truth = arms(baseline=1.0, wide=1.2, incumbent=1.0)
    measured = [replace(m, metrics={"meanTTFT": 0.05}) for m in measure(truth, cv=0.003, seed=1, rounds=2)]
    verdict = gate.so_far(core.Gate(decide_after_rounds=(3, 6, 9)), list(truth), EVEN, measured)
    assert verdict.arms["wide"].rounds == verdict.arms["baseline"].rounds == 2


@pytest.mark.parametrize("speeds", [(1.0, 1.05, 1.0), (0.97, 1.06, 1.02), (0.9, 1.0, 1.0), (1.0, 1.1, 1.1)])
def test_asking_after_every_round_comes_to_the_same_as_asking_once(speeds: tuple[float, float, float]) -> None:
    baseline, wide, incumbent = speeds
    truth = arms(baseline=baseline, wide=wide, narrow=wide, incumbent=incumbent)
    rule = core.Gate(decide_after_rounds=(3, 6, 9))
    for seed in range(25):
        measured = [
            replace(m, metrics={"meanTTFT": 0.05}) for m in measure(truth, cv=0.005, start=0.01, seed=seed, rounds=9)
        ]
        seen: list[Measurement] = []
        asked = set(truth)
        for n in range(9):
            seen += [m for m in measured if m.round == n and m.arm in asked]
            verdict = gate.decide(rule, list(truth), EVEN, seen)
            asked = {"baseline", INCUMBENT, *gate.undecided(verdict)}
            assert verdict.final or len(asked) > 2 or gate.baseline_is_open(verdict)
            if verdict.final:
                break
        assert verdict == gate.decide(rule, list(truth), EVEN, measured)


@pytest.mark.parametrize("named", [[INCUMBENT, "a"], ["mine", "a", INCUMBENT]])
def test_beside_an_incumbent_the_first_arm_is_the_baseline(named: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^arms: 'incumbent' needs 'baseline' as the first arm"):
        gate.decide(core.Gate(), named, EVEN, [])
