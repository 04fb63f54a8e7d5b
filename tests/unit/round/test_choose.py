"""Which prompts a round sends."""

import dataclasses
import json
from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rounds import PLAN

from paceline.core import Dataset, Parity, Workload
from paceline.evidence.prompts import repeated
from paceline.pods import datasets
from paceline.pods.conversation import Conversation
from paceline.pods.round import choose, load


def asked(text: str, *more: str) -> Conversation:
    """A conversation of as many questions."""
    messages = [{"role": "user", "content": one} for one in (text, *more)]
    return Conversation(messages=tuple(messages), turns=tuple(range(1, len(messages) + 1)))


TEN = choose.shuffled([asked(f"prompt {number}") for number in range(10)])


def measured(ordered: Sequence[Conversation], round: int, requests: int, part: int | None = None) -> tuple[str, ...]:
    return tuple(chain.from_iterable(choose.measured_prompts(ordered, round, requests, part or requests)))


def prompts(conversations: Sequence[Conversation]) -> tuple[str, ...]:
    return tuple(one.body(turn) for one in conversations for turn in range(len(one.turns)))


def test_rounds_take_one_part_of_a_set_after_another_and_begin_again() -> None:
    rounds = [measured(TEN, number, 3) for number in range(5)]
    assert sum(rounds[:3], ()) == prompts(TEN[:9])
    assert rounds[3] == prompts([TEN[9], *TEN[:2]])
    assert rounds[4] == prompts(TEN[2:5])


def test_the_order_is_that_of_hashes_and_not_the_files() -> None:
    """A file may be sorted by topic, and a round is to be a sample of all of it. Known outside: sha256sum says it."""
    c, a, b = (asked(text) for text in "cab")
    assert a.body(0) == '{"messages": [{"role": "user", "content": "a"}]}'
    assert choose.shuffled([a, b, c]) == choose.shuffled([c, a, b]) == (c, a, b)  # 0c29…, aa1c…, d543…


def test_a_set_with_fewer_prompts_than_requests_is_sent_again_from_its_beginning() -> None:
    one, other = prompts(TEN[:2])
    assert measured(TEN[:2], 0, 5) == (one, other, one, other, one)
    assert measured(TEN[:2], 1, 5) == (other, one, other, one, other)


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.integers(1, 9), st.integers(0, 5))
def test_rounds_of_conversations_begin_with_whole_ones_and_share_none_that_the_set_can_spare(
    lengths: list[int], requests: int, rounds: int
) -> None:
    """In the bounds of `repeated`, which says when prompts come again."""
    ordered = [asked(*(f"{number} {turn}" for turn in range(length))) for number, length in enumerate(lengths)]
    data = Dataset(name="code", source="pvc://a/b", requests=requests, max_tokens=8, turns=max(lengths))
    seen: list[str] = []
    for number in range(rounds):
        found = choose.measured_prompts(ordered, number, requests, data.stride)
        assert sum(map(len, found)) == requests
        assert all(len(json.loads(turns[0])["messages"]) == 1 for turns in found)
        whole = {one.body(0): len(one.turns) for one in ordered}
        assert all(len(turns) == whole[turns[0]] for turns in found[:-1])
        seen += chain.from_iterable(found)
        if not repeated(Workload(dataset=data, concurrency=1), number, sum(lengths)):
            assert len(set(seen)) == len(seen)


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
        mine = frozenset(measured(TEN, number, requests))
        found = choose.warm_up(TEN, mine, places)
        assert (len(found), len(set(found))) == (places, different)
        assert len({*found} & mine) == own


def test_a_warm_up_uses_prompts_that_no_round_measures() -> None:
    """Three rounds of three leave one."""
    rounds = [measured(TEN, number, 3) for number in range(3)]
    for mine in rounds:
        assert not {*choose.warm_up(TEN, mine, 1)} & {*sum(rounds, ())}


def test_rounds_of_different_requests_share_no_prompt_while_the_set_has_others() -> None:
    """Each sends the beginning of its part, and parts are as long as the first round."""
    sent = [measured(TEN, 0, 5), measured(TEN, 1, 2, 5), measured(TEN, 2, 3, 5)]
    assert sent[1] == measured(TEN, 1, 5)[:2]
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
