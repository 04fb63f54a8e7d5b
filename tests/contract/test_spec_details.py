"""What an answer of SGLang tells of its drafts: the emulator's has its fields, and Paceline reads them."""

import pytest

from paceline.engines import ENGINES
from paceline.pods.round.positions import by_position
from paceline_emulator import prompts
from paceline_emulator.dialects import Asked, chat_closing, chat_whole
from paceline_emulator.engine import Request
from paceline_emulator.positions import histogram
from paceline_emulator.server import Job

DETAILS = {
    "spec_accept_rate", "spec_accept_length", "spec_cap_length", "spec_block_accept_length", "spec_num_correct_drafts",
    "spec_num_proposed_drafts", "spec_verify_ct", "spec_correct_drafts_histogram", "spec_cap_lens_histogram",
}  # fmt: skip
"""Of `SpecTokensDetails` in SGLang 0.5.23's srt/entrypoints/openai/protocol.py:456."""


def answered(verify_calls: int, accepted: int) -> Job:
    request = Request(
        id="1", dataset="code", prompt_tokens=9, cached_tokens=0, length=96, finish="length", deliver=lambda *_: None,
        produced=96, verify_calls=verify_calls, accepted=accepted, proposed=7 * verify_calls,
    )  # fmt: skip
    return Job(request=request, prompt=prompts.prompt("", "", {}), streaming=False, arrived=0.0, began_at=0.0)


def asking(positions: int) -> Asked:
    return Asked(
        prompt=prompts.prompt("", "", {}), limit=96, ignore_eos=False, streaming=False, usage=True, model="pair",
        spec_details=positions,
    )  # fmt: skip


def test_an_answer_that_is_asked_has_the_wheels_fields_and_paceline_reads_its_histogram() -> None:
    answer = chat_whole(asking(3), answered(verify_calls=40, accepted=95))
    details = answer["sglext"]["spec_tokens_details"]
    assert set(details) == DETAILS
    probe = ENGINES["SGLang"].probe("0.5.23")
    assert probe.histogram
    found = probe.histogram.read(answer)
    assert sum(found) == 40
    assert 1 + sum(by_position([found])) == pytest.approx(95 / 40)


def test_in_a_stream_it_comes_before_the_usage() -> None:
    events = chat_closing(asking(3), answered(verify_calls=40, accepted=95)).decode().split("\n\n")
    assert ["sglext" in event for event in events] == [False, True, False, False, False]
    assert "usage" in events[2]


def test_it_is_not_told_unasked_nor_of_a_server_that_does_not_draft() -> None:
    assert "sglext" not in chat_whole(asking(0), answered(verify_calls=40, accepted=95))
    assert "sglext" not in chat_whole(asking(3), answered(verify_calls=0, accepted=0))


@pytest.mark.parametrize(("accepted", "calls", "counts"), [(0, 5, [5]), (15, 5, [0, 0, 0, 5]), (0, 0, [])])
def test_a_histogram_ends_with_the_longest_that_was_accepted(accepted: int, calls: int, counts: list[int]) -> None:
    assert histogram(accepted, calls, 3) == counts


def test_a_histogram_adds_up() -> None:
    for accepted in range(31):
        counts = histogram(accepted, 10, 3)
        assert (sum(counts), sum(n * count for n, count in enumerate(counts))) == (10, accepted)


@pytest.mark.parametrize(
    ("histograms", "shares"),
    [
        ([(5, 3, 2), (5, 4, 0, 1)], (0.5, 0.15, 0.05)),
        ([(4,)], ()),
        ([(), ()], ()),
        ([], ()),
        ([(0, 0, 8)], (1.0, 1.0)),
    ],
)
def test_acceptance_by_position_is_of_all_answers_together(
    histograms: list[tuple[int, ...]], shares: tuple[float, ...]
) -> None:
    assert by_position(histograms) == pytest.approx(shares)
