"""A transport of ours, and the API server that answers it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from paceline.kube import (
    Transport,
    connect,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def talking_to(handler: Handler, directory: Path, tries: int = 1) -> AsyncIterator[Transport]:
    """A transport whose server answers everything by `handler`."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
                "users": [{"name": "u", "user": {"token": "secret"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    try:
        async with await connect(str(kubeconfig), tries=tries) as transport:
            yield transport
    finally:
        await runner.cleanup()


def deep(levels: int, opened: str = '{"a":', closed: str = "}") -> str:
    return opened * (levels - 1) + "{}" + closed * (levels - 1)
