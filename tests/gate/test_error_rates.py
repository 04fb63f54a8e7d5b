"""How often the gate errs, counted on seeded campaigns: the promises of docs/gate.md within their binomial error."""

import math

from tests.gate.campaigns import THROUGHPUT, THROUGHPUT_GATE, WORKLOADS, Truth, against, verdicts

from paceline import core
from paceline.core import Outcome

CAMPAIGNS = 4000


def at_most(bound: float) -> float:
    """The largest count that a rate equal to the bound would show in all but one of a thousand repetitions."""
    return CAMPAIGNS * bound + 3.1 * math.sqrt(CAMPAIGNS * bound * (1 - bound))


def count(rule: core.Gate, truth: Truth, outcome: Outcome, *, cv: float, tail: bool = False) -> int:
    return sum(v.outcome is outcome for v in verdicts(rule, truth, cv=cv, seeds=range(CAMPAIGNS), tail=tail))


def test_a_candidate_exactly_at_the_minimum_is_promoted_at_most_one_time_in_twenty() -> None:
    truth = against(dict.fromkeys(WORKLOADS, 1.05))
    assert count(core.Gate(), truth, Outcome.PROMOTE, cv=0.01) <= at_most(0.05)
    assert count(core.Gate(), truth, Outcome.PROMOTE, cv=0.025, tail=True) <= at_most(0.05)


def test_three_candidates_at_the_minimum_do_no_better() -> None:
    truth = {name: dict.fromkeys(WORKLOADS, x) for name, x in {"baseline": 100, "a": 105, "b": 105, "c": 105}.items()}
    assert count(core.Gate(), truth, Outcome.PROMOTE, cv=0.01) <= at_most(0.05)


def test_equal_arms_are_rejected_and_never_promoted() -> None:
    truth = against(dict.fromkeys(WORKLOADS, 1.0))
    assert count(core.Gate(), truth, Outcome.PROMOTE, cv=0.025) == 0
    assert count(core.Gate(), truth, Outcome.REJECT, cv=0.025) >= 0.95 * CAMPAIGNS


def test_the_demo_ends_as_it_should_at_the_noise_it_promises() -> None:
    """`throughput` at 0.7 %: narrow in all but a few of a thousand demos, and wide never."""
    found = list(verdicts(THROUGHPUT_GATE, THROUGHPUT, cv=0.007, seeds=range(CAMPAIGNS)))
    expected = [v.winner == "narrow" and v.arms["wide"].reason == "WorkloadRegressed" for v in found]
    assert sum(expected) >= 0.995 * CAMPAIGNS
    assert {v.winner for v in found} <= {"narrow", None}
