"""Two answers to one prompt: whether they are alike, and where and how far one leaves the other."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support.messages import Says

from paceline.core import Parity
from paceline.core.outputs import NEAR_TIE
from paceline.evidence import Outputs
from paceline.pods.round.parity import (
    Answer,
    Divergence,
    Incomparable,
    Token,
    TokenChoice,
    compare,
    divergence,
    parity_outputs,
    read_answer,
    request_body,
)

ENDS = frozenset({b"<|im_end|>"})
PARITY = Parity(samples=2, max_tokens=16)
Others = dict[str | bytes, float]
"""Alternative → by how many nats the chosen token was likelier."""


def choice(said: str | bytes, gap: float = 0.0) -> TokenChoice:
    """Of bytes that are no text by themselves a server shows what its tokenizer makes of them."""
    piece = said if isinstance(said, bytes) else said.encode()
    return TokenChoice(text=piece.decode(errors="replace"), bytes=piece, logprob=-0.5 - gap)


def token(said: str | bytes, **others: float) -> Token:
    return with_others(said, {**others})


def with_others(said: str | bytes, others: Others) -> Token:
    alternatives = tuple(choice(other, gap) for other, gap in others.items())
    return Token(chosen=choice(said), others=(choice(said), *alternatives))


def baseline(*tokens: tuple[str | bytes, Others], cut: bool = False) -> Answer:
    """Its text is what its tokens spell, but for the one that ends it."""
    made = tuple(with_others(said, others) for said, others in tokens)
    spelt = b"".join(one.chosen.bytes or b"" for one in made if one.chosen.bytes not in ENDS)
    return Answer(text=spelt.decode(errors="replace"), cut=cut, tokens=made)


def candidate(text: str, *, cut: bool = False) -> Answer:
    return Answer(text=text, cut=cut)


DOG: tuple[tuple[str | bytes, Others], ...] = (
    ("The", {"A": 1.5}),
    (" dog", {" cat": 0.1, " d": 3.0, "\n": 4.0}),
    (" is", {" was": 2.0}),
    ("<|im_end|>", {"!": 0.2, ".": 1.2}),
)
ACCENT: tuple[tuple[str | bytes, Others], ...] = (
    ("caf", {}),
    (b"\xc3", {b"\xc2": 1.0}),
    (b"\xa9", {b"\xa8": 0.05}),
    ("<|im_end|>", {}),
)


@dataclass(frozen=True)
class Case:
    what: str
    baseline: Sequence[tuple[str | bytes, Others]]
    text: str
    left: Divergence | None
    cut: tuple[bool, bool] = (False, False)
    """Baseline's answer and candidate's."""


def at(number: int, gap: float, among_top: bool = True) -> Divergence:
    return Divergence(token=number, gap=pytest.approx(gap), among_top=among_top)  # type: ignore[arg-type]


CASES = (
    Case("the same", DOG, "The dog is", None),
    Case("a near tie", DOG, "The cat is", at(1, 0.1)),
    Case("what comes after it does not count", DOG, "The cat sat on a mat", at(1, 0.1)),
    Case("the first token", DOG, "A dog is", at(0, 1.5)),
    Case("far off", DOG, "The dog was", at(2, 2.0)),
    Case("not among the likeliest: at least as far as the last of them", DOG, "The bird is", at(1, 4.0, False)),
    Case("it ends early, and the end is no alternative", DOG, "The", at(1, 4.0, False)),
    Case("it ends early, and the end is one", (("The", {}), (" dog", {"<|im_end|>": 0.3})), "The", at(1, 0.3)),
    Case("it goes on where the baseline ended", DOG, "The dog is!", at(3, 0.2)),
    Case("it goes on otherwise than any alternative", DOG, "The dog is here", at(3, 1.2, False)),
    Case("it was cut, and so far the same", DOG, "The d", None, cut=(False, True)),
    Case("the baseline was cut, and so far the same", DOG[:3], "The dog is here", None, cut=(True, False)),
    Case("both were cut in a character", ACCENT[:2], "caf\ufffd", None, cut=(True, True)),
    Case("the baseline was cut in a character", ACCENT[:2], "café", None, cut=(True, True)),
    Case("a character differs in its second byte", ACCENT, "cafè", at(2, 0.05)),
    Case("a character differs in its first byte", ACCENT, "caf£", at(1, 1.0)),
    Case("a token that begins as the baseline's does", ((" a", {" an": 0.2}), (" dog", {})), " an ape", at(0, 0.2)),
    Case("of two readings the likelier", (("x", {}), (" dog", {" c": 4.0, " cat": 0.2})), "x cat", at(1, 0.2)),
    Case("a shorter one is a reading, too", (("hello", {"he": 0.1}),), "help", at(0, 0.1)),
    Case("an alternative may be likelier than what was chosen", (("x", {"y": -0.6}),), "y", at(0, 0.6)),
    Case("nothing at all", (("<|im_end|>", {"Oh": 0.7}),), "Oh", at(0, 0.7)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_where_an_answer_leaves_the_baselines(case: Case) -> None:
    mine, theirs = case.cut
    assert divergence(baseline(*case.baseline, cut=mine), candidate(case.text, cut=theirs), ENDS) == case.left


def test_tokens_that_lose_the_space_before_them() -> None:
    """As some tokenizers decode a token by itself, on a server that does not say its bytes."""
    plain = [
        Token(
            chosen=TokenChoice(text=text, bytes=None, logprob=-0.1),
            others=(TokenChoice(text=other, bytes=None, logprob=-0.4),),
        )
        for text, other in (("The", "A"), ("dog", "cat"))
    ]
    answer = Answer(text="The dog", cut=False, tokens=tuple(plain))
    assert divergence(answer, candidate("The cat"), ENDS) == at(1, 0.3)


NOTHING_KNOWN = {
    "no tokens": (Answer(text="The dog", cut=False), "The cat"),
    "no others": (Answer(text="The dog", cut=False, tokens=(Token(chosen=choice("The dog"), others=()),)), "The cat"),
    "half a character": (Answer(text="é dog", cut=False, tokens=(token("\ufffd"), token(" dog"))), "é cat"),
    "no end": (baseline(("The", {}), (" dog", {})), "The dog is"),
}


@pytest.mark.parametrize(("answer", "text"), NOTHING_KNOWN.values(), ids=NOTHING_KNOWN)
def test_what_cannot_be_explained_is_neither_a_pass_nor_a_blame(answer: Answer, text: str, says: Says) -> None:
    with pytest.raises(Incomparable) as caught:
        divergence(answer, candidate(text), ENDS)
    says(caught.value)
    assert divergence(answer, candidate(answer.text), ENDS) is None


def test_an_early_end_where_nobody_knows_what_an_end_looks_like() -> None:
    cut = baseline(("The", {}), (" dog", {"<|im_end|>": 0.1}), cut=True)
    assert "raise maxTokens" in compare(PARITY, [cut], [candidate("The")]).unknown
    assert compare(PARITY, [cut, baseline(*DOG)], [candidate("The"), candidate("The dog is")]).near_ties == 1


def test_a_rounds_answers() -> None:
    theirs = ("The dog is", "The cat is", "The dog was", "The bird")
    found = compare(PARITY, [baseline(*DOG)] * 4, [candidate(text) for text in theirs])
    assert found == Outputs(samples=4, near_ties=1, diverged=(2, 3), first=1, gap=4.0)
    assert found.identical == 1


def test_what_is_not_among_the_likeliest_is_no_near_tie_however_close_they_are() -> None:
    close = baseline(("x", {"a": 0.01, "b": 0.02, "c": 0.03, "d": 0.04}))
    assert compare(PARITY, [close], [candidate("y")]).diverged == (0,)


@pytest.mark.parametrize(("gap", "near"), [(NEAR_TIE, 1), (NEAR_TIE + 0.0001, 0)])
def test_a_near_tie_is_as_near_as_the_decision_says(gap: float, near: int) -> None:
    answer = baseline(("The", {}), (" dog", {" cat": gap}), (" is", {}))
    assert compare(Parity(samples=1), [answer], [candidate("The cat is")]).near_ties == near


def test_every_arm_is_held_against_the_baseline_in_whichever_order_they_ran() -> None:
    answers = {"wide": (candidate("The cat is"),), "baseline": (baseline(*DOG),), "narrow": (candidate("The dog is"),)}
    for order in itertools.permutations(answers):
        found = parity_outputs(PARITY, {arm: answers[arm] for arm in order}, "baseline")
        assert (found["wide"].near_ties, found["narrow"].identical, len(found["baseline"].digests)) == (1, 1, 1)


def test_without_an_answer_of_either_nothing_is_known() -> None:
    refused = parity_outputs(
        PARITY, {"baseline": "baseline on prompt 0: HTTP 400", "wide": (candidate("x"),)}, "baseline"
    )
    assert refused["wide"].unknown == refused["baseline"].unknown == "baseline on prompt 0: HTTP 400"
    failed = parity_outputs(PARITY, {"baseline": (baseline(*DOG),), "wide": "wide on prompt 3: HTTP 500"}, "baseline")
    assert (failed["wide"].unknown, failed["baseline"].unknown) == ("wide on prompt 3: HTTP 500", "")


def body(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop", "logprobs": None, **choice}]}


def test_what_is_thought_belongs_to_the_answer() -> None:
    assert read_answer(body(message={"reasoning_content": "Hm.", "content": "Hi"})).text == "Hm.Hi"
    assert read_answer(body(message={"content": None})).text == ""
    assert (read_answer(body()).cut, read_answer(body(finish_reason="length")).cut) == (False, True)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"choices": []},
        body(finish_reason="abort"),
        body(finish_reason=None),
        body(message=None),
        body(logprobs={"content": [{"token": "Hi", "logprob": None}]}),
        body(logprobs={"content": [{"token": "Hi", "logprob": float("nan")}]}),
    ],
)
def test_half_an_answer_is_none(broken: dict[str, Any]) -> None:
    with pytest.raises(Incomparable):
        read_answer(broken)


def test_only_the_baseline_is_asked_for_logprobs() -> None:
    """With them a speculating server may answer in another way than it serves, or not at all."""
    mine, theirs = (
        request_body(PARITY, "pair", [{"role": "user", "content": "Hello"}], candidate=one) for one in (False, True)
    )
    assert not any("logprobs" in field for field in theirs)
    assert mine == {**theirs, "logprobs": True, "top_logprobs": 5}
    assert (theirs["temperature"], theirs["max_completion_tokens"], "stream" in theirs) == (0, 16, False)
