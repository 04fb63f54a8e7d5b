"""Whether the API server answers at all: tells a dead watch from an unreachable server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

from paceline.kube.errors import ApiError
from paceline.kube.interface import Api
from paceline.kube.resources import Ref

GAP = 60.0
"""Seconds without any answer after which the server counts as unreachable."""
ASK = 15.0
"""Seconds without an answer after which a probe is sent. With a request's timeout added, it is less than `GAP`."""


class Contact:
    """When the API server last answered this process. Call `heard` for every answer; it may run on any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._last: float | None = None

    def heard(self, status: int) -> None:
        """A request ended with this HTTP status (0: no answer). A refusal counts as an answer; 5xx does not, because
        proxies in front of an unreachable API server send 502, 503 and 504."""
        if not 0 < status < 500:
            return
        now = self._clock()
        if self._last is None or now - self._last > GAP:
            self._since = now
        self._last = now

    @property
    def silent(self) -> float:
        """Seconds since the last answer, or since this process began."""
        return self._clock() - (self._since if self._last is None else self._last)

    @property
    def answering(self) -> float:
        """For how many seconds the server has answered without a gap; 0 while it does not answer."""
        return 0.0 if self._last is None or self.silent > GAP else self._clock() - self._since


async def ask_anew(
    contact: Contact, reach: Callable[[], Awaitable[AbstractAsyncContextManager[Api]]], about: Ref
) -> None:
    """Probe the server until cancelled, on a separate connection with freshly read credentials and certificates,
    whenever nothing was answered for a while. A server that answers the probe, but none of our watches, is reachable.
    `reach` gives an Api that reports its answers to `contact`."""
    while True:
        await asyncio.sleep(ASK)
        if contact.silent >= ASK:
            with suppress(ApiError, OSError, ValueError):
                async with await reach() as api:
                    await api.get(about)
