"""`python -m paceline.pods.round.client LOAD REPORT`: sends the requests of a load, and reports their outcomes.

LOAD is the JSON of a `Requests`; one line of JSON is written to REPORT. It is a separate process: the round's heartbeat
continues during a load, a hanging client can be killed, and its event loop has nothing else to do. Answers only get
timestamps on arrival. They are parsed after they have ended, in small steps, so that no other answer waits for long.

`tests/oracles` compares it with two other clients on one stream, and with 4,096 concurrent requests and 20,000 tokens
per second.
"""

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from paceline.pods.round.answers import (
    LONGEST_ERROR,
    UNREADABLE,
    Answered,
    Chunk,
    Reader,
    malformed,
    refusal_text,
    stream_events,
    with_answers,
)
from paceline.pods.round.answers import load_report as report_of

_KEY = "OPENAI_API_KEY"
"""The variable with the server's key."""
LARGEST_ANSWER = 64 << 20
"""Maximum bytes of one stream."""
_AT_ONCE = 50
"""Events that are parsed before other requests get their turn: a quarter of a millisecond."""
TICK = 0.01
"""Seconds between two measurements of the loop's lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """`bodies` are in sending order. Each is sent when one of `concurrency` slots is free; with `arrivals`, at its time
    in seconds after the start; with `levels`, when at most that many requests would then be running. With `turns`, the
    number of each request in its conversation from 0, a slot takes a whole conversation."""

    url: str
    bodies: tuple[Mapping[str, Any], ...]
    concurrency: int
    arrivals: tuple[float, ...] | None = None
    levels: tuple[int, ...] | None = None
    turns: tuple[int, ...] | None = None

    @property
    def conversations(self) -> Iterator[range]:
        """Numbers of the requests that are sent one after another."""
        begins = [number for number in range(len(self.bodies)) if not (self.turns and self.turns[number])]
        return (range(*ends) for ends in pairwise([*begins, len(self.bodies)]))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Requests":
        raw = json.loads(text)
        arrivals, levels, turns = raw["arrivals"], raw.get("levels"), raw.get("turns")
        return cls(
            url=raw["url"],
            bodies=tuple(raw["bodies"]),
            concurrency=raw["concurrency"],
            arrivals=None if arrivals is None else tuple(arrivals),
            levels=None if levels is None else tuple(levels),
            turns=None if turns is None else tuple(turns),
        )


async def send(requests: Requests, key: str) -> Mapping[str, Any]:
    """The report of requests after all were sent and answered."""
    async with Sender.begin(requests, key) as sender:
        if requests.levels is not None:
            await sender.ramp(requests.levels)
        elif requests.arrivals is not None:
            await sender.arriving(requests.arrivals)
        else:
            await sender.closed_loop()
        duration = time.perf_counter() - sender.began
        own = {"client_cpu": sender.cpu_share(duration), "client_lag": sender.lag}
    return {
        **report_of(sender.answers, duration),
        **({"turns": requests.turns} if requests.turns else {}),
        **own,
        "malformed": malformed(requests.bodies, sender.answers),
    }


@dataclass(slots=True, kw_only=True)
class StreamEnd:
    """A finished stream, or why there is none."""

    number: int
    due: float
    ended: float
    chunks: Sequence[Chunk] = ()
    error: str = ""
    read: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, kw_only=True)
class Sender:
    """Sends requests; `answers` is complete when it has ended."""

    requests: Requests
    session: aiohttp.ClientSession
    answers: list[Answered]
    ended: "asyncio.Queue[StreamEnd | None]" = field(default_factory=asyncio.Queue)
    late: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    cpu_began: float = field(default_factory=time.process_time)

    @classmethod
    @asynccontextmanager
    async def begin(cls, requests: Requests, key: str) -> AsyncIterator["Sender"]:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"Authorization": f"Bearer {key}"} if key else {},
            read_bufsize=LARGEST_ANSWER,
        ) as session:
            sender = cls(
                requests=requests, session=session, answers=[Answered(error="not sent")] * len(requests.bodies)
            )
            reading, watching = asyncio.create_task(sender.read()), asyncio.create_task(sender.watch())
            try:
                yield sender
                sender.ended.put_nowait(None)
                await reading
            finally:
                reading.cancel()
                watching.cancel()

    async def closed_loop(self) -> None:
        conversations = self.requests.conversations

        async def place() -> None:
            for numbers in conversations:
                for number in numbers:
                    ended = await self.ask(number)
                    if number != numbers[-1]:
                        await ended.read.wait()

        await asyncio.gather(*(place() for _ in range(self.requests.concurrency)))

    async def ramp(self, levels: Sequence[int]) -> None:
        """Follows the number of requests sent, not the clock: a slow server gets the same load as a fast one."""
        under_way, one_ended = 0, asyncio.Event()

        async def one(number: int, due: float) -> None:
            nonlocal under_way
            await self.ask(number, due)
            under_way -= 1
            one_ended.set()

        async with asyncio.TaskGroup() as group:
            for number, level in enumerate(levels):
                while under_way >= level:
                    one_ended.clear()
                    await one_ended.wait()
                under_way += 1
                group.create_task(one(number, time.perf_counter()))

    async def arriving(self, arrivals: Sequence[float]) -> None:
        async def at(number: int, due: float) -> None:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            await self.ask(number, due)

        await asyncio.gather(*(at(number, self.began + seconds) for number, seconds in enumerate(arrivals)))

    def body(self, number: int) -> Mapping[str, Any]:
        """The request, with the answers to the earlier ones of its conversation if it waited for them."""
        body, turn = self.requests.bodies[number], self.requests.turns[number] if self.requests.turns else 0
        return with_answers(body, (one.answer for one in self.answers[number - turn : number])) if turn else body

    async def ask(self, number: int, due: float | None = None) -> StreamEnd:
        """Send one request and receive its stream to the end. Its times begin at `due`, or now: if this process sends
        it late, the delay counts."""
        due = time.perf_counter() if due is None else due
        chunks: list[Chunk] = []
        error = ""
        try:
            async with await self.post(self.body(number)) as response:
                size = 0
                async for data in response.content.iter_any():
                    chunks.append((time.perf_counter(), data))
                    if (size := size + len(data)) > LARGEST_ANSWER:
                        raise ValueError(f"the answer is larger than {LARGEST_ANSWER >> 20} MiB")
                if response.status != 200:
                    body = b"".join(data for _, data in chunks).decode(errors="replace")
                    error = f"{response.status} {response.reason}: {refusal_text(body)}"
        except (aiohttp.ClientError, OSError, ValueError) as caught:
            error = f"{type(caught).__name__}: {caught}"[:LONGEST_ERROR]
        ended = StreamEnd(number=number, due=due, ended=time.perf_counter(), chunks=chunks, error=error)
        self.ended.put_nowait(ended)
        return ended

    async def post(self, body: Mapping[str, Any]) -> aiohttp.ClientResponse:
        """One response. A request of which nothing could be sent, because the server had just closed the kept
        connection, is sent once more, as HTTP clients do: a server that ends closes all idle connections."""
        try:
            return await self.session.post(self.requests.url, json=body)
        except aiohttp.ClientOSError as error:
            if not isinstance(error.__cause__, aiohttp.ClientConnectionResetError):
                raise
            return await self.session.post(self.requests.url, json=body)

    async def read(self) -> None:
        """Parses ended streams, one after another, until there are no more."""
        while ended := await self.ended.get():
            self.answers[ended.number] = await self.answered(ended)
            ended.read.set()

    async def answered(self, ended: StreamEnd) -> Answered:
        """Failures are in the answer's `error`."""
        start = ended.due - self.began
        if ended.error:
            return Answered(start=start, error=ended.error)
        reader = Reader()
        try:
            for count, (came, event) in enumerate(stream_events(ended.chunks), 1):
                reader.read(came, event)
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)
            may_call = "tools" in self.requests.bodies[ended.number]
            return reader.answered(start=start, due=ended.due, ended=ended.ended, may_call=may_call)
        except UNREADABLE as error:
            return Answered(start=start, error=f"{type(error).__name__}: {error}"[:LONGEST_ERROR])

    async def watch(self) -> None:
        """Samples the loop's lag at even intervals: a long lag is thus sampled several times."""
        due = self.began
        while True:
            due += TICK
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self.late.append(max(0.0, time.perf_counter() - due))

    @property
    def lag(self) -> float:
        """Seconds that an event waits for the loop, on average."""
        return sum(self.late) / len(self.late) if self.late else 0.0

    def cpu_share(self, seconds: float) -> float:
        """This process's share of one CPU."""
        return (time.process_time() - self.cpu_began) / seconds


def send_file(source: Path, target: Path, key: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # one socket per running request
    requests = Requests.from_json(source.read_text())
    gc.freeze()
    gc.disable()  # garbage collection would stop the loop; the process ends with its load
    target.write_text(json.dumps(uvloop.run(send(requests, key))) + "\n")


if __name__ == "__main__":
    send_file(Path(sys.argv[1]), Path(sys.argv[2]), os.environ.get(_KEY, ""))
