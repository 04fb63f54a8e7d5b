"""Compares the answers of two arms: parses an answer, and finds where one diverges from the other. Pure.

Engines have little in common except text, so the candidate's text is compared with the baseline's tokens. Where they
diverge, the baseline's logprobs show how close the candidate's token was to being chosen. Logprobs are only requested
from the baseline: with them a speculating server may take another path, or return none (0018).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Parity
from paceline.core.outputs import NEAR_TIE
from paceline.core.text import error_text
from paceline.evidence import Outputs
from paceline.evidence.outputs import DIGEST_DIGITS

TOP = 5
"""Alternatives per token. More would cost memory without showing more ties: by default vLLM refuses over 20, and a real
SGLang 0.5.23 crashed with 5,000."""
LOST = "\ufffd"
"""The character for incomplete UTF-8, at the end of a truncated answer."""


class Incomparable(ValueError):  # noqa: N818
    """The two answers cannot be compared; the message says why. It is neither a pass nor a failure of an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChoice:
    """A token that the baseline chose or might have chosen. `bytes` as the server reports them (a part of a character
    is not text), None if it does not."""

    text: str
    bytes: bytes | None
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    chosen: TokenChoice
    others: tuple[TokenChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`cut`: it ended at the token limit. `tokens` is empty if the server sent no logprobs."""

    text: str
    cut: bool
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first token, counted from 0, at which an answer differs from the baseline's, and how many nats likelier the
    baseline's token was. `among_top`: the answer's token is one of the alternatives; if not, the gap is a lower
    bound."""

    token: int
    gap: float
    among_top: bool


def request_body(
    parity: Parity, model: str, messages: Sequence[Mapping[str, Any]], *, candidate: bool
) -> dict[str, Any]:
    """The request's body, for every engine."""
    logprobs = {} if candidate else {"logprobs": True, "top_logprobs": TOP}
    return {
        "model": model,
        "messages": messages,
        "temperature": 0,
        "max_completion_tokens": parity.max_tokens,
        **logprobs,
    }


def read_answer(body: Mapping[str, Any]) -> Answer:
    """The answer of `/v1/chat/completions`. Raises Incomparable if it is not complete."""
    try:
        choice = body["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
        thought = message.get("reasoning_content") or message.get("reasoning") or ""
        text = f"{thought}{message.get('content') or ''}"
        tokens = tuple(map(_token, (choice.get("logprobs") or {}).get("content") or ()))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Incomparable(f"no answer in the server's response: {error_text(error)}") from error
    if finish not in ("stop", "length"):
        raise Incomparable(f"an answer ended by {finish!r}")
    return Answer(text=text, cut=finish == "length", tokens=tokens)


def _digest(answer: Answer) -> str:
    return hashlib.sha256(answer.text.encode()).hexdigest()[:DIGEST_DIGITS]


def parity_outputs(
    parity: Parity, answers: Mapping[str, tuple[Answer, ...] | str], baseline: str
) -> dict[str, Outputs]:
    """Outputs by arm. Each arm has its answers, or the reason why it has none."""
    reference = answers.get(baseline, "the round has no baseline")
    compared = {}
    for arm, own in answers.items():
        if isinstance(own, str):
            compared[arm] = Outputs(unknown=own)
        elif arm == baseline:
            compared[arm] = Outputs(digests=tuple(map(_digest, own)))
        elif isinstance(reference, str):
            compared[arm] = Outputs(unknown=reference)
        else:
            compared[arm] = compare(parity, reference, own)
    return compared


def compare(parity: Parity, baseline: Sequence[Answer], candidate: Sequence[Answer]) -> Outputs:
    """Compares answers to the same prompts, in order."""
    ends = frozenset(end for answer in baseline for end in _ends(answer))
    try:
        pairs = [divergence(*pair, ends) for pair in zip(baseline, candidate, strict=True)]
    except Incomparable as why:
        return Outputs(unknown=str(why))
    differing = {prompt: place for prompt, place in enumerate(pairs) if place}
    diverged = tuple(n for n, place in differing.items() if not (place.among_top and place.gap <= NEAR_TIE))
    return Outputs(
        samples=len(pairs),
        near_ties=len(differing) - len(diverged),
        diverged=diverged,
        first=min((place.token for place in differing.values()), default=None),
        gap=max((place.gap for place in differing.values()), default=None),
    )


def divergence(baseline: Answer, candidate: Answer, ends: frozenset[bytes]) -> Divergence | None:
    """The candidate's first divergence from the baseline; None if there is none up to the end of the shorter cut.

    If the candidate's text can be read as several of the baseline's alternatives (` a`, ` an`), the likeliest counts: a
    greedy server chooses the likeliest. Raises Incomparable.
    """
    mine, theirs = _bytes(baseline), _bytes(candidate)
    if mine == theirs:
        return None
    at = _common(mine, theirs)
    if (at == len(theirs) and candidate.cut) or (at == len(mine) and baseline.cut):
        return None
    places = list(_places(baseline, mine, at))
    last = places[-1]
    ways = [
        Divergence(token=place.number, gap=abs(place.token.chosen.logprob - other.logprob), among_top=True)
        for place in places
        for other in place.token.others
        if (length := place.fits(other, theirs, ends)) is not None and (place is last or place.start + length > at)
    ]
    if ways:
        return min(ways, key=lambda way: way.gap)
    if at == len(theirs) and not ends:
        raise Incomparable("an answer ended early, but no baseline answer shows what an end is: raise maxTokens")
    if not last.token.others:
        raise Incomparable("outputs differ, but the baseline gave no logprobs")
    lowest = min(other.logprob for other in last.token.others)
    return Divergence(token=last.number, gap=max(0.0, last.token.chosen.logprob - lowest), among_top=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A token of the baseline's answer and its first byte. `way`: the index of the spelling in the answer."""

    number: int
    token: Token
    start: int
    way: int

    def fits(self, other: TokenChoice, text: bytes, ends: frozenset[bytes]) -> int | None:
        """The alternative's length in bytes if `text` has it at this place, else None."""
        if _raw(other) in ends:
            return 0 if self.start == len(text) else None
        spelt = _spellings(other)[self.way]
        return len(spelt) if spelt and text.startswith(spelt, self.start) else None


def _places(answer: Answer, text: bytes, upto: int) -> Iterator[Place]:
    """The tokens up to the one that contains the byte `upto`, or ends the answer there."""
    start = 0
    if not answer.tokens:
        raise Incomparable("outputs differ, but the baseline gave no logprobs")
    for number, token in enumerate(answer.tokens):
        if start == len(text):
            yield Place(number=number, token=token, start=start, way=0)
            return
        ways = [way for way, spelt in enumerate(_spellings(token.chosen)) if spelt and text.startswith(spelt, start)]
        if not ways:
            raise Incomparable(f"the baseline's tokens do not spell its answer at its byte {start}")
        yield Place(number=number, token=token, start=start, way=ways[0])
        start += len(_spellings(token.chosen)[ways[0]])
        if start > upto:
            return
    raise Incomparable("an answer continues where the baseline's ended, but its logprobs have no token for the end")


def _ends(answer: Answer) -> Iterator[bytes]:
    """The final token of an answer: it follows all of the text of an answer that was not cut."""
    text, start = _bytes(answer), 0
    for token in () if answer.cut else answer.tokens:
        if start == len(text):
            yield _raw(token.chosen)
            return
        spelt = next((way for way in _spellings(token.chosen) if way and text.startswith(way, start)), b"")
        if not spelt:
            return
        start += len(spelt)


def _spellings(choice: TokenChoice) -> tuple[bytes, bytes, bytes, bytes]:
    """The forms of a token in a text: its bytes, its text, with the leading space that some tokenizers drop when they
    decode a single token, and, at the beginning of an answer, without its leading space."""
    text = choice.text.encode()
    return (choice.bytes or text, text, b" " + text, text.lstrip())


def _raw(choice: TokenChoice) -> bytes:
    return choice.bytes or choice.text.encode()


def _bytes(answer: Answer) -> bytes:
    return (answer.text.rstrip(LOST) if answer.cut else answer.text).encode()


def _common(one: bytes, other: bytes) -> int:
    """Length of the common prefix in bytes."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _token(entry: Mapping[str, Any]) -> Token:
    return Token(chosen=_choice(entry), others=tuple(map(_choice, entry.get("top_logprobs") or ())))


def _choice(entry: Mapping[str, Any]) -> TokenChoice:
    raw, logprob = entry.get("bytes"), float(entry["logprob"])
    if not math.isfinite(logprob):
        raise ValueError(f"a logprob of {logprob}")
    return TokenChoice(text=str(entry["token"]), bytes=bytes(raw) if raw is not None else None, logprob=logprob)
