"""The liveness endpoint: there from the start, so that a replica is not killed for waiting for the Lease."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Check = Callable[[], str | None]
"""What is wrong; None if nothing is."""


class Health:
    """`check` may be replaced as the process gets on."""

    def __init__(self) -> None:
        self.check: Check = lambda: None

    async def answer(self, _: web.Request) -> web.Response:
        fault = self.check()
        return web.Response(text=fault or "ok", status=500 if fault else 200)


@asynccontextmanager
async def serving(health: Health, port: int) -> AsyncIterator[None]:
    """`GET /healthz` on all addresses while the context lasts. It answers only while the event loop runs."""
    app = web.Application()
    app.router.add_get("/healthz", health.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()
