"""`python -m tests.oracles.stream PORT SCRIPT`: a server that streams answers by the clock, for clients to be compared.

SCRIPT is JSON: a list of pieces, each the milliseconds after a request's arrival at which it is sent and the number of
tokens in it. Every request gets these pieces. It speaks as much of OpenAI's API as SGLang does, costs little of a CPU
(nothing is parsed but a request's length), and so leaves one for the client.
"""

import asyncio
import heapq
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Script = Sequence[tuple[float, int]]
"""Of an answer: milliseconds after the arrival of its request, and tokens."""
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
CONTENT_LENGTH = re.compile(rb"(?i)content-length: *([0-9]+)")
NOTHING = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n\r\n"
"""To whoever looks whether there is a server, or asks for its metrics."""
ROOT = Path(__file__).parents[2]
TICK = 0.001


def event(fields: object) -> bytes:
    """One event of a stream, as a chunk."""
    data = f"data: {json.dumps(fields)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def pieces(script: Script, prompt_tokens: int = 20) -> list[tuple[float, bytes]]:
    """Seconds after the request, and what is sent then."""
    same = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stream"}

    def choice(delta: object, reason: str | None = None) -> object:
        return {**same, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    total = sum(tokens for _, tokens in script)
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": total, "total_tokens": prompt_tokens + total}
    sent = [(ms / 1000, event(choice({"content": " word" * tokens}))) for ms, tokens in script]
    last = sent[-1][0]
    first = event(choice({"role": "assistant", "content": ""}))
    closing = event(choice({}, "stop")) + event({**same, "choices": [], "usage": usage})
    return [(sent[0][0], first + sent[0][1]), *sent[1:], (last, closing + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")]


class Stream:
    """All answers are sent by one timer, so that thousands of them cost no thousands of timers."""

    def __init__(self, script: Script) -> None:
        self.pieces = pieces(script)
        self.due: list[tuple[float, int, int, asyncio.Transport]] = []
        self.number = 0

    def begin(self, transport: asyncio.Transport) -> None:
        self.number += 1
        now = asyncio.get_running_loop().time()
        transport.write(HEAD)
        heapq.heappush(self.due, (now + self.pieces[0][0], self.number, 0, transport))

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            while self.due and self.due[0][0] <= now:
                at, number, place, transport = heapq.heappop(self.due)
                transport.write(self.pieces[place][1])
                if place + 1 < len(self.pieces):
                    following = at - self.pieces[place][0] + self.pieces[place + 1][0]
                    heapq.heappush(self.due, (following, number, place + 1, transport))
            await asyncio.sleep(max(TICK / 4, self.due[0][0] - loop.time()) if self.due else TICK)


class Request(asyncio.Protocol):
    """One connection: answers each request on it once its body is there."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.read = stream, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.read += data
        head, found, body = self.read.partition(b"\r\n\r\n")
        if not found:
            return
        length = CONTENT_LENGTH.search(head)
        if length is None:
            self.read = body
            self.transport.write(NOTHING)
        elif len(body) >= int(length[1]):
            self.read = body[int(length[1]) :]
            self.stream.begin(self.transport)


async def serve(port: int, script: Script) -> None:
    stream = Stream(script)
    server = await asyncio.get_running_loop().create_server(lambda: Request(stream), "127.0.0.1", port, backlog=8192)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stream.run()


@contextmanager
def streaming(script: Script) -> Iterator[str]:
    """The address of completions of such a server."""
    argv = [sys.executable, "-m", "tests.oracles.stream", "0", json.dumps(script)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1/chat/completions"
        server.kill()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), json.loads(sys.argv[2])))
