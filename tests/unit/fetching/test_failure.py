"""A prefetch's failure → the termination message → the failure."""

import pytest

from paceline.fetching import FetchFailure

FAILURE = FetchFailure(sentence="hf://a/head: no revision v9", source="hf://a/head", part="revision")


def test_a_failure_survives_its_message() -> None:
    assert FetchFailure.from_message(FAILURE.to_message()) == FAILURE
    assert FAILURE.to_message().endswith(f"\n{FAILURE.sentence}"), "kubectl shows the sentence"


@pytest.mark.parametrize(
    "text",
    [
        "hf://a/head: no revision v9",
        "",
        "Traceback\nKeyError: 'source'",
        "[1]\nnot ours",
        '{"source": "x"}\nnot ours',
        "[" * 9999,
    ],
)
def test_any_other_message_is_a_sentence(text: str) -> None:
    """Of an older release, or of a container that was killed."""
    assert FetchFailure.from_message(text) == FetchFailure(sentence=text)


@pytest.mark.parametrize("facts", ['{"source": 1, "part": "source"}', '{"source": "hf://a/b", "part": []}'])
def test_facts_that_are_not_ours_are_dropped(facts: str) -> None:
    assert FetchFailure.from_message(f"{facts}\nwhy") == FetchFailure(sentence="why")
