"""Of what an interval is."""

import dataclasses

from tests.support.messages import Says

from paceline.core import Dataset, Workload
from paceline.evidence import of_these_prompts
from paceline.evidence.prompts import repeated_note

CODE, SWE, MINE = (
    Workload(dataset=Dataset(name=name, source=f"builtin://{name}", requests=160, max_tokens=8), concurrency=32)
    for name in ("code", "swe", "mine")
)
ONE = dataclasses.replace(CODE, dataset=dataclasses.replace(CODE.dataset, requests=64), concurrency=1)
SIZES = {"code": 512, "swe": 512, "mine": 400}


def test_a_set_is_enough_for_as_many_rounds_as_it_holds(says: Says) -> None:
    """512 are three rounds of 160 and eight of 64."""
    assert repeated_note((CODE, ONE), 2, SIZES) == []
    says(*repeated_note((CODE, ONE), 7, SIZES))
    assert repeated_note((ONE,), 8, SIZES) != []


def test_a_round_of_fewer_requests_takes_the_beginning_of_its_part() -> None:
    fewer = dataclasses.replace(ONE, dataset=dataclasses.replace(ONE.dataset, requests=16, part=64))
    assert repeated_note((fewer,), 7, {"code": 464}) == []
    assert repeated_note((fewer,), 7, {"code": 463}) != []


def test_one_that_is_too_small_for_a_round_repeats_in_the_first() -> None:
    assert repeated_note((CODE,), 0, {"code": 159}) != []
    assert repeated_note((CODE,), 0, {"code": 160}) == []


def test_a_verdict_names_every_set_that_was_too_small_and_how_many_prompts_it_has(says: Says) -> None:
    rounds = [(number, SIZES) for number in range(4)]
    assert of_these_prompts(((CODE, SWE, MINE, ONE), *one) for one in rounds[:2]) == ""
    says(of_these_prompts(((CODE, SWE, MINE, ONE), *one) for one in rounds))


def test_of_a_round_that_does_not_say_how_many_there_were_nothing_is_said() -> None:
    assert of_these_prompts([((CODE,), 7, {})]) == ""
    assert repeated_note((CODE,), 7, {}) == []
