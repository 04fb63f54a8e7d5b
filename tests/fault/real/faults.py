"""What goes wrong between an operator and the API server: around a write, or at an event of a watch."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from tests.fault.real.trouble import Heard, WatchFault, Write, WriteFault

from paceline.kube.transport import REQUEST_TIMEOUT

GAP_SECONDS = 2.0
"""How long an event is late, and how long a watch misses events: rounds take some tenths of that."""
RETRY_AFTER = 1
INJECTED = "injected: the server says no"


def hang_up(request: web.Request) -> web.Response:
    """The connection is gone, and nobody was answered."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def status(code: int, reason: str) -> dict[str, object]:
    kind = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return kind | {"code": code, "reason": reason, "message": INJECTED}


def refusal(code: int, reason: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(status(code, reason), status=code, headers=headers)


async def crash_before(write: Write) -> web.Response:
    write.client.end()
    write.client.trouble.over = True
    return hang_up(write.request)


async def crash_after(write: Write) -> web.Response:
    await write.forward()
    return await crash_before(write)


async def never_arrives(write: Write) -> web.Response:
    write.client.trouble.over = True
    return hang_up(write.request)


async def response_lost(write: Write) -> web.Response:
    await write.forward()
    return await never_arrives(write)


async def timed_out(write: Write) -> web.Response:
    """It is done, and the answer comes later than the operator waits for it."""
    try:
        await write.forward()
        await asyncio.sleep(2 * (REQUEST_TIMEOUT.total or 0))
    finally:
        write.client.trouble.over = True
    return hang_up(write.request)


def refused(
    code: int, reason: str, headers: Mapping[str, str] | None = None
) -> Callable[[Write], Awaitable[web.Response]]:
    async def answer(write: Write) -> web.Response:
        write.client.trouble.over = True
        return refusal(code, reason, headers)

    return answer


async def cut(heard: Heard) -> bool:
    """The event is told by the next watch."""
    heard.client.trouble.over = True
    hang_up(heard.request)
    return False


async def gone(heard: Heard) -> bool:
    heard.client.trouble.over = True
    await heard.deliver(json.dumps({"type": "ERROR", "object": status(410, "Expired")}).encode() + b"\n")
    return False


async def missed(heard: Heard) -> bool:
    """What happens in the gap is not told, and the next watch is too old: all must be listed again."""
    await asyncio.sleep(GAP_SECONDS)
    heard.client.expired.add(heard.request.path)
    hang_up(heard.request)
    return False


async def twice(heard: Heard) -> bool:
    heard.client.trouble.over = True
    await heard.deliver(heard.line)
    await heard.deliver(heard.line)
    return True


async def late(heard: Heard) -> bool:
    """What this watch tells is old, while other watches and what is read go on."""
    await asyncio.sleep(GAP_SECONDS)
    heard.client.trouble.over = True
    await heard.deliver(heard.line)
    return True


async def silence(heard: Heard) -> bool:
    """All watches are open and tell nothing, until the operator takes them for dead."""
    for watch in heard.client.watches:
        watch.set()
    await asyncio.Event().wait()
    return False


async def second_operator(heard: Heard) -> bool:
    heard.client.trouble.over = True
    heard.client.second()
    await heard.deliver(heard.line)
    return True


async def killed(heard: Heard) -> bool:
    heard.client.end()
    return await cut(heard)


OF_WRITES = (
    WriteFault("crash before", crash_before),
    WriteFault("crash after", crash_after),
    WriteFault("never arrives", never_arrives),
    WriteFault("response lost", response_lost),
    WriteFault("time-out", timed_out),
    WriteFault("409", refused(409, "Conflict")),
    WriteFault("422", refused(422, "Invalid")),
    WriteFault("429", refused(429, "TooManyRequests", {"Retry-After": str(RETRY_AFTER)})),
    WriteFault("500", refused(500, "InternalError")),
)
OF_WATCHES = (
    WatchFault("watch cut", cut),
    WatchFault("410", gone),
    WatchFault("event missed", missed),
    WatchFault("event twice", twice),
    WatchFault("event late", late),
    WatchFault("silence", silence),
    WatchFault("second operator", second_operator),
    WatchFault("killed", killed),
)
