"""The outcome of each request of a load, read from the stream of its answer. Pure.

A load's report has these columns, with a row per request in sending order.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Chunk = tuple[float, bytes]
"""A part of a stream, and its arrival time in seconds."""
FORM = "response_format"
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors for JSON that is not an answer."""
_MOST_TOKENS = 1 << 31
"""Maximum token count that a server may report."""
LONGEST_ERROR = 500
"""Maximum characters of a server's message about a refused request."""
_PIECES = ("reasoning_content", "reasoning", "content")
"""Fields of a delta with text of an answer; tool calls are in others."""
_FAILED = ("abort", "error")
"""How a server, or a stranger (`/abort_request`), ends an answer early: SGLang ends such a stream normally, with usage
(`serving_chat.py:2564` of 0.5.23)."""
NO_TOKENS = "the response contained no generated tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request, with times in seconds: `start` after the load's, `first` to the first piece of its answer, `gaps`
    between pieces, `whole` to the end of the stream. Tokens are the server's counts. `error` says why there is no
    answer; "" if there is one."""

    start: float = 0.0
    first: float = 0.0
    gaps: tuple[float, ...] = ()
    whole: float = 0.0
    prompt_tokens: int = 0
    tokens: int = 0
    text: str = ""
    answer: str = ""
    """The text without reasoning and tool calls."""
    error: str = ""


def with_answers(body: Mapping[str, Any], texts: Iterator[str]) -> Mapping[str, Any]:
    """The body with these texts in the place of the answers that it waited for: messages without content."""
    filled = [{**one, "content": next(texts)} if one["content"] is None else one for one in body["messages"]]
    return {**body, "messages": filled}


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
    """How many answers lack the requested form; None if none was requested."""
    asked = [(body[FORM], one) for body, one in zip(bodies, answers, strict=True) if FORM in body]
    if not asked:
        return None
    from paceline.core.response_format import fits  # imports in 0.25 s, which most loads save

    return sum(not one.error and not fits(one.answer, form) for form, one in asked)


def refusal_text(body: str) -> str:
    """A refusal's sentence in the formats of SGLang and vLLM; else the body."""
    try:
        found = json.loads(body)
        said = found.get("message") or found["error"]["message"]
    except UNREADABLE:
        said = body
    return str(said)[:LONGEST_ERROR]


@dataclass(slots=True)
class Reader:
    """Reads the events of one answer, in order."""

    arrivals: list[float] = field(default_factory=list)
    """Arrival times of pieces of text."""
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
        """The result; its times count from `due`. `may_call`: the request has tools. Then a server holds back text that
        may become a call, and drops a truncated call; such an answer arrives when its stream ends. Raises one of
        UNREADABLE."""
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
    """Raises ValueError for an invalid number of tokens: a report calculates with it."""
    if not isinstance(said, int | float) or not 0 <= said < _MOST_TOKENS:
        raise ValueError(f"the server counts {said!r:.40} tokens")
    return int(said)


def _text(choice: Mapping[str, Any]) -> str:
    """The text of one delta: reasoning, answer and tool calls, all of which the server generated."""
    delta = choice.get("delta") or {}
    calls = [call.get("function") or {} for call in delta.get("tool_calls") or ()]
    called = [call.get(name) or "" for call in calls for name in ("name", "arguments")]
    return "".join([delta.get(name) or "" for name in _PIECES] + called)


def stream_events(chunks: Sequence[Chunk]) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Each event, with the arrival time of its last byte."""
    rest = b""
    for came, data in chunks:
        *lines, rest = (rest + data).split(b"\n")
        yield from ((came, json.loads(line[5:])) for line in lines if _is_event(line))
    if _is_event(rest):
        yield chunks[-1][0], json.loads(rest[5:])


def _is_event(line: bytes) -> bool:
    return line.startswith(b"data:") and line[5:].strip() != b"[DONE]"
