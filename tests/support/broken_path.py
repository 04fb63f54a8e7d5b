"""What stands between the operator and a real API server: passes everything on, until it is told not to.

    async with between(apiserver, directory) as path:      # path.kubeconfig
        path.treat = lambda request: HANG if request.path.endswith("/pods") else PASS
        await path.close(); await path.open()               # away, and back

Plain HTTP on loopback to the operator, TLS to the server.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from tests.support.apiserver import Running, _free_ports

PASS_BY = ("Authorization", "Content-Type", "Accept")
LONG = 3600.0


class Treat(Enum):
    PASS = "pass"
    HANG = "hang"
    """The connection stays, and no byte comes any more."""


@dataclass
class Between:
    kubeconfig: Path
    server: Running
    session: ClientSession
    port: int
    treat: Callable[[web.Request], Treat] = lambda _: Treat.PASS
    asked: list[str] = field(default_factory=list)
    """"METHOD path" of each request that came."""
    _runner: web.AppRunner | None = None

    async def open(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def close(self) -> None:
        """Every connection ends, and none is accepted."""
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if self.treat(request) is Treat.HANG and "watch" not in request.query:
            await asyncio.sleep(LONG)
        headers = {name: request.headers[name] for name in PASS_BY if name in request.headers}
        url = self.server.url + request.raw_path
        body = await request.read() or None
        async with self.session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            while True:
                try:
                    async with asyncio.timeout(0.2):
                        chunk = await answer.content.readany()
                except TimeoutError:
                    chunk = None
                except ClientError:
                    chunk = b""
                while self.treat(request) is Treat.HANG:  # noqa: ASYNC110 (a test changes its mind)
                    await asyncio.sleep(0.2)
                if chunk == b"":
                    return response
                if chunk is not None:
                    await response.write(chunk)


@asynccontextmanager
async def between(server: Running, directory: Path) -> AsyncIterator[Between]:
    (port,) = _free_ports(1)
    config = json.loads(server.kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{port}"}
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    trusted = ssl.create_default_context(cafile=str(server.certificate))
    connector = TCPConnector(limit=0, ssl=trusted)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=None), auto_decompress=False) as session:
        path = Between(kubeconfig, server, session, port)
        await path.open()
        try:
            yield path
        finally:
            await path.close()
