"""Which arm is best on which dataset: each is named only where it is shown, and a wrong one seldom."""

import pytest
from tests.gate.classes import WRONG, Row, line, measured, rows, written, wrong_of
from tests.gate.rates import DOCUMENT
from tests.support.campaigns import BASELINE_32, NARROW_32, WIDE_32, measure

from paceline import core, gate

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())
PUBLISHED = {"baseline": BASELINE_32, "narrow": NARROW_32, "wide": WIDE_32}
RULE = core.Gate(decide_after_rounds=core.default_looks(3))


def best(rounds: int) -> dict[str, str | None]:
    """Of the published table at 32 requests, if points vary by 0.5 %."""
    found = measure(PUBLISHED, cv=0.005, seed=1, rounds=rounds)
    return {
        one.dataset: one.best
        for one in gate.best_by_class(RULE, list(PUBLISHED), {name: {name: 1.0} for name in BASELINE_32}, found)
    }


def test_of_the_published_table_wide_is_best_on_two_datasets_and_narrow_on_one() -> None:
    """In tokens a second: code 1740, 1756, 1794; swe 2010, 1999, 2187; terminal 2311, 2380, 2057; chat 1529, 1689,
    2009."""
    assert best(9) == {"code": "wide", "swe": "wide", "terminal": "narrow", "chat": "wide"}


def test_nothing_is_said_before_the_first_look() -> None:
    assert best(2) == {}


def test_an_arm_that_never_ran_is_no_rival() -> None:
    found = [one for one in measure(PUBLISHED, cv=0.005, seed=1, rounds=9) if one.arm != "wide"]
    classes = gate.best_by_class(RULE, list(PUBLISHED), {"chat": {"chat": 1.0}, "swe": {"swe": 1.0}}, found)
    chat, swe = classes
    assert (chat.best, chat.rival) == ("narrow", "baseline")
    assert swe.best is None


def test_arms_that_were_never_in_the_same_round_are_not_compared_through_the_baseline() -> None:
    """A candidate that joined later: the first one had its verdict by then, and was not measured beside it."""
    loads = {"chat": {"chat": 1.0}, "swe": {"swe": 1.0}}
    found = [
        one
        for one in measure(PUBLISHED, cv=0.005, seed=1, rounds=8)
        if one.arm != ("wide" if one.round < 4 else "narrow")
    ]
    rule = core.Gate(decide_after_rounds=(4, 6, 8))
    assert gate.best_by_class(rule, list(PUBLISHED), loads, found) == ()


def test_several_concurrencies_of_a_dataset_are_one_class() -> None:
    truth = {"baseline": {"a@1": 100.0, "a@8": 500.0, "b@1": 100.0}, "tree": {"a@1": 130.0, "a@8": 520.0, "b@1": 90.0}}
    loads = {"a": {"a@1": 1.0, "a@8": 1.0}, "b": {"b@1": 1.0}}
    found = gate.best_by_class(core.Gate(), list(truth), loads, measure(truth, cv=0.005, seed=3, rounds=8))
    assert [(one.dataset, one.best) for one in found] == [("a", "tree"), ("b", "baseline")]
    assert found[0].bounds.ratio == pytest.approx((1.3 * 1.04) ** 0.5, rel=0.01)


@pytest.mark.parametrize("row", [row for row in ROWS if row.figure], ids=lambda row: f"{row.name}, {row.start:g}")
def test_a_figure_counted_anew_is_the_documents(row: Row) -> None:
    assert line(row, measured(row)) in WRITTEN


def test_the_document_has_every_row_and_in_each_the_promise_is_kept() -> None:
    told = [text.split(" | ")[:4] for text in WRITTEN]
    assert told == [line(row, measured(row, 2)).split(" | ")[:4] for row in ROWS]
    assert [text for text in WRITTEN if not WRONG.kept(wrong_of(text))] == []


def test_an_arm_that_lost_its_rounds_leaves_no_other_best() -> None:
    """The fastest was valid once: nobody has been shown to be faster than it."""
    truth = {"baseline": {"a": 160.0, "b": 160.0}, "wide": {"a": 210.0, "b": 210.0}, "fast": {"a": 260.0, "b": 260.0}}
    found = [
        one
        for one in measure(truth, cv=0.005, seed=1, rounds=4)
        if (one.arm, one.workload) != ("fast", "a") or not one.round
    ]
    loads = {"a": {"a": 1.0}, "b": {"b": 1.0}}
    classes = gate.best_by_class(core.Gate(decide_after_rounds=(4,)), list(truth), loads, found)
    assert [(one.dataset, one.best) for one in classes] == [("b", "fast")]
