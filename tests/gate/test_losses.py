"""A candidate whose own server ends: once may be luck, twice in all it is not promoted, and every verdict says what was
lost and to what."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.campaigns import LATENCY, THROUGHPUT, THROUGHPUT_GATE, WORKLOADS, Truth, measure
from tests.support.messages import Says

from paceline import core, gate
from paceline.core import ArmOutcome, Measurement, Outcome
from paceline.gate.limits import enforce_maxima

EVEN = dict.fromkeys(WORKLOADS, 1.0)
STEADY = 0.003
Ends = Mapping[tuple[int, str], str]
"""Round and arm → why its server ended there."""


def ended(measurements: Sequence[Measurement], ends: Ends) -> list[Measurement]:
    return [
        replace(m, valid=False, output_throughput=None, ended=ends[m.round, m.arm]) if (m.round, m.arm) in ends else m
        for m in measurements
    ]


def decided(ends: Ends, truth: Truth = LATENCY, rounds: int = 9) -> core.Verdict:
    rule = THROUGHPUT_GATE if truth is THROUGHPUT else core.Gate()
    return gate.decide(rule, list(truth), EVEN, ended(measure(truth, cv=STEADY, seed=1, rounds=rounds), ends))


def test_one_end_may_be_luck_and_is_said(says: Says) -> None:
    verdict = decided({(1, "wide"): "ServerCrashed"})
    assert (verdict.outcome, verdict.winner, verdict.rounds) == (Outcome.PROMOTE, "wide", 4)
    says(verdict.arms["wide"].lost)
    assert gate.explain(verdict.arms["wide"]).endswith(verdict.arms["wide"].lost)


@pytest.mark.parametrize("rounds", [4, 5, 9])
def test_a_second_in_all_rejects_it_at_once_however_fast_it_is(rounds: int, says: Says) -> None:
    """Before its first look, too: nobody measures it again."""
    verdict = decided({(1, "wide"): "ServerCrashed", (3, "wide"): "OutOfMemory"}, rounds=rounds)
    wide = verdict.arms["wide"]
    assert (verdict.outcome, verdict.final, gate.undecided(verdict)) == (Outcome.REJECT, True, ())
    assert (wide.outcome, wide.reason, wide.rounds) == (ArmOutcome.REJECTED, "Unreliable", 2)
    assert "round 2 (ServerCrashed), round 4 (OutOfMemory)" in wide.message
    says(wide.message)


def test_what_a_look_has_shown_of_its_speed_stays() -> None:
    """Undecided after four rounds, and then its server ended a second time."""
    truth = {"baseline": dict.fromkeys(WORKLOADS, 100.0), "wide": dict.fromkeys(WORKLOADS, 105.5)}
    verdict = decided({(1, "wide"): "ServerCrashed", (5, "wide"): "ServerCrashed"}, truth, rounds=6)
    wide = verdict.arms["wide"]
    assert (wide.reason, wide.rounds) == ("Unreliable", 4)
    assert wide.mean is not None
    assert "2 of 6 rounds" in wide.lost


def test_a_verdict_that_was_final_before_stays() -> None:
    verdict = decided({(1, "wide"): "ServerCrashed", (6, "wide"): "ServerCrashed"})
    assert verdict.outcome is Outcome.PROMOTE
    assert "1 of 5 rounds" in verdict.arms["wide"].lost


def test_rounds_in_which_the_baselines_server_ended_too_blame_nobody(says: Says) -> None:
    both = {(n, arm): "ServerCrashed" for n in (0, 2, 3) for arm in LATENCY}
    verdict = decided(both)
    assert verdict.outcome is Outcome.PROMOTE
    says(verdict.arms["wide"].lost)


def test_one_that_never_gave_a_complete_round_is_an_error() -> None:
    """Nothing tells it from one that was asked wrongly."""
    verdict = decided({(n, "wide"): "ServerCrashed" for n in range(3)}, rounds=3)
    assert (verdict.outcome, verdict.arms["wide"].reason) == (Outcome.ERROR, "NoCompleteRound")
    assert "3 of 3 rounds" in gate.explain(verdict.arms["wide"])


def test_the_others_go_on_without_it() -> None:
    verdict = decided({(0, "wide"): "ServerCrashed", (2, "wide"): "ServerCrashed"}, THROUGHPUT)
    assert (verdict.arms["wide"].reason, verdict.winner) == ("Unreliable", "narrow")


def test_losses_that_are_nobodys_are_told_from_the_others(says: Says) -> None:
    measurements = [
        replace(m, valid=(m.round, m.arm, m.workload) not in {(0, "wide", "chat"), (2, "baseline", "code")})
        for m in measure(LATENCY, cv=STEADY, seed=1, rounds=7)
    ]
    verdict = gate.decide(core.Gate(), list(LATENCY), EVEN, ended(measurements, {(3, "wide"): "OutOfMemory"}))
    says(verdict.arms["wide"].lost)


class TestRequestsThatFail:
    """Of a server that lived. Who broke them is not seen: a client would break the baseline's as often."""

    def test_in_two_rounds_beside_a_baseline_that_answered_all_they_are_the_servers(self) -> None:
        verdict = decided({(1, "wide"): "RequestsFailed", (3, "wide"): "RequestsFailed"})
        wide = verdict.arms["wide"]
        assert (verdict.outcome, wide.reason) == (Outcome.REJECT, "Unreliable")
        assert "round 2 (RequestsFailed), " in wide.message
        assert "(RequestsFailed)" in wide.lost

    def test_in_one_round_they_may_be_luck(self) -> None:
        assert decided({(1, "wide"): "RequestsFailed"}).outcome is Outcome.PROMOTE

    def test_one_and_a_server_that_ended_are_two(self) -> None:
        ends = {(1, "wide"): "RequestsFailed", (3, "wide"): "ServerCrashed"}
        assert decided(ends).arms["wide"].reason == "Unreliable"

    def test_where_the_baselines_fail_as_well_nobody_is_blamed(self, says: Says) -> None:
        both = {(n, arm): "RequestsFailed" for n in (0, 2) for arm in LATENCY}
        verdict = decided(both)
        assert verdict.outcome is Outcome.PROMOTE
        says(verdict.arms["wide"].lost)

    def test_as_many_as_the_baseline_alone_had_by_then_are_let_pass(self) -> None:
        """A client that breaks streams: round by round it is another arm's."""
        by_turns = dict.fromkeys(enumerate(("baseline", "wide", "wide")), "RequestsFailed")
        assert decided(by_turns).outcome is Outcome.PROMOTE
        assert decided({**by_turns, (4, "wide"): "RequestsFailed"}).arms["wide"].reason == "Unreliable"

    @pytest.mark.parametrize("lived", ["RequestsFailed", "NotMeasured", "ClientFailed", "Retracted"])
    def test_a_baseline_that_lived_excuses_no_crash(self, lived: str) -> None:
        ends = {(n, "wide"): "ServerCrashed" for n in (1, 3)} | {(n, "baseline"): lived for n in (1, 3)}
        wide = decided(ends).arms["wide"]
        assert (wide.reason, "(ServerCrashed)" in wide.lost) == ("Unreliable", True)

    @pytest.mark.parametrize(
        ("theirs", "excused"),
        [("RequestsFailed", True), ("TimedOut", True), ("ServerCrashed", True), ("NotMeasured", False)],
    )
    def test_they_are_excused_by_the_same_or_by_a_death_of_the_baselines(self, theirs: str, excused: bool) -> None:
        ends = {(n, "wide"): "RequestsFailed" for n in (1, 3)} | {(n, "baseline"): theirs for n in (1, 3)}
        assert (decided(ends).outcome is Outcome.PROMOTE) is excused

    @pytest.mark.parametrize("reason", ["ServerCrashed", "Retracted", "NotMeasured"])
    def test_a_round_that_the_baseline_alone_lost_is_told_as_it_was(self, reason: str, says: Says) -> None:
        lost = decided({(1, "baseline"): reason}).arms["wide"].lost
        assert f"({reason})" in lost
        says(lost)

    def test_of_several_workloads_the_worst_counts(self) -> None:
        """Its requests failed on the first, and on the second its server ended: no client did that."""
        first, second, *_ = WORKLOADS
        said = {("baseline", first): "RequestsFailed", ("wide", first): "RequestsFailed"}
        said |= {("wide", second): "ServerCrashed"}
        measurements = [
            replace(m, valid=False, ended=said.get((m.arm, m.workload), "")) if m.round in (1, 3) else m
            for m in measure(LATENCY, cv=STEADY, seed=1)
        ]
        wide = gate.decide(core.Gate(), list(LATENCY), EVEN, measurements).arms["wide"]
        assert "round 2 (ServerCrashed), round 4 (ServerCrashed)" in wide.message

    def test_in_every_round_nothing_tells_a_server_that_fails_from_one_that_is_asked_wrongly(self) -> None:
        verdict = decided({(n, "wide"): "RequestsFailed" for n in range(4)}, rounds=4)
        assert (verdict.outcome, verdict.arms["wide"].reason) == (Outcome.ERROR, "NoCompleteRound")


class TestRetractions:
    def with_retractions(self, counts: Mapping[int, int]) -> list[Measurement]:
        return [
            replace(m, metrics={"retractions": counts.get(m.round, 0) if m.arm == "wide" else 0})
            for m in measure(LATENCY, cv=STEADY, seed=1)
        ]

    def decided(self, counts: Mapping[int, int], most: int) -> core.ArmVerdict:
        rule = core.Gate(limits=(core.Limit(metric="retractions", max=most),))
        return gate.decide(rule, list(LATENCY), EVEN, self.with_retractions(counts)).arms["wide"]

    def test_as_many_as_are_allowed_do_no_harm(self) -> None:
        assert (self.decided({0: 2, 1: 2}, 2).outcome, self.decided({0: 2, 1: 2}, 2).lost) == ("promotable", "")

    def test_more_in_one_round_cost_that_round(self) -> None:
        wide = self.decided({0: 3}, 2)
        assert (wide.outcome, "(Retracted)" in wide.lost) == ("promotable", True)

    def test_in_two_rounds_they_cost_the_candidate(self) -> None:
        assert self.decided({0: 3, 2: 1}, 0).reason == "Unreliable"

    @pytest.mark.parametrize(
        ("ended", "counts_as"),
        [("RequestsFailed", "Retracted"), ("ServerCrashed", "ServerCrashed"), ("", "Retracted")],
    )
    def test_they_are_worse_than_requests_that_failed_and_no_death(self, ended: str, counts_as: str) -> None:
        """As the record of a round has it (`evidence/round_status.py`), which a file's own `ended` need not."""
        bounds = (core.Limit(metric="retractions", max=0),)
        failed = [replace(m, ended=ended) for m in self.with_retractions({0: 3}) if (m.round, m.arm) == (0, "wide")]
        assert {m.ended for m in enforce_maxima(failed, bounds)} == {counts_as}

    @pytest.mark.parametrize("said", [{}, {"retractions": float("nan")}])
    def test_where_nobody_counted_them_the_limit_is_not_kept(self, said: dict[str, float]) -> None:
        rule = core.Gate(limits=(core.Limit(metric="retractions", max=0),))
        uncounted = [replace(m, metrics=said) for m in self.with_retractions({})]
        wide = gate.decide(rule, list(LATENCY), EVEN, uncounted).arms["wide"]
        assert (wide.outcome, wide.reason) == ("undecided", "NotEnoughEvidence")
        assert "retractions on " in wide.message


@given(st.sets(st.tuples(st.integers(0, 8), st.sampled_from(["baseline", "wide"])), max_size=6))
def test_a_candidate_that_lost_two_rounds_by_itself_is_never_promoted_after_them(where: set[tuple[int, str]]) -> None:
    ends = dict.fromkeys(where, "ServerCrashed")
    own = sorted(n for n, arm in where if arm == "wide" and (n, "baseline") not in where)
    complete = [n for n in range(9) if (n, "wide") not in where and (n, "baseline") not in where]
    verdict = decided(ends)
    before = len([n for n in complete if len(own) < 2 or n < own[1]])
    assert (verdict.outcome is Outcome.PROMOTE) == (before >= 4)
