"""`python -m paceline.pods.round.chat_client LOAD REPORT`: sends what SGLang's benchmark client cannot.

LOAD is the JSON of a `ChatLoad`; one line of JSON is written to REPORT. It is a process by itself, as the benchmark
client is: it can be killed, and its event loop has nothing else to do.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from paceline.core.response_format import fits
from paceline.pods.round.chat_report import Answered, most_under_way, report

KEY = "OPENAI_API_KEY"
"""The variable with the server's key, as for the benchmark client."""
LARGEST_LINE = 16 << 20
"""Bytes of one event of a stream."""
FORM = "response_format"
UNREADABLE = (aiohttp.ClientError, ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError)
"""What comes of a stream that is cut off, or none, or that has other JSON than an answer's."""
MOST_TOKENS = 1 << 31
"""That a server may say it has counted."""
LONGEST_ERROR = 500
"""Characters of what a server says of a request that it refuses."""
PIECES = ("reasoning_content", "reasoning", "content")
"""Fields of a delta whose text is a part of an answer; calls of tools are others."""
FAILED = ("abort", "error")
"""How the server, or a stranger (`/abort_request`), ends an answer too early: SGLang ends such a stream as any
other, with its usage (`serving_chat.py:2564` of 0.5.23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatLoad:
    """`bodies` in the order in which they are sent: when one of `concurrency` places is free; with `arrivals`, so many
    seconds after the start; with `levels`, when with it no more than so many are under way."""

    url: str
    bodies: tuple[Mapping[str, Any], ...]
    concurrency: int
    arrivals: tuple[float, ...] | None = None
    levels: tuple[int, ...] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ChatLoad":
        raw = json.loads(text)
        arrivals, levels = raw["arrivals"], raw.get("levels")
        return cls(
            url=raw["url"],
            bodies=tuple(raw["bodies"]),
            concurrency=raw["concurrency"],
            arrivals=None if arrivals is None else tuple(arrivals),
            levels=None if levels is None else tuple(levels),
        )


async def send(load: ChatLoad, key: str) -> Mapping[str, Any]:
    """The report of a load that was sent to its end."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers=headers,
        read_bufsize=LARGEST_LINE,
    )
    async with session:
        began = time.perf_counter()
        spans: list[tuple[float, float]] = []
        if load.levels is not None:
            answers = await _ramp(session, load, load.levels, spans)
        elif load.arrivals is not None:
            answers = await _arriving(session, load, load.arrivals)
        else:
            answers = await _closed(session, load)
        duration = time.perf_counter() - began
    return {**report(answers, duration), **most_under_way(spans), **_malformed(load.bodies, answers)}


def _malformed(bodies: Sequence[Mapping[str, Any]], answers: Sequence[Answered]) -> Mapping[str, int]:
    """How many answers lack the form that was asked for; nothing where none was asked for."""
    asked = [(body[FORM], one) for body, one in zip(bodies, answers, strict=True) if FORM in body]
    return {"malformed": sum(not one.error and not fits(one.answer, form) for form, one in asked)} if asked else {}


async def _closed(session: aiohttp.ClientSession, load: ChatLoad) -> list[Answered]:
    answers = [Answered(error="not sent")] * len(load.bodies)
    numbered = iter(enumerate(load.bodies))

    async def place() -> None:
        for number, body in numbered:
            answers[number] = await ask(session, load.url, body)

    await asyncio.gather(*(place() for _ in range(load.concurrency)))
    return answers


async def _ramp(
    session: aiohttp.ClientSession, load: ChatLoad, levels: Sequence[int], spans: list[tuple[float, float]]
) -> list[Answered]:
    """Adds to `spans` when each request was due and ended. How many are under way follows from how many were sent, not
    from the clock: a slow server gets the same load as a fast one."""
    answers = [Answered(error="not sent")] * len(load.bodies)
    under_way, one_ended = 0, asyncio.Event()

    async def one(number: int, due: float) -> None:
        nonlocal under_way
        answers[number] = await ask(session, load.url, load.bodies[number], since=due)
        spans.append((due, time.perf_counter()))
        under_way -= 1
        one_ended.set()

    async with asyncio.TaskGroup() as group:
        for number, level in enumerate(levels):
            while under_way >= level:
                one_ended.clear()
                await one_ended.wait()
            under_way += 1
            group.create_task(one(number, time.perf_counter()))
    return answers


async def _arriving(session: aiohttp.ClientSession, load: ChatLoad, arrivals: Sequence[float]) -> list[Answered]:
    began = time.perf_counter()

    async def at(seconds: float, body: Mapping[str, Any]) -> Answered:
        await asyncio.sleep(max(0.0, began + seconds - time.perf_counter()))
        return await ask(session, load.url, body, since=began + seconds)

    return await asyncio.gather(*(at(seconds, body) for seconds, body in zip(arrivals, load.bodies, strict=True)))


async def ask(
    session: aiohttp.ClientSession, url: str, body: Mapping[str, Any], since: float | None = None
) -> Answered:
    """Send one request and read its stream to the end. What goes wrong is in the answer's `error`. Its times begin at
    `since`, when it was due, or now: one that this process sends late has waited, and is not spared that."""
    began = time.perf_counter() if since is None else since
    try:
        async with session.post(url, json=body) as response:
            if response.status != 200:
                return Answered(error=f"{response.status} {response.reason}: {_told(await response.text())}")
            return await _read(_events(response), began, may_call="tools" in body)
    except UNREADABLE as error:
        return Answered(error=f"{type(error).__name__}: {error}"[:LONGEST_ERROR])


def _told(body: str) -> str:
    """The sentence of a refusal, where SGLang and vLLM have it; else the body."""
    try:
        found = json.loads(body)
        said = found.get("message") or found["error"]["message"]
    except UNREADABLE:
        said = body
    return str(said)[:LONGEST_ERROR]


async def _read(events: AsyncIterator[Mapping[str, Any]], began: float, *, may_call: bool) -> Answered:
    """`may_call`: the request has tools. Then a server holds back what may become a call, and shows nothing of one that
    is cut short; such an answer came when it ended."""
    arrivals: list[float] = []
    texts: list[str] = []
    contents: list[str] = []
    usage: Mapping[str, Any] = {}
    async for event in events:
        if error := event.get("error"):
            return Answered(error=f"in the stream: {_told(json.dumps(error))}")
        usage = event.get("usage") or usage
        choices = event.get("choices") or ()
        if ended_by := next((why for one in choices if (why := one.get("finish_reason")) in FAILED), None):
            return Answered(error=f"the answer was ended by {ended_by}")
        text = "".join(map(_text, choices))
        contents += [choice["delta"].get("content") or "" for choice in choices if choice.get("delta")]
        if text:
            arrivals.append(time.perf_counter())
            texts.append(text)
    ended = time.perf_counter()
    if not arrivals and may_call and usage.get("completion_tokens"):
        arrivals.append(ended)
    if not arrivals:
        return Answered(error="the response contained no generated tokens")
    if "completion_tokens" not in usage:
        return Answered(error="the answer broke off: it has no usage")
    return Answered(
        first=arrivals[0] - began,
        gaps=tuple(later - earlier for earlier, later in pairwise(arrivals)),
        whole=ended - began,
        prompt_tokens=_count(usage.get("prompt_tokens") or 0),
        tokens=_count(usage["completion_tokens"]),
        text="".join(texts),
        answer="".join(contents),
    )


def _count(said: Any) -> int:
    """Raises ValueError for what is no number of tokens: a report counts with it."""
    if not isinstance(said, int | float) or not 0 <= said < MOST_TOKENS:
        raise ValueError(f"the server counts {said!r:.40} tokens")
    return int(said)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Mapping[str, Any]]:
    async for line in response.content:
        kind, _, data = line.decode().partition(":")
        if kind == "data" and data.strip() != "[DONE]":
            yield json.loads(data)


def _text(choice: Mapping[str, Any]) -> str:
    """Of one delta: thoughts, the answer and the calls of tools, all of which the server generated."""
    delta = choice.get("delta") or {}
    calls = [call.get("function") or {} for call in delta.get("tool_calls") or ()]
    called = [call.get(name) or "" for call in calls for name in ("name", "arguments")]
    return "".join([delta.get(name) or "" for name in PIECES] + called)


def main(argv: Sequence[str]) -> None:
    source, target = map(Path, argv)
    load = ChatLoad.from_json(source.read_text())
    target.write_text(json.dumps(asyncio.run(send(load, os.environ.get(KEY, "")))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
