"""`/metrics` over HTTPS, for clients that the API server allows to `get` that path. As for its own metrics, the API
server decides whose token a client sends (TokenReview) and whether that user may (SubjectAccessReview).

While the API server does not answer, clients allowed recently still are, and all others get a 503.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from paceline.kube import ApiError, Manifest
from paceline.kube.resources import ACCESS_REVIEW, TOKEN_REVIEW

log = logging.getLogger(__name__)

PATH = "/metrics"
ALLOWED_SECONDS, REFUSED_SECONDS, AWAY_SECONDS = 60.0, 10.0, 600.0
"""Seconds for which an approval and a refusal are valid, and an approval while the API server does not answer. The last
is longer than a restart of the API server, so that alerts on these metrics do not go blind meanwhile."""
MOST_TOKENS = 256
"""Maximum cached answers. Each of a client's further tokens costs a request, at five per second."""
LONGEST_TOKEN = 16 * 2**10
CERTIFICATE_SECONDS = 60.0

Review = Callable[[Manifest], Awaitable[Manifest]]
"""Creates a review; its status has the answer."""


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    status: int
    at: float

    def holds(self, now: float) -> bool:
        return now - self.at < (ALLOWED_SECONDS if self.status == 200 else REFUSED_SECONDS)


@dataclass(slots=True)
class Readers:
    """Decides who may read. Tokens are stored as hashes."""

    ask: Review
    clock: Callable[[], float] = time.monotonic
    _known: dict[bytes, ReviewAnswer] = field(default_factory=dict)

    async def status(self, authorization: str) -> int:
        """200; 401 for a token that the API server does not know; 403 for a client without permission; 503 if it does
        not answer."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip() or len(token) > LONGEST_TOKEN:
            return 401
        key, now = sha256(token.strip().encode()).digest(), self.clock()
        known = self._known.get(key)
        if known and known.holds(now):
            return known.status
        try:
            status = await self._ask(token.strip())
        except ApiError as error:
            log.warning("could not check who may read the metrics: %s", error)
            return 200 if known and known.status == 200 and now - known.at < AWAY_SECONDS else 503
        self._keep(key, ReviewAnswer(status, now))
        return status

    def _keep(self, key: bytes, answer: ReviewAnswer) -> None:
        self._known.pop(key, None)
        while len(self._known) >= MOST_TOKENS:  # drop the oldest answer
            del self._known[next(iter(self._known))]
        self._known[key] = answer

    async def _ask(self, token: str) -> int:
        said = (await self.ask(_review(TOKEN_REVIEW.api_version, TOKEN_REVIEW.kind, {"token": token})))["status"]
        if not said.get("authenticated"):
            return 401
        user = said["user"]
        who = {name: user[field] for name, field in OF_A_USER.items() if user.get(field)}
        spec = {**who, "nonResourceAttributes": {"path": PATH, "verb": "get"}}
        may = (await self.ask(_review(ACCESS_REVIEW.api_version, ACCESS_REVIEW.kind, spec)))["status"]
        return 200 if may.get("allowed") else 403


OF_A_USER: Mapping[str, str] = {"user": "username", "groups": "groups", "uid": "uid", "extra": "extra"}
"""Field of a SubjectAccessReview → field of a TokenReview."""


def _review(api_version: str, kind: str, spec: Mapping[str, Any]) -> Manifest:
    """Both kinds of review need a metadata without a name."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": ""}, "spec": dict(spec)}


@asynccontextmanager
async def authenticated(readers: Readers, directory: str, port: int) -> AsyncIterator[None]:
    """Serve the metrics with the certificate in `directory` while the context lasts; do nothing if it is empty."""
    if not directory:
        yield
        return
    place = Path(directory)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load(tls, place)
    app = web.Application()
    app.router.add_get(PATH, _page(readers))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    renewing = asyncio.create_task(_renew(tls, place))
    try:
        await web.TCPSite(runner, port=port, ssl_context=tls).start()
        yield
    finally:
        renewing.cancel()
        await runner.cleanup()


def _page(readers: Readers) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        status = await readers.status(request.headers.get("Authorization", ""))
        if status != 200:
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return web.Response(status=status, headers=headers)
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        page = await asyncio.to_thread(encode, REGISTRY)  # takes a while for thousands of objects
        response = web.Response(body=page, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return answer


async def _renew(tls: ssl.SSLContext, directory: Path) -> None:
    """Use a replaced certificate for new connections."""
    loaded = _stamp(directory)
    while True:
        await asyncio.sleep(CERTIFICATE_SECONDS)
        # files are being replaced, or certificate and key do not match yet (ssl.SSLError is an OSError)
        with suppress(OSError):
            if (now := _stamp(directory)) != loaded:
                _load(tls, directory)
                loaded = now


def _stamp(directory: Path) -> tuple[int, int]:
    return (directory / "tls.crt").stat().st_mtime_ns, (directory / "tls.key").stat().st_mtime_ns


def _load(tls: ssl.SSLContext, directory: Path) -> None:
    tls.load_cert_chain(directory / "tls.crt", directory / "tls.key")
