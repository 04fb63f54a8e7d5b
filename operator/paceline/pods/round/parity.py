"""Whether two arms answer alike: what is read of an answer, and where one leaves the other. Pure.

Engines agree on little but text, so the candidate's text is held against the baseline's tokens. Where it leaves them,
the baseline's own logprobs at that place say how far the token that the candidate went on with was from being chosen.
Only the baseline is asked for logprobs: with them a speculating server may take another path, or none (0018).
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Parity
from paceline.evidence import Outputs
from paceline.evidence.outputs import DIGEST

TOP = 5
"""Alternatives asked for at each token. More cost memory and show no more of ties: vLLM refuses over 20 unless told
otherwise, and a real SGLang 0.5.23 was seen to die of 5,000."""
LOST = "\ufffd"
"""What a tokenizer makes of bytes that are no character yet: at the end of an answer that was cut."""


class Incomparable(ValueError):  # noqa: N818
    """Nothing can be said of the two answers; the text says why. Never a pass, and nobody's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A token that the baseline chose or might have chosen. `bytes` as the server says them, None where it does not:
    those of a piece of a character are no text."""

    text: str
    bytes: bytes | None
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    chosen: Choice
    others: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`cut`: it ended at its most tokens, not by itself. `tokens` is empty where no logprobs came along."""

    text: str
    cut: bool
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Where an answer left the baseline's: the token, counted from 0, and how many nats likelier the baseline's token
    was. `among_top`: what the answer went on with is one of the alternatives; if not, the gap is at least this."""

    token: int
    gap: float
    among_top: bool


def asked(parity: Parity, model: str, prompt: str, *, candidate: bool) -> dict[str, Any]:
    """The body of the request, for every engine."""
    logprobs = {} if candidate else {"logprobs": True, "top_logprobs": TOP}
    return {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_completion_tokens": parity.max_tokens,
        **logprobs,
    }


def read(body: Mapping[str, Any]) -> Answer:
    """Of `/v1/chat/completions`. Raises Incomparable for what is no whole answer."""
    try:
        choice = body["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
        thought = message.get("reasoning_content") or message.get("reasoning") or ""
        text = f"{thought}{message.get('content') or ''}"
        tokens = tuple(map(_token, (choice.get("logprobs") or {}).get("content") or ()))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise Incomparable(f"no answer in what the server said: {error!r}") from error
    if finish not in ("stop", "length"):
        raise Incomparable(f"an answer ended by {finish!r}")
    return Answer(text=text, cut=finish == "length", tokens=tokens)


def digest(answer: Answer) -> str:
    return hashlib.sha256(answer.text.encode()).hexdigest()[:DIGEST]


def outputs(parity: Parity, answers: Mapping[str, tuple[Answer, ...] | str], baseline: str) -> dict[str, Outputs]:
    """By arm, from its answers or why there are none."""
    theirs = answers.get(baseline, "the round has no baseline")
    found = {}
    for arm, mine in answers.items():
        if isinstance(mine, str):
            found[arm] = Outputs(unknown=mine)
        elif arm == baseline:
            found[arm] = Outputs(digests=tuple(map(digest, mine)))
        else:
            found[arm] = Outputs(unknown=theirs) if isinstance(theirs, str) else compare(parity, theirs, mine)
    return found


def compare(parity: Parity, baseline: Sequence[Answer], candidate: Sequence[Answer]) -> Outputs:
    """Answers to the same prompts, in their order."""
    ends = frozenset(end for answer in baseline for end in _ends(answer))
    try:
        found = [leaves(mine, theirs, ends) for mine, theirs in zip(baseline, candidate, strict=True)]
    except Incomparable as why:
        return Outputs(unknown=str(why))
    left = {prompt: one for prompt, one in enumerate(found) if one}
    diverged = tuple(n for n, one in left.items() if not (one.among_top and one.gap <= parity.near_tie))
    return Outputs(
        samples=len(found),
        near_ties=len(left) - len(diverged),
        diverged=diverged,
        first=min((one.token for one in left.values()), default=None),
        gap=max((one.gap for one in left.values()), default=None),
    )


def leaves(baseline: Answer, candidate: Answer, ends: frozenset[bytes]) -> Left | None:
    """Where the candidate leaves the baseline; None if it does not, as far as both were let go on.

    Of several ways to read the candidate's text as a token of the baseline's alternatives (` a`, ` an`) the likeliest
    is taken: a greedy server chooses the likeliest. Raises Incomparable.
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
        Left(token=place.number, gap=abs(place.token.chosen.logprob - other.logprob), among_top=True)
        for place in places
        for other in place.token.others
        if (length := place.fits(other, theirs, ends)) is not None and (place is last or place.start + length > at)
    ]
    if ways:
        return min(ways, key=lambda way: way.gap)
    if at == len(theirs) and not ends:
        raise Incomparable("an answer ended early, and none of the baseline's shows what an end is: raise maxTokens")
    if not last.token.others:
        raise Incomparable("outputs differ, and the baseline gave no logprobs")
    lowest = min(other.logprob for other in last.token.others)
    return Left(token=last.number, gap=max(0.0, last.token.chosen.logprob - lowest), among_top=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A token of the baseline's answer, and where in its bytes it begins. `way`: how its tokens spell it."""

    number: int
    token: Token
    start: int
    way: int

    def fits(self, other: Choice, text: bytes, ends: frozenset[bytes]) -> int | None:
        """How many bytes of `text` the alternative is here, where it goes on so; None if it does not."""
        if _raw(other) in ends:
            return 0 if self.start == len(text) else None
        spelt = _spellings(other)[self.way]
        return len(spelt) if spelt and text.startswith(spelt, self.start) else None


def _places(answer: Answer, text: bytes, upto: int) -> Iterator[Place]:
    """The tokens up to the one that has the byte `upto`, or that ends the answer there."""
    start = 0
    if not answer.tokens:
        raise Incomparable("outputs differ, and the baseline gave no logprobs")
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
    raise Incomparable("an answer goes on where the baseline's ended, and its logprobs have no token for the end")


def _ends(answer: Answer) -> Iterator[bytes]:
    """Which token ends an answer is known by the answers that ended: it comes after all of their text."""
    text, start = _bytes(answer), 0
    for token in () if answer.cut else answer.tokens:
        if start == len(text):
            yield _raw(token.chosen)
            return
        spelt = next((one for one in _spellings(token.chosen) if one and text.startswith(one, start)), b"")
        if not spelt:
            return
        start += len(spelt)


def _spellings(choice: Choice) -> tuple[bytes, bytes, bytes, bytes]:
    """How a token may stand in the text: as its bytes, as its own text, with the space before it that some tokenizers
    lose when they decode a token by itself, and, first in an answer, without one that it has."""
    text = choice.text.encode()
    return (choice.bytes or text, text, b" " + text, text.lstrip())


def _raw(choice: Choice) -> bytes:
    return choice.bytes or choice.text.encode()


def _bytes(answer: Answer) -> bytes:
    return (answer.text.rstrip(LOST) if answer.cut else answer.text).encode()


def _common(one: bytes, other: bytes) -> int:
    """Bytes that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _token(entry: Mapping[str, Any]) -> Token:
    return Token(chosen=_choice(entry), others=tuple(map(_choice, entry.get("top_logprobs") or ())))


def _choice(entry: Mapping[str, Any]) -> Choice:
    said, logprob = entry.get("bytes"), float(entry["logprob"])
    if not math.isfinite(logprob):
        raise ValueError(f"a logprob of {logprob}")
    return Choice(text=str(entry["token"]), bytes=bytes(said) if said is not None else None, logprob=logprob)
