"""The endpoints of the kubelet's probes: whether a restart would help, and whether this process could work now.

A restart helps if a watch is silent although the server answers, and if passes do not end. It does not help while the
API server is unreachable: the process then waits and is not ready.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from paceline.controller.cluster import WatchedCluster
from paceline.kube import Contact, Leading

SILENT_SECONDS = 300.0
"""A watch ends by itself within 75 s, which counts as activity; a longer silence means that it is dead."""
STUCK_SECONDS = 300.0
AWAY_SECONDS = 60.0
"""Seconds without any answer of the API server after which a process is not ready."""


@dataclass(slots=True, kw_only=True)
class Health:
    """`led` is set once this process leads; before, it stands by."""

    cluster: WatchedCluster
    contact: Contact
    led: Leading | None = None

    def fault(self) -> str | None:
        """Why this process should be restarted; None if that would not help. A long queue is not a reason if passes
        end; neither are refusals."""
        if self.led and self.led.lost.is_set():
            return "the lease is lost"
        answering = self.contact.answering
        for reflector in self.cluster.reflectors:
            silent = min(reflector.unanswered, answering)
            if silent > SILENT_SECONDS:
                return (
                    f"the watch of {reflector.resource.plural} has heard nothing for {silent:.0f} s, but other "
                    "requests are answered"
                )
        if self.led and self.cluster.queue.stuck > STUCK_SECONDS:
            return f"no pass has finished for {self.cluster.queue.stuck:.0f} s"
        return None

    def unready(self) -> str | None:
        """Why this process could not work now, if it had the lease; None if it could."""
        if fault := self.fault():
            return fault
        if self.contact.silent > AWAY_SECONDS:
            return f"the API server has not answered for {self.contact.silent:.0f} s"
        missing = sorted({each.resource.plural for each in self.cluster.reflectors if not each.synced.is_set()})
        if missing:
            return f"not listed yet: {', '.join(missing)}"
        late = max(self.cluster.reflectors, key=lambda each: each.age)
        if late.age > SILENT_SECONDS:
            return f"the watch of {late.resource.plural} has heard nothing for {late.age:.0f} s"
        return None


@asynccontextmanager
async def serving(health: Health, port: int) -> AsyncIterator[None]:
    """`GET /healthz` and `/readyz` on all addresses while the context lasts. They respond only while the event loop
    runs, and from the start, so that a replica is not killed while it waits for the Lease."""
    app = web.Application()
    app.router.add_get("/healthz", _answer(health.fault))
    app.router.add_get("/readyz", _answer(health.unready))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port).start()
        yield
    finally:
        await runner.cleanup()


def _answer(check: Callable[[], str | None]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        fault = check()
        return web.Response(text=fault or "ok", status=500 if fault else 200)

    return answer
