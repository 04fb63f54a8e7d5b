"""What became of each request of a load, read from the stream of its answer. Pure.

A load's report is these columns, a row per request in the order in which they were to be sent.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Chunk = tuple[float, bytes]
"""A part of a stream, and when it came, in seconds."""
FORM = "response_format"
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What comes of JSON that is no answer's."""
_MOST_TOKENS = 1 << 31
"""That a server may say it has counted."""
LONGEST_ERROR = 500
"""Characters of what a server says of a request that it refuses."""
_PIECES = ("reasoning_content", "reasoning", "content")
"""Fields of a delta whose text is a part of an answer; calls of tools are others."""
_FAILED = ("abort", "error")
"""How the server, or a stranger (`/abort_request`), ends an answer too early: SGLang ends such a stream as any
other, with its usage (`serving_chat.py:2564` of 0.5.23)."""
NO_TOKENS = "the response contained no generated tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request, with times in seconds: `start` after the load's, `first` to the first piece of its answer, `gaps`
    between two pieces, `whole` to the end of the stream. Tokens are the server's counts. `error` says why there is no
    answer; "" if there is one.
    """

    start: float = 0.0
    first: float = 0.0
    gaps: tuple[float, ...] = ()
    whole: float = 0.0
    prompt_tokens: int = 0
    tokens: int = 0
    text: str = ""
    answer: str = ""
    """The text without thoughts and without calls of tools."""
    error: str = ""


def load_report(answers: Sequence[Answered], duration: float) -> dict[str, Any]:
    return {
        "duration": duration,
        "starts": [one.start for one in answers],
        "ttfts": [one.first for one in answers],
        "itls": [list(one.gaps) for one in answers],
        "latencies": [one.whole for one in answers],
        "input_lens": [one.prompt_tokens for one in answers],
        "output_lens": [one.tokens for one in answers],
        "generated_texts": [one.text for one in answers],
        "errors": [one.error for one in answers],
    }


def malformed(bodies: Sequence[Mapping[str, Any]], answers: Sequence[Answered]) -> int | None:
    """How many answers lack the form that was asked for; None where none was asked for."""
    asked = [(body[FORM], one) for body, one in zip(bodies, answers, strict=True) if FORM in body]
    if not asked:
        return None
    from paceline.core.response_format import fits  # a quarter of a second, which most loads are spared

    return sum(not one.error and not fits(one.answer, form) for form, one in asked)


def refusal_text(body: str) -> str:
    """The sentence of a refusal, where SGLang and vLLM have it; else the body."""
    try:
        found = json.loads(body)
        said = found.get("message") or found["error"]["message"]
    except UNREADABLE:
        said = body
    return str(said)[:LONGEST_ERROR]


@dataclass(slots=True)
class Reader:
    """Reads the events of one answer, in their order."""

    arrivals: list[float] = field(default_factory=list)
    """When pieces of text came."""
    texts: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    usage: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    def read(self, came: float, event: Mapping[str, Any]) -> None:
        """Raises one of UNREADABLE."""
        if error := event.get("error"):
            self.error = self.error or f"in the stream: {refusal_text(json.dumps(error))}"
        self.usage = event.get("usage") or self.usage
        choices = event.get("choices") or ()
        if ended_by := next((why for one in choices if (why := one.get("finish_reason")) in _FAILED), None):
            self.error = self.error or f"the answer was ended by {ended_by}"
        if text := "".join(map(_text, choices)):
            self.arrivals.append(came)
            self.texts.append(text)
            self.contents += [choice["delta"].get("content") or "" for choice in choices if choice.get("delta")]

    def answered(self, *, start: float, due: float, ended: float, may_call: bool) -> Answered:
        """Its times count from `due`. `may_call`: the request has tools. Then a server holds back what may become a
        call, and shows nothing of one that is cut short; such an answer came when it ended. Raises one of UNREADABLE.
        """
        prompt_tokens, tokens = (_count(self.usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens"))
        arrivals = self.arrivals or ([ended] if may_call and tokens else [])
        broke_off = "" if "completion_tokens" in self.usage else "the answer broke off: it has no usage"
        if error := self.error or ("" if arrivals else NO_TOKENS) or broke_off:
            return Answered(start=start, prompt_tokens=prompt_tokens, error=error)
        return Answered(
            start=start,
            first=arrivals[0] - due,
            gaps=tuple(later - earlier for earlier, later in pairwise(arrivals)),
            whole=ended - due,
            prompt_tokens=prompt_tokens,
            tokens=tokens,
            text="".join(self.texts),
            answer="".join(self.contents),
        )


def _count(said: Any) -> int:
    """Raises ValueError for what is no number of tokens: a report counts with it."""
    if not isinstance(said, int | float) or not 0 <= said < _MOST_TOKENS:
        raise ValueError(f"the server counts {said!r:.40} tokens")
    return int(said)


def _text(choice: Mapping[str, Any]) -> str:
    """Of one delta: thoughts, the answer and the calls of tools, all of which the server generated."""
    delta = choice.get("delta") or {}
    calls = [call.get("function") or {} for call in delta.get("tool_calls") or ()]
    called = [call.get(name) or "" for call in calls for name in ("name", "arguments")]
    return "".join([delta.get(name) or "" for name in _PIECES] + called)


def stream_events(chunks: Sequence[Chunk]) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Each event, and when its last byte came."""
    rest = b""
    for came, data in chunks:
        *lines, rest = (rest + data).split(b"\n")
        yield from ((came, json.loads(line[5:])) for line in lines if _is_event(line))
    if _is_event(rest):
        yield chunks[-1][0], json.loads(rest[5:])


def _is_event(line: bytes) -> bool:
    return line.startswith(b"data:") and line[5:].strip() != b"[DONE]"
