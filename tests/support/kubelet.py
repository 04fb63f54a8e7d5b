"""What an API server without nodes lacks to read a log: kubelets, all of them one HTTPS server on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aiohttp import web

from paceline.kube import Conflict, Transport

Logs = dict[tuple[str, str], str]
"""Namespace and pod → the log of its client."""


@asynccontextmanager
async def kubelets(api: Transport, certificate: Path, nodes: Iterable[str]) -> AsyncIterator[Logs]:
    """`certificate` is the API server's own, with its key beside it: it asks kubelets for none that it knows."""
    logs: Logs = {}

    async def log(request: web.Request) -> web.Response:
        pod = request.match_info["namespace"], request.match_info["pod"]
        return web.Response(text=logs.get(pod, "")) if pod in logs else web.Response(status=404)

    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", log)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        await asyncio.gather(*(_node(api, name, runner.addresses[0][1]) for name in nodes))
        yield logs
    finally:
        await runner.cleanup()


async def _node(api: Transport, name: str, port: int) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    with suppress(Conflict):
        await api.create(node)
    address = {"type": "InternalIP", "address": "127.0.0.1"}
    status = {"addresses": [address], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    await api.replace_status({**node, "status": status})
