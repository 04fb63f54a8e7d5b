"""The liveness endpoint. It runs from the start, so that a replica is not killed while it waits for the Lease."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Check = Callable[[], str | None]
"""Returns a fault, or None if the process is healthy."""


class Health:
    """`check` is replaced once the process works."""

    def __init__(self) -> None:
        self.check: Check = lambda: None

    async def answer(self, _: web.Request) -> web.Response:
        fault = self.check()
        return web.Response(text=fault or "ok", status=500 if fault else 200)


@asynccontextmanager
async def serving(health: Health, port: int) -> AsyncIterator[None]:
    """`GET /healthz` on all addresses while the context lasts. It responds only while the event loop runs."""
    app = web.Application()
    app.router.add_get("/healthz", health.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
