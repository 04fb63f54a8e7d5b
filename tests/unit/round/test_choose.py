"""Which prompts a round sends."""

import dataclasses

import pytest
from tests.support.rounds import PLAN

from paceline.core import Dataset, Parity, Workload
from paceline.pods import datasets
from paceline.pods.round import choose, load

TEN = tuple(f"prompt {number}" for number in range(10))


def test_rounds_take_one_part_of_a_set_after_another_and_begin_again() -> None:
    rounds = [choose.measured_prompts(TEN, number, 3) for number in range(5)]
    assert sorted(sum(rounds[:3], ())) == sorted({*rounds[0], *rounds[1], *rounds[2]})
    assert len({*rounds[0], *rounds[1], *rounds[2]}) == 9
    assert {*rounds[3]} - {*rounds[0], *rounds[1], *rounds[2]} == {choose.shuffled(TEN)[9]}
    assert rounds[3][1:] == choose.shuffled(TEN)[:2]
    assert rounds[4] == choose.shuffled(TEN)[2:5]


def test_the_order_is_that_of_hashes_and_not_the_files() -> None:
    """A file may be sorted by topic, and a round is to be a sample of all of it. Known outside: sha256sum says it."""
    assert choose.shuffled(("a", "b", "c")) == ("c", "b", "a")  # 2e7d…, 3e23…, ca97…
    assert choose.shuffled(("c", "a", "b")) == ("c", "b", "a")


def test_a_set_with_fewer_prompts_than_requests_is_sent_again_from_its_beginning() -> None:
    one, other = choose.shuffled(TEN[:2])
    assert choose.measured_prompts(TEN[:2], 0, 5) == (one, other, one, other, one)
    assert choose.measured_prompts(TEN[:2], 1, 5) == (other, one, other, one, other)


@pytest.mark.parametrize(
    ("requests", "places", "different", "own"),
    [
        (3, 7, 7, 0),  # ten less three are enough
        (6, 7, 7, 3),  # four others, and three of the round's own
        (6, 12, 10, 6),  # all there are, and two of them twice
    ],
)
def test_a_window_sends_as_many_different_prompts_as_there_are(
    requests: int, places: int, different: int, own: int
) -> None:
    for number in range(4):
        measured = choose.measured_prompts(TEN, number, requests)
        found = choose.warm_up(TEN, measured, places)
        assert (len(found), len(set(found))) == (places, different)
        assert len({*found} & {*measured}) == own


def test_a_warm_up_uses_prompts_that_no_round_measures() -> None:
    """Three rounds of three leave one."""
    rounds = [choose.measured_prompts(TEN, number, 3) for number in range(3)]
    for measured in rounds:
        assert not {*choose.warm_up(TEN, measured, 1)} & {*sum(rounds, ())}


def test_rounds_of_different_requests_share_no_prompt_while_the_set_has_others() -> None:
    """Each sends the beginning of its part, and parts are as long as the first round."""
    sent = [
        choose.measured_prompts(TEN, 0, 5, None),
        choose.measured_prompts(TEN, 1, 2, 5),
        choose.measured_prompts(TEN, 2, 3, 5),
    ]
    assert sent[1] == choose.measured_prompts(TEN, 1, 5)[:2]
    assert not {*sent[0]} & {*sent[1]}
    assert sent[2] == sent[0][:3], "ten prompts are two parts of five"


def sent(round: int, attempt: int = 0, concurrency: int = 32) -> tuple[str, ...]:
    code = Workload(
        dataset=Dataset(name="code", source="builtin://code", requests=160, max_tokens=8), concurrency=concurrency
    )
    return load.prompts_of_load(dataclasses.replace(PLAN, round=round, try_=attempt, workloads=(code,)), code)


def test_a_round_is_sent_others_than_the_one_before_and_each_of_its_tries_the_same() -> None:
    assert not {*sent(0)} & {*sent(1)}
    assert sent(1, attempt=2) == sent(1)
    assert len({*sent(0), *sent(1), *sent(2)}) == 480
    assert {*sent(0)} & {*sent(3)}, "512 prompts are three rounds of 160, and a part of a fourth"


def test_parity_asks_the_first_prompts_of_the_file_in_every_round() -> None:
    for number in (0, 3):
        plan = dataclasses.replace(PLAN, round=number, parity=Parity(samples=4))
        questions = [load.parity_question(plan, PLAN.arms[0], prompt) for prompt in range(4)]
        asked = [question["messages"][0]["content"] for question in questions]
        assert asked == list(datasets.load_dataset(PLAN.workloads[0].dataset.source.removeprefix("builtin://"))[:4])


def test_more_prompts_than_there_are_to_compare_are_asked_only_if_nobody_named_their_number() -> None:
    asked = dataclasses.replace(PLAN, parity=dataclasses.replace(Parity(samples=1), samples=513))
    assert load.with_prompts_to_compare(asked).parity == dataclasses.replace(Parity(samples=1), samples=512)
    with pytest.raises(load.DatasetError, match="512 usable prompts, but 513"):
        load.with_prompts_to_compare(dataclasses.replace(asked, parity_required=True))
