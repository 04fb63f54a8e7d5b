"""A server that is not what it seems: the real emulator behind a proxy that misbehaves.

`python proxy.py WAY[,WAY…] --port N -- EMULATOR…` starts the emulator on a port of its own and stands in its place at
N. A way is a function that answers a request; what it does not care about goes through as it is. Of several ways each
has a workload of its own: the next one begins when the counters are read before it.
"""

import argparse
import asyncio
import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientError, ClientSession, ClientTimeout, web

CHAT, MODELS, INFO, METRICS, FLUSH = "/v1/chat/completions", "/v1/models", "/server_info", "/metrics", "/flush_cache"
VERIFY_CALLS = re.compile(r"(spec_verify_calls_total\{[^}]*\} )\S+")
ACCEPT_LENGTH = re.compile(r'("avg_spec_accept_length": ?)[\d.]+')
FIRST = 1
DONE = b"data: [DONE]\n\n"


@dataclass
class Proxy:
    """The server behind; how often its counters were read: once at first, then before and after each workload; and how
    many requests for text have come since its cache was emptied."""

    argv: list[str]
    session: ClientSession
    port: int = 0
    looks: int = 0
    asked: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = int(listener.getsockname()[1])
        self.process = subprocess.Popen([*self.argv, "--port", str(self.port)])

    async def restart(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.start()
        while True:
            await asyncio.sleep(0.05)
            try:
                async with self.session.get(f"http://127.0.0.1:{self.port}/ready") as answer:
                    if answer.status == 200:
                        return
            except ClientError:
                continue

    async def page(self, request: web.Request) -> tuple[int, str]:
        """What the server answers, whole."""
        url = f"http://127.0.0.1:{self.port}{request.path_qs}"
        async with self.session.request(request.method, url, data=await request.read()) as answer:
            return answer.status, await answer.text()

    async def events(self, request: web.Request, **changed: object) -> AsyncIterator[bytes]:
        """Of a streamed answer, one after another; `changed` are fields of the request."""
        url = f"http://127.0.0.1:{self.port}{request.path_qs}"
        async with self.session.post(url, json={**await request.json(), **changed}) as answer:
            rest = b""
            async for part in answer.content.iter_any():
                *whole, rest = (rest + part).split(b"\n\n")
                for event in whole:
                    yield event + b"\n\n"


async def through(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """As the server itself answers."""
    if request.path == CHAT and (await request.json()).get("stream"):
        return await stream(request, proxy.events(request))
    status, body = await proxy.page(request)
    return web.Response(status=status, text=body)


async def stream(request: web.Request, events: AsyncIterator[bytes], *, end: bool = True) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    async for event in events:
        await response.write(event)
    if end:
        await response.write_eof()
    return response


async def page(proxy: Proxy, request: web.Request, path: str, change: Callable[[str], str]) -> web.StreamResponse:
    """One page is changed; before it is one, and the rest, it goes through."""
    if request.path != path:
        return await through(proxy, request)
    status, body = await proxy.page(request)
    return web.Response(status=status, text=change(body) if status == 200 else body)


Way = Callable[[Proxy, web.Request], Awaitable[web.StreamResponse]]
FAILED = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'


def has_text(event: bytes) -> bool:
    return b'"content":"' in event and b'"content":""' not in event


async def beginning(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Some of the text, and nothing after it."""
    pieces = 0
    async for event in events:
        pieces += has_text(event)
        if pieces < 4:
            yield event


async def an_error_in_place_of_text(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Every second answer is a 200, and then an error inside the stream."""
    if request.path != CHAT or proxy.asked % 2:
        return await through(proxy, request)

    async def events() -> AsyncIterator[bytes]:
        yield FAILED
        yield DONE

    return await stream(request, events())


async def an_error_behind_some_text(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """One answer begins well and ends in an error inside the stream, as SGLang tells that it has aborted a request: it
    goes on to the usage, and counts the request as any other (serving_chat.py:2568-2797 of 0.5.23)."""
    if request.path != CHAT or proxy.asked != FIRST:
        return await through(proxy, request)

    async def events() -> AsyncIterator[bytes]:
        pieces = 0
        async for event in proxy.events(request):
            pieces += has_text(event)
            if pieces == 3 and has_text(event):
                async with proxy.session.post(f"http://127.0.0.1:{proxy.port}/abort_request", json={"abort_all": True}):
                    pass
            if b'"abort"' in event:
                yield FAILED
            elif pieces <= 3 or not has_text(event):
                yield event

    return await stream(request, events())


async def a_connection_that_breaks(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """One is closed in the middle of an answer."""
    if request.path != CHAT or proxy.asked != FIRST:
        return await through(proxy, request)
    response = await stream(request, beginning(proxy.events(request)), end=False)
    assert request.transport is not None
    request.transport.abort()
    return response


async def a_stream_that_ends_early(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """One answer stops in the middle, in good order."""
    if request.path != CHAT or proxy.asked != FIRST:
        return await through(proxy, request)
    return await stream(request, beginning(proxy.events(request)))


async def every_second_request_fails(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    if request.path != CHAT or proxy.asked % 2:
        return await through(proxy, request)
    return web.json_response({"error": "out of memory"}, status=500)


async def no_such_page(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """All requests are 404, as behind a wrong path."""
    if request.path != CHAT:
        return await through(proxy, request)
    return web.json_response({"detail": "Not Found"}, status=404)


async def shorter_answers(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    if request.path != CHAT:
        return await through(proxy, request)
    most = (await request.json())["max_completion_tokens"]
    return await stream(request, proxy.events(request, max_completion_tokens=most // 2))


async def retractions(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """As many as there were answers."""
    counter = f'sglang:num_retracted_requests_total{{model_name="pair"}} {proxy.asked}\n'
    return await page(proxy, request, METRICS, lambda body: body + counter)


async def no_verify_calls(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return await page(proxy, request, METRICS, lambda body: body.replace("spec_verify_calls_total", "spec_other_total"))


async def verify_calls_that_are_no_number(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return await page(proxy, request, METRICS, lambda body: VERIFY_CALLS.sub(r"\1NaN", body))


async def no_acceptance_length(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return await page(proxy, request, INFO, lambda body: body.replace("avg_spec_accept_length", "other"))


async def an_acceptance_length_that_is_no_number(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return await page(proxy, request, INFO, lambda body: ACCEPT_LENGTH.sub(r"\1NaN", body))


async def another_model(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return await page(proxy, request, MODELS, lambda body: body.replace('"pair"', '"other"'))


async def speculation_in_words_alone(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """A server without speculation that says it has it."""
    words = {"speculative_num_steps": 3, "speculative_num_draft_tokens": 8, "speculative_algorithm": "EAGLE3"}
    return await page(proxy, request, INFO, lambda body: json.dumps(json.loads(body) | words))


async def a_restart(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """In the middle of a workload another process takes its place; whoever asks waits, and all are answered."""
    if request.path == CHAT and proxy.looks == 2 and proxy.asked == FIRST + 2:
        await proxy.restart()
    return await through(proxy, request)


async def other_traffic(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Somebody else asks the server, too."""
    if request.path == CHAT and proxy.asked == FIRST:
        async for _ in proxy.events(request):
            pass
    return await through(proxy, request)


async def a_cache_that_is_not_emptied(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    return web.Response(text="Cache flushed.") if request.path == FLUSH else await through(proxy, request)


async def a_slow_gpu(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Every piece of text takes some milliseconds more."""
    if request.path != CHAT:
        return await through(proxy, request)

    async def events() -> AsyncIterator[bytes]:
        async for event in proxy.events(request):
            await asyncio.sleep(0.01)
            yield event

    return await stream(request, events())


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        through,
        an_error_in_place_of_text,
        an_error_behind_some_text,
        a_connection_that_breaks,
        a_stream_that_ends_early,
        every_second_request_fails,
        no_such_page,
        shorter_answers,
        retractions,
        no_verify_calls,
        verify_calls_that_are_no_number,
        no_acceptance_length,
        an_acceptance_length_that_is_no_number,
        another_model,
        speculation_in_words_alone,
        a_restart,
        other_traffic,
        a_cache_that_is_not_emptied,
        a_slow_gpu,
    )
}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ways")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("argv", nargs="+")
    options = parser.parse_args()
    ways = [WAYS[name] for name in options.ways.split(",")]
    async with ClientSession(timeout=ClientTimeout(total=None)) as session:
        proxy = Proxy(options.argv, session)
        proxy.start()

        async def answer(request: web.Request) -> web.StreamResponse:
            if request.path == FLUSH:
                proxy.asked = 0
            proxy.looks += request.path == METRICS
            proxy.asked += request.path == CHAT
            try:
                return await ways[min(max(proxy.looks // 2, 1), len(ways)) - 1](proxy, request)
            except ClientError as error:  # it is not up yet, or down again
                return web.Response(status=502, text=str(error))

        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", options.port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
