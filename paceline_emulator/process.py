"""A loaded server as a process: it listens, is ready, drains on SIGTERM, and leaves on SIGINT.

SIGTERM is SGLang's (managers/tokenizer_manager.py:3508): it goes on listening and accepting, keeps its connections, and
ends once it finds no request. SIGINT is uvicorn's (`Server.shutdown`): it listens no longer, closes each connection
with the answer that is under way on it, and ends with the last.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from aiohttp import web

from paceline_emulator.log import say
from paceline_emulator.server import Server, Status, die

DRAIN_LAST = 0.2
"""Seconds left to write the last answers."""
LOOK = 0.1
"""Seconds between two looks whether all connections are closed; uvicorn's."""


class Connections:
    """Those of an application's clients."""

    def __init__(self, application: web.Application) -> None:
        self._answering: set[web.RequestHandler] = set()
        self._leaving = False
        application.middlewares.insert(0, self._noted)
        application.on_response_prepare.append(self._last)

    async def leave(self, server: web.Server) -> None:
        """Close them as they are answered; comes back when none is left."""
        self._leaving = True
        for connection in server.connections:
            if connection in self._answering:
                connection.close()
            else:
                _end(connection.transport)
                connection.force_close()
        while server.connections:  # noqa: ASYNC110 aiohttp has no event for it
            await asyncio.sleep(LOOK)

    @web.middleware
    async def _noted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self._answering.add(request.protocol)
        try:
            answer = await handler(request)
            await answer.prepare(request)
            await answer.write_eof()
            if self._leaving:
                _end(request.transport)
            return answer
        finally:
            self._answering.discard(request.protocol)

    async def _last(self, _: web.Request, response: web.StreamResponse) -> None:
        if self._leaving:
            response.headers["Connection"] = "close"


def _end(transport: asyncio.BaseTransport | None) -> None:
    """At once, not in a later step of the loop: a client that is still busy with its answer sends nothing after it."""
    if isinstance(transport, asyncio.Transport) and not transport.is_closing():
        transport.write_eof()


async def listen(server: Server, application: web.Application) -> int:
    """The exit code: 1 where the address is taken, else 0, once it was told to stop and has drained."""
    connections = Connections(application)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=DRAIN_LAST)
    await runner.setup()
    host, port = server.launch.args["host"], server.launch.args["port"]
    try:
        site = web.TCPSite(runner, host, port, backlog=1024)
        await site.start()
    except OSError as problem:
        say(
            f"ERROR:    [Errno {problem.errno}] error while attempting to bind on address ({host!r}, {port}): {problem}"
        )
        return 1
    say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    await server.warm_up()
    if server.launch.states and server.launch.states.dies:
        die(server.launch.states.dies)
    server.status = Status.READY
    say("The server is fired up and ready to roll!")
    loop, told, interrupted = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, told.set)
    loop.add_signal_handler(signal.SIGINT, interrupted.set)

    async def drained() -> None:
        await told.wait()
        await _drain(server)

    async def left() -> None:
        await interrupted.wait()
        await site.stop()
        assert runner.server
        await connections.leave(runner.server)

    ends = [asyncio.create_task(drained()), asyncio.create_task(left())]
    first, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await runner.cleanup()
    if ends[1] in first:  # uvicorn ends as if the signal had never been caught
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    return 0


async def _drain(server: Server) -> None:
    """/health and /ready say 503; requests are still accepted; ends when none is left, however long that takes."""
    server.status = Status.DRAINING
    say("SIGTERM received. signum=15. Draining requests and shutting down...")
    while not server.settings.force_shutdown:
        await asyncio.sleep(server.settings.drain_poll)
        remaining = list(server.jobs)
        say(f"Gracefully exiting... Remaining number of requests {len(remaining)}. {remaining[:10]}")
        if not remaining:
            await asyncio.sleep(DRAIN_LAST)
            return
