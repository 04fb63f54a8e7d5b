"""What the gate makes of the arms' answers: whom it rejects for them, whom it must not, and whom it cannot promote."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.campaigns import LATENCY, THROUGHPUT, THROUGHPUT_GATE, WORKLOADS, Truth, measure
from tests.support.messages import Says

from paceline import core, gate
from paceline.core import Answers, ArmOutcome, Outcome

PROMPTS = 4
SAME = ("a0", "b0", "c0", "d0")
EVEN = dict.fromkeys(WORKLOADS, 1.0)
STEADY = 0.003


def answered(*rounds: tuple[Sequence[str], Sequence[int]], arm: str = "wide") -> list[Answers]:
    """Of each round the digests of the baseline's answers, and the prompts at which the arm diverged."""
    return [
        Answers(round=number, baseline=tuple(baseline), diverged={arm: frozenset(diverged)})
        for number, (baseline, diverged) in enumerate(rounds)
    ]


def decided(answers: Sequence[Answers], truth: Truth = LATENCY, rounds: int | None = None) -> core.Verdict:
    measurements = measure(truth, cv=STEADY, seed=1, rounds=len(answers) if rounds is None else rounds)
    rule = THROUGHPUT_GATE if truth is THROUGHPUT else core.Gate()
    return gate.decide(rule, list(truth), EVEN, measurements, answers)


def test_a_faster_candidate_that_answers_alike_is_promoted() -> None:
    verdict = decided(answered(*[(SAME, ())] * 4))
    assert (verdict.outcome, verdict.winner) == (Outcome.PROMOTE, "wide")


def test_however_fast_it_is_other_answers_reject_it_in_the_second_round(says: Says) -> None:
    verdict = decided(answered((SAME, (2,)), (SAME, (2, 3))))
    wide = verdict.arms["wide"]
    assert (verdict.outcome, verdict.rounds, verdict.final) == (Outcome.REJECT, 2, True)
    assert (wide.outcome, wide.reason) == (ArmOutcome.REJECTED, "OutputsDiffer")
    says(gate.explain(wide))


def test_one_round_shows_nothing_as_nobody_knows_what_the_baseline_does_with_itself() -> None:
    verdict = decided(answered((SAME, (0, 1, 2, 3))))
    assert (verdict.arms["wide"].reason, gate.undecided(verdict)) == ("TooFewRounds", ("wide",))


def test_once_is_enough_where_the_baseline_agrees_with_itself() -> None:
    """A candidate that answers otherwise now and then is no better than one that always does."""
    assert decided(answered((SAME, ()), (SAME, ()), (SAME, (1,)))).arms["wide"].reason == "OutputsDiffer"


def test_where_the_baseline_does_not_agree_with_itself_the_candidate_is_not_blamed() -> None:
    anew = [(("a0", "b0", "c0", f"d{number}"), (3,)) for number in range(4)]
    verdict = decided(answered(*anew))
    assert (verdict.outcome, verdict.winner) == (Outcome.PROMOTE, "wide")


def test_a_baseline_that_agrees_on_few_prompts_promotes_nobody_and_more_rounds_would_not_help(says: Says) -> None:
    anew = [(("a0", *(f"{prompt}{number}" for prompt in "bcd")), ()) for number in range(4)]
    verdict = decided(answered(*anew))
    wide = verdict.arms["wide"]
    assert (verdict.outcome, verdict.final, gate.undecided(verdict)) == (Outcome.INCONCLUSIVE, True, ())
    assert (wide.outcome, wide.reason) == (ArmOutcome.UNDECIDED, "OutputsUnstable")
    says(gate.explain(wide))


def test_a_slow_candidate_is_rejected_for_that_whatever_the_baseline_answers() -> None:
    anew = [(tuple(f"{prompt}{number}" for prompt in "abcd"), (0,)) for number in range(4)]
    slow = {"baseline": dict.fromkeys(WORKLOADS, 100.0), "wide": dict.fromkeys(WORKLOADS, 90.0)}
    assert decided(answered(*anew), slow).arms["wide"].reason == "SlowerThanBaseline"


def test_a_round_whose_answers_are_missing_promotes_nobody() -> None:
    verdict = decided(answered((SAME, ()), (SAME, ())), rounds=4)
    assert verdict.arms["wide"].reason == "OutputsUnstable"


def test_the_other_candidates_go_on() -> None:
    verdict = decided(answered(*[(SAME, (1,))] * 8), THROUGHPUT)
    assert verdict.arms["wide"].reason == "OutputsDiffer"
    assert (verdict.outcome, verdict.winner) == (Outcome.PROMOTE, "narrow")


def test_the_chances_of_the_others_do_not_change_with_who_is_left() -> None:
    """The error was shared out at the start."""
    with_wide = decided(answered(*[(SAME, ())] * 4), THROUGHPUT).arms["narrow"]
    without = decided(answered(*[(SAME, (0,))] * 4), THROUGHPUT).arms["narrow"]
    assert with_wide.mean == without.mean


rounds_of_answers = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["00", "11"]), min_size=PROMPTS, max_size=PROMPTS),
        st.sets(st.integers(0, PROMPTS - 1)),
    ),
    min_size=1,
    max_size=8,
)


@given(rounds_of_answers)
def test_a_rejection_is_final_and_never_for_what_the_baseline_answers_anew(
    rounds: list[tuple[list[str], set[int]]],
) -> None:
    numbers = range(len(rounds))
    whole = answered(*[(baseline, tuple(diverged)) for baseline, diverged in rounds])
    verdicts = [decided(whole[: n + 1]).arms["wide"] for n in numbers]
    rejected = [n for n in numbers if verdicts[n].reason == "OutputsDiffer"]
    if rejected:
        assert rejected == list(range(rejected[0], len(rounds)))
        assert len({verdicts[n].message for n in rejected}) == 1
        first = rounds[: rejected[0] + 1]
        settled = [p for p in range(PROMPTS) if len({baseline[p] for baseline, _ in first}) == 1]
        assert any(p in diverged for p in settled for _, diverged in first)


@pytest.mark.parametrize("number", [2, 3, 8])
def test_rounds_that_are_no_evidence_do_not_count_for_answers_either(number: int) -> None:
    measurements = [
        core.Measurement(round=m.round, arm=m.arm, workload=m.workload, output_throughput=m.output_throughput,
                         valid=m.arm == "baseline" or m.round != 0)
        for m in measure(LATENCY, cv=STEADY, seed=1, rounds=number)
    ]  # fmt: skip
    answers = answered((SAME, (0, 1, 2, 3)), *[(SAME, ())] * (number - 1))
    verdict = gate.decide(core.Gate(), list(LATENCY), EVEN, measurements, answers)
    assert verdict.arms["wide"].reason != "OutputsDiffer"
