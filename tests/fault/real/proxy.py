"""A proxy on loopback between operators and a real API server. It passes on what no fault has to do with: bodies whole,
watches line by line. Operators are told apart by their tokens."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp
from aiohttp import web
from tests.fault.real.faults import hang_up, refusal
from tests.fault.real.trouble import Client, Heard, Write
from tests.support.apiserver import Running
from yarl import URL

from paceline.kube.resources import EVENT

LARGEST = 2**24
"""Bytes of a body or a line."""
KEPT = ("Content-Type", "Retry-After")
"""Headers of an answer that a client of ours reads."""
Deliver = Callable[[bytes], Awaitable[None]]
BOOKMARK = b'{"type":"BOOKMARK"'


class Proxy:
    def __init__(self, server: Running) -> None:
        self.server = server
        self.clients: dict[str, Client] = {}
        """By token."""
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        trusted = ssl.create_default_context(cafile=str(self.server.certificate))
        app = web.Application(client_max_size=LARGEST)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trusted),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=LARGEST,
        ) as self._upstream:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield
            finally:
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        client = self.clients.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if client is None or client.dead:
            return hang_up(request)
        if request.query.get("watch"):
            return await self._watch(request, client)
        client.trouble.last = asyncio.get_running_loop().time()
        body = await request.read()

        async def forward() -> web.Response:
            async with self._asked(request, body) as answer:
                kept = {name: answer.headers[name] for name in KEPT if name in answer.headers}
                return web.Response(status=answer.status, body=await answer.read(), headers=kept)

        fault = None
        if request.method != "GET" and f"/{EVENT.plural}" not in request.path:
            _, _, there = request.path.partition("/namespaces/")
            fault = client.trouble.of_write(f"{request.method} {there.partition('/')[2]}")
        if fault is None:
            return await forward()
        return await fault.answer(Write(request=request, client=client, forward=forward))

    def _asked(self, request: web.Request, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bearer {self.server.token}", "Accept": "application/json"}
        headers["Content-Type"] = request.headers.get("Content-Type", "application/json")
        url = URL(self.server.url + request.raw_path, encoded=True)
        return self._upstream.request(request.method, url, headers=headers, data=body)

    async def _watch(self, request: web.Request, client: Client) -> web.StreamResponse:
        if request.path in client.expired:
            client.expired.discard(request.path)
            client.trouble.over = True
            return refusal(410, "Expired")
        deaf = asyncio.Event()
        client.watches.add(deaf)
        try:
            async with self._asked(request, b"") as answer:
                response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
                await response.prepare(request)
                async for line in lines(answer.content):
                    if deaf.is_set():
                        break
                    if not await self._tell(request, client, line, response.write, answer.status == 200):
                        return response
                if deaf.is_set():
                    await asyncio.Event().wait()  # until the client has had enough
                return response
        finally:
            client.closed(deaf)

    async def _tell(
        self,
        request: web.Request,
        client: Client,
        line: bytes,
        deliver: Deliver,
        counts: bool,
    ) -> bool:
        """Whether the watch goes on."""
        if counts and not line.startswith(BOOKMARK):
            client.trouble.last = asyncio.get_running_loop().time()
            if fault := client.trouble.of_event(about(line)):
                return await fault.tell(Heard(request=request, client=client, line=line, deliver=deliver))
        await deliver(line)
        return True


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def about(line: bytes) -> str:
    event = json.loads(line)
    return f"{event['type']} {event['object'].get('kind')} {event['object'].get('metadata', {}).get('name')}"
