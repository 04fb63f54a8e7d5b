"""A token bucket: the client's own limit on requests per second."""

import asyncio
import time
from collections.abc import Awaitable, Callable

QPS, BURST = 100.0, 200
"""Defaults of a client. The API server shares its capacity among clients (priority and fairness); this limit guards
against an operator that repeats requests without end. 20 promotions at once take some 35 requests each, and a start
with 5,000 objects 700."""


class Throttle:
    """On average `qps` requests per second, and up to `burst` at once after a pause. First come, first served."""

    def __init__(
        self,
        qps: float = QPS,
        burst: int = BURST,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._interval = 1 / qps
        self._slack = (burst - 1) * self._interval
        self._clock = clock
        self._sleep = sleep
        self._next = clock() - self._slack
        """The earliest time of the next request; at most `_slack` behind `now`, which allows the burst."""

    async def take(self) -> None:
        """Return when the request may be sent."""
        now = self._clock()
        self._next = max(self._next, now - self._slack)
        wait = self._next - now
        self._next += self._interval
        if wait > 0:
            await self._sleep(wait)
