"""Who comes first in a round: each arm equally often, whatever is lost and whoever drops out."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.in_status import records as in_status

from paceline import core
from paceline.plan.run.steps.measure import came_first, rotated

ARMS = tuple(core.Arm(name=name) for name in ("baseline", "narrow", "wide", "deep"))


def firsts(
    arms: int, rounds: int, lost: Sequence[int] = (), without: dict[str, int] | None = None
) -> list[tuple[str, bool]]:
    """With whom each round began and whether it counts; `without`: candidate → the first round that is without it."""
    found: list[tuple[str, bool]] = []
    for number in range(rounds):
        left = [arm.name for arm in ARMS[1:arms] if number < (without or {}).get(arm.name, rounds)]
        (first, *_) = rotated(ARMS[:arms], ("baseline", *left), [name for name, counts in found if counts])
        found.append((first.name, number not in lost))
    return found


def times(found: Sequence[tuple[str, bool]]) -> Counter[str]:
    return Counter(name for name, counts in found if counts)


@pytest.mark.parametrize("arms", [2, 3, 4])
def test_after_every_look_that_there_is_by_default_each_was_first_equally_often(arms: int) -> None:
    for look in core.default_looks(arms):
        assert set(times(firsts(arms, look)).values()) == {look // arms}


def test_the_baseline_begins_and_the_others_follow_in_their_order() -> None:
    assert [name for name, _ in firsts(3, 6)] == ["baseline", "narrow", "wide"] * 2


@pytest.mark.parametrize("lost", [(0,), (1,), (1, 2), (0, 3)])
def test_a_lost_round_is_made_up_for(lost: tuple[int, ...]) -> None:
    """Four rounds that count are two of each, whichever were lost."""
    found = firsts(2, 4 + len(lost), lost)
    assert set(times(found).values()) == {2}


def test_turns_go_on_when_a_candidate_drops_out() -> None:
    found = firsts(3, 9, without={"wide": 3})
    assert times(found[3:]) == {"baseline": 3, "narrow": 3}


def test_whoever_has_not_been_first_is_next_though_another_one_drops_out() -> None:
    assert times(firsts(3, 3, without={"narrow": 2})) == {"baseline": 1, "narrow": 1, "wide": 1}


def record(first: str, *invalid: str) -> dict[str, Any]:
    arms = ["baseline", "narrow", "wide"]
    return {
        "replicates": [{"arm": first}],
        "points": [{"arm": arm, "valid": arm not in invalid} for arm in arms for _ in range(2)],
    }


def test_a_round_counts_for_whoever_began_it_if_it_was_compared() -> None:
    records = [
        record("baseline"),
        record("narrow", "narrow"),
        record("wide", "narrow"),
        record("wide", "baseline"),
        record("baseline", "narrow", "wide"),
    ]
    assert came_first(in_status(records)) == ["baseline", "wide"]
