"""Whether the API server answers at all: this tells a watch that is dead from a server that is away."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

from paceline.kube.errors import ApiError
from paceline.kube.interface import Api
from paceline.kube.resources import Ref

GAP = 60.0
"""Seconds without any answer after which the server counts as away."""
ASK = 15.0
"""Seconds without any answer after which the server is asked anew. With the time-out of a request less than a gap."""


class Contact:
    """When the API server answered whom of this process. `heard` is told of every answer, on any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._last: float | None = None

    def heard(self, status: int) -> None:
        """A request has ended with this HTTP status; 0: without an answer. A refusal is an answer, a failure is none:
        what stands before an API server that is away says 502, 503 and 504."""
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
        """For how many seconds the server has answered without a gap; 0 while it does not."""
        return 0.0 if self._last is None or self.silent > GAP else self._clock() - self._since


async def ask_anew(
    contact: Contact, reach: Callable[[], Awaitable[AbstractAsyncContextManager[Api]]], about: Ref
) -> None:
    """Until cancelled: ask on a connection of its own, with the credentials and certificates of today, whenever nothing
    has been answered for a while. A server that answers this and none of our watches is not away. `reach` gives an Api
    that tells `contact` of its answers."""
    while True:
        await asyncio.sleep(ASK)
        if contact.silent >= ASK:
            with suppress(ApiError, OSError, ValueError):
                async with await reach() as api:
                    await api.get(about)
