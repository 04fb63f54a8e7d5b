"""One case: which fault hits its operators, where, and what came of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(eq=False)
class Trouble:
    """`fault` hits the write, or the event of a watch, of number `at`, from 1. Both are counted over all operators of
    the case while it is `armed`; Kubernetes' Events are no writes, and bookmarks no events."""

    fault: "WriteFault | WatchFault | None" = None
    at: int = 0
    armed: bool = False
    writes: int = 0
    events: int = 0
    hit: str = ""
    over: bool = True
    """Nothing of it is still to come."""
    last: float = 0.0
    """When an operator of the case last asked for anything but a watch, or was told an event, by the loop's clock."""

    def of_write(self, what: str) -> "WriteFault | None":
        self.writes += self.armed
        if not (self.armed and isinstance(self.fault, WriteFault) and self.writes == self.at):
            return None
        self.hit, self.over = what, False
        return self.fault

    def of_event(self, what: str) -> "WatchFault | None":
        self.events += self.armed
        if not (self.armed and isinstance(self.fault, WatchFault) and self.events == self.at):
            return None
        self.hit, self.over = what, False
        return self.fault


@dataclass(eq=False)
class Client:
    """One operator, as the proxy knows it."""

    trouble: Trouble
    kill: Callable[[], None]
    """Ends the process; another one comes."""
    second: Callable[[], None]
    """Starts another operator beside it."""
    dead: bool = False
    expired: set[str] = field(default_factory=set)
    """Paths of which the next watch is too old."""
    watches: set[asyncio.Event] = field(default_factory=set)
    """One for each that is open; set: it tells nothing more."""

    def end(self) -> None:
        self.dead = True
        self.kill()

    def closed(self, watch: asyncio.Event) -> None:
        self.watches.discard(watch)
        if watch.is_set() and not any(other.is_set() for other in self.watches):
            self.trouble.over = True


@dataclass(frozen=True, kw_only=True)
class Write:
    """A request that waits in the proxy."""

    request: web.Request
    client: Client
    forward: Callable[[], Awaitable[web.Response]]


@dataclass(frozen=True, kw_only=True)
class Heard:
    """An event that waits in the proxy. `deliver` passes a line on; it ends the watch if the fault returns False."""

    request: web.Request
    client: Client
    line: bytes
    deliver: Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True)
class WriteFault:
    name: str
    answer: Callable[[Write], Awaitable[web.Response]]


@dataclass(frozen=True)
class WatchFault:
    name: str
    tell: Callable[[Heard], Awaitable[bool]]
    """Whether the watch goes on."""
