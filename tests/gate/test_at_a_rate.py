"""Workloads at a rate: a mean of their own, none for one whose rate the baseline does not keep, and the time to the
first token bounded where nobody says by how much."""

import random
from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest
from tests.support.campaigns import against, measure
from tests.support.messages import Says

from paceline import core, gate
from paceline.core import ArmOutcome, Limit, Outcome
from paceline.gate import rates, rounds

CLOSED, RATED = ("code@1", "chat@1"), ("code@8/s", "chat@8/s")
EVERY = dict.fromkeys((*CLOSED, *RATED), 1.0)


def decided(
    speed_ups: Mapping[str, float],
    *,
    limits: tuple[Limit, ...] = (),
    ttft: float = 1.0,
    saturated: Collection[tuple[str, int]] = (),
    behind: Collection[tuple[str, int]] = (),
    behind_in: Collection[int] = (),
    baseline_in: Collection[int] = (),
    looks: tuple[int, ...] = (4, 6, 8),
) -> core.Verdict:
    """`ttft`: the candidate's mean over the baseline's; `saturated`: workload and in how many rounds the baseline did
    not keep its rate, `behind`: the candidate; `behind_in` and `baseline_in`: in which rounds, of all rates."""
    times = {"baseline": dict(saturated), "candidate": dict(behind)}
    also = {"baseline": baseline_in, "candidate": behind_in}
    measurements = [
        replace(
            m,
            metrics={"meanTTFT": 0.2 * (ttft if m.arm == "candidate" else 1.0)},
            saturated=m.round < times[m.arm].get(m.workload, 0) or (m.workload in RATED and m.round in also[m.arm]),
        )
        for m in measure(against(speed_ups), cv=0.003, seed=1)
    ]
    weights = {w: EVERY[w] for w in speed_ups}
    rated = [w for w in speed_ups if w in RATED]
    rule = core.Gate(limits=limits, decide_after_rounds=looks)
    return gate.decide(rule, ["baseline", "candidate"], weights, measurements, rated=rated)


def of(closed: float, rated: float) -> dict[str, float]:
    return dict.fromkeys(CLOSED, closed) | dict.fromkeys(RATED, rated)


def test_closed_loops_and_rates_have_a_mean_each(says: Says) -> None:
    arm = decided(of(1.2, 1.8)).arms["candidate"]
    assert arm.outcome is ArmOutcome.PROMOTABLE
    assert arm.mean is not None
    assert arm.rated is not None
    assert (arm.mean.ratio, arm.rated.ratio) == pytest.approx((1.2, 1.8), rel=0.01)
    says(arm.message)


@pytest.mark.parametrize(("closed", "rated"), [(1.0, 1.6), (1.3, 1.0)])
def test_neither_pays_for_the_other(closed: float, rated: float, says: Says) -> None:
    """Averaged, both would be 1.14x and more."""
    verdict = decided(of(closed, rated))
    assert (verdict.outcome, verdict.arms["candidate"].reason) == (Outcome.REJECT, "BelowMinimumImprovement")
    says(verdict.arms["candidate"].message)


def test_alone_they_have_the_one_mean() -> None:
    arm = decided(dict.fromkeys(RATED, 1.4)).arms["candidate"]
    assert (arm.outcome, arm.rated) == (ArmOutcome.PROMOTABLE, None)
    assert arm.message.startswith("mean 1.397x (")


def test_a_rate_that_the_baseline_does_not_keep_is_in_no_mean(says: Says) -> None:
    """Three times as fast, depending on how long one measures."""
    arm = decided({"code@8/s": 1.2, "chat@8/s": 3.0}, saturated=[("chat@8/s", 4)]).arms["candidate"]
    assert arm.outcome is ArmOutcome.PROMOTABLE
    assert arm.mean is not None
    assert arm.mean.ratio == pytest.approx(1.2, rel=0.01)
    assert "chat@8/s" in arm.message
    says(arm.message)


def test_it_still_may_not_be_slower_there() -> None:
    arm = decided({"code@8/s": 1.2, "chat@8/s": 0.8}, saturated=[("chat@8/s", 9)]).arms["candidate"]
    assert arm.reason == "WorkloadRegressed"


def test_once_may_be_chance() -> None:
    arm = decided(dict.fromkeys(RATED, 1.4), saturated=[("chat@8/s", 1)]).arms["candidate"]
    assert arm.outcome is ArmOutcome.PROMOTABLE
    assert "chat@8/s" not in arm.message


def test_where_no_rate_is_kept_nothing_is_decided_and_nothing_measured_again() -> None:
    verdict = decided(dict.fromkeys(RATED, 2.0), saturated=[(w, 9) for w in RATED])
    arm = verdict.arms["candidate"]
    assert (verdict.outcome, verdict.final, gate.undecided(verdict)) == (Outcome.INCONCLUSIVE, True, ())
    assert arm.reason == "Saturated"
    assert arm.message.endswith("lower requestRate")


@pytest.mark.parametrize(("times", "left_out"), [(1, False), (2, True), (3, True)])
def test_a_workload_is_left_out_from_half_of_the_rounds_on(times: int, left_out: bool) -> None:
    """At the look after four: the document says "missed in half of the rounds"."""
    verdict = decided(dict.fromkeys(RATED, 1.4), saturated=[("chat@8/s", times)], looks=(4,))
    assert (f"in {times} of 4 rounds" in verdict.arms["candidate"].message) == left_out


def test_a_candidate_that_does_not_keep_a_rate_which_the_baseline_keeps_is_out_for_that(says: Says) -> None:
    """However fast its requests were as long as it kept up, and however soon their first tokens came."""
    verdict = decided({"code@8/s": 1.4, "chat@8/s": 1.4}, behind=[("chat@8/s", 6)])
    arm = verdict.arms["candidate"]
    assert (verdict.outcome, arm.outcome, arm.reason) == (Outcome.REJECT, ArmOutcome.REJECTED, "RateNotKept")
    says(arm.message)


@pytest.mark.parametrize(
    ("times", "theirs", "error", "shown"),
    [
        (6, 0, 0.05 / 3, True),  # one candidate: 1.56 % of 1.67 %
        (5, 0, 0.05 / 3, False),
        (8, 1, 0.05 / 3, False),  # 1.95 %
        (7, 0, 0.05 / 6, True),  # two candidates
        (6, 0, 0.05 / 6, False),
        (7, 5, 0.05, False),
        (4, 4, 0.05, False),
    ],
)
def test_so_often_alone_against_the_baseline_alone(times: int, theirs: int, error: float, shown: bool) -> None:
    """A sign test: what is said of 0.5 ** 6 = 1.56 % is worked out by hand."""
    saturated = {
        "candidate": [True] * times + [False] * theirs + [True, False],
        "baseline": [False] * times + [True] * theirs + [True, False],
    }
    table = rounds.rounds_table("baseline", {"chat@8/s": 1.0}, [
        core.Measurement(round=n, arm=arm, workload="chat@8/s", output_throughput=1, saturated=said)
        for arm, of_arm in saturated.items() for n, said in enumerate(of_arm)
    ])  # fmt: skip
    found = rates.rate_misses(table, "candidate", range(times + theirs + 2), error)["chat@8/s"]
    assert (found.candidate_only, found.baseline_only, found.shown) == (times, theirs, shown)


@pytest.mark.parametrize(("mine", "theirs"), [((0, 1, 2, 3), (4, 5, 6)), ((0, 2, 4, 6), (1, 3, 5)), ((0, 1), (2,))])
def test_where_the_baseline_alone_falls_behind_as_often_nothing_is_held_against_the_candidate(
    mine: tuple[int, ...], theirs: tuple[int, ...]
) -> None:
    """Equal arms, each hit by turns of chance."""
    truth = dict.fromkeys(RATED, 1.4)
    assert decided(truth, behind_in=mine, baseline_in=theirs, looks=(8,)).outcome is Outcome.PROMOTE


def test_one_that_falls_behind_oftener_by_half_of_the_rounds_is_held_back_and_told_what_may_help(says: Says) -> None:
    truth = dict.fromkeys(RATED, 1.4)
    arm = decided(truth, behind_in=range(5), baseline_in=(7,), looks=(8,)).arms["candidate"]
    assert arm.outcome is ArmOutcome.UNDECIDED
    says(arm.message)


@pytest.mark.parametrize(
    ("times", "outcome"), [(1, "promotable"), (2, "undecided"), (3, "undecided"), (4, "undecided")]
)
def test_until_that_is_shown_it_has_to_keep_it_in_more_than_half_of_the_rounds(times: int, outcome: str) -> None:
    """At the look after four, which is the first."""
    truth = dict.fromkeys(RATED, 1.4)
    arm = decided(truth, behind=[("chat@8/s", times)], looks=(4,)).arms["candidate"]
    assert arm.outcome == outcome
    assert (f"in {times} of 4 rounds" in arm.message) == (outcome == "undecided")


def test_where_neither_keeps_it_neither_is_blamed() -> None:
    truth = {"code@8/s": 1.2, "chat@8/s": 3.0}
    arm = decided(truth, saturated=[("chat@8/s", 4)], behind=[("chat@8/s", 4)]).arms["candidate"]
    assert arm.outcome is ArmOutcome.PROMOTABLE


@pytest.mark.parametrize("together", [0.5, 0.0], ids=["each by itself", "one or the other"])
def test_an_arm_at_the_edge_of_a_rate_is_seldom_out_for_chance(together: float) -> None:
    """Two equal arms, behind as often as not, in `together` of the rounds as the other or by turns: no oftener than a
    bound may fail."""
    dice, wrong = random.Random(1), 0
    for _ in range(4000):
        first = [dice.random() < 0.5 for _ in range(8)]
        other = [one == (dice.random() < together) for one in first]
        table = rounds.rounds_table("baseline", {"chat@8/s": 1.0}, [
            core.Measurement(round=n, arm=arm, workload="chat@8/s", output_throughput=1, saturated=of_arm[n])
            for n in range(8) for arm, of_arm in (("baseline", first), ("candidate", other))
        ])  # fmt: skip
        shown = [rates.rate_misses(table, "candidate", range(n), 0.05 / 3) for n in (4, 6, 8)]
        wrong += any(one.shown for found in shown for one in found.values())
    assert 0 < wrong / 4000 <= 0.05


@pytest.mark.parametrize(("ttft", "outcome"), [(1.2, "promotable"), (1.3, "rejected")])
def test_the_first_token_may_come_a_quarter_later_where_nobody_says(ttft: float, outcome: str) -> None:
    assert decided(of(1.2, 1.8), ttft=ttft).arms["candidate"].outcome == outcome


def test_in_closed_loops_nothing_bounds_it_where_nobody_says() -> None:
    assert decided(dict.fromkeys(CLOSED, 1.2), ttft=2.0).outcome is Outcome.PROMOTE


def test_it_is_not_bounded_on_the_closed_loops_of_the_same_run() -> None:
    found = decided(of(1.2, 1.8)).arms["candidate"].limits["meanTTFT"]
    assert set(found) == set(RATED)


@pytest.mark.parametrize("metric", ["meanTTFT", "p95TTFT"])
def test_who_names_it_decides(metric: str) -> None:
    wide = (Limit(metric=metric, max_increase=9.0),)
    arm = decided(of(1.2, 1.8), ttft=1.5, limits=wide).arms["candidate"]
    assert set(arm.limits) == {metric}
    assert arm.reason != "LimitExceeded"


class TestEnergy:
    """`energyPerToken` is bounded like a latency where a limit names it: faster at too many joules is rejected."""

    rule = core.Gate(limits=(Limit(metric="energyPerToken", max_increase=0.1),))

    def decided(self, joules: float | None, rule: core.Gate = rule) -> core.ArmVerdict:
        used = {"baseline": 2.0, "candidate": joules}
        measurements = [
            replace(m, metrics={} if (found := used[m.arm]) is None else {"energyPerToken": found})
            for m in measure(against(dict.fromkeys(CLOSED, 1.3)), cv=0.003, seed=1)
        ]
        weights = dict.fromkeys(CLOSED, 1.0)
        return gate.decide(rule, ["baseline", "candidate"], weights, measurements).arms["candidate"]

    def test_as_much_as_the_baseline_is_let_pass(self) -> None:
        assert self.decided(2.1).outcome is ArmOutcome.PROMOTABLE

    def test_faster_at_more_than_is_allowed_is_rejected(self, says: Says) -> None:
        arm = self.decided(2.6)
        assert (arm.outcome, arm.reason) == (ArmOutcome.REJECTED, "LimitExceeded")
        says(arm.message)

    def test_where_it_is_unknown_it_is_not_shown(self, says: Says) -> None:
        arm = self.decided(None)
        assert arm.outcome is ArmOutcome.UNDECIDED
        says(arm.message)

    def test_nobody_asks_for_it_who_does_not_name_it(self) -> None:
        assert self.decided(9.0, core.Gate()).outcome is ArmOutcome.PROMOTABLE


class TestCapacity:
    """`kvTokens` may fall by at most a fraction; it is the server's, whatever that is measured on."""

    rule = core.Gate(limits=(Limit(metric="kvTokens", max_decrease=0.2),))

    def decided(self, tokens: int | None) -> core.ArmVerdict:
        held = {"baseline": 800_000, "candidate": tokens}
        measurements = [
            replace(m, metrics={} if (found := held[m.arm]) is None else {"kvTokens": float(found)})
            for m in measure(against(dict.fromkeys(CLOSED, 1.3)), cv=0.003, seed=1)
        ]
        weights = dict.fromkeys(CLOSED, 1.0)
        return gate.decide(self.rule, ["baseline", "candidate"], weights, measurements).arms["candidate"]

    def test_a_little_less_is_let_pass(self) -> None:
        assert self.decided(700_000).outcome is ArmOutcome.PROMOTABLE

    def test_much_less_is_not_however_fast_it_is(self) -> None:
        arm = self.decided(480_000)
        assert (arm.outcome, arm.reason) == (ArmOutcome.REJECTED, "LimitExceeded")
        assert arm.message.startswith("kvTokens 0.600x")

    def test_where_it_is_not_known_it_is_not_shown(self, says: Says) -> None:
        arm = self.decided(None)
        assert arm.outcome is ArmOutcome.UNDECIDED
        says(arm.message)

    def recorded(self, on: Mapping[str, float | None]) -> core.ArmVerdict:
        """Of the candidate, by workload; the baseline holds 800000 everywhere."""
        held = {"baseline": dict.fromkeys(CLOSED, 800_000.0), "candidate": on}
        measurements = [
            replace(m, metrics={} if (found := held[m.arm].get(m.workload)) is None else {"kvTokens": found})
            for m in measure(against(dict.fromkeys(CLOSED, 1.3)), cv=0.003, seed=1)
        ]
        weights = dict.fromkeys(CLOSED, 1.0)
        return gate.decide(self.rule, ["baseline", "candidate"], weights, measurements).arms["candidate"]

    @pytest.mark.parametrize("workload", CLOSED)
    def test_the_least_of_a_round_is_held_to_the_limit_wherever_it_was_recorded(self, workload: str) -> None:
        arm = self.recorded(dict.fromkeys(CLOSED, 800_000.0) | {workload: 480_000.0})
        assert (arm.reason, arm.message.partition(" (")[0]) == ("LimitExceeded", "kvTokens 0.600x")

    @pytest.mark.parametrize("workload", CLOSED)
    def test_recorded_on_one_workload_alone_it_is_known(self, workload: str) -> None:
        assert self.recorded({workload: 700_000.0}).outcome is ArmOutcome.PROMOTABLE
