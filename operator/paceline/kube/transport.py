"""The API over HTTP: `kubernetes.aio` for configuration, TLS and tokens; plain dicts for everything else."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp
import kubernetes.aio.config
from kubernetes.aio.client import ApiClient, Configuration

from paceline.kube.errors import Conflict, NotFound, TooManyRequests, Unavailable, error_of
from paceline.kube.interface import PAGE, Listing, WatchEvent
from paceline.kube.reading import BESIDE, LONGEST_LINE, TooLong, a_page, an_event, an_object, lines, parsed, read_body
from paceline.kube.resources import KINDS, Kinds, Manifest, Ref, Resource, ref_of
from paceline.kube.throttle import Throttle

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=5)
WATCH_SECONDS = 50
"""The server ends a watch after 1 to 1.5 times this. A kind without changes since the server started gets no bookmarks
(seen on 1.34), so this end is the only reliable sign of life."""
SILENCE = 90.0
"""Seconds without a byte on a watch after which the connection counts as dead: longer than any watch lasts."""

_LONGEST_PAGE = 4 * 2**20
"""Maximum bytes of one page of a list; a larger page is requested again with fewer objects. As Python objects it may
take 30 times as much memory until it has been processed."""

_LONGEST_LOG = 8 * 2**20
"""Maximum bytes kept of a container's log; kubelets rotate a log at 10 MiB."""
LONGEST_WAIT = 60.0
"""Maximum seconds that Retry-After may request: a proxy must not pause the operator for a year, or a watch for longer
than the liveness probe tolerates."""

EXEC_PROTOCOL = "v4.channel.k8s.io"
"""Protocol in which a message's first byte is its channel."""
STDOUT, STATUS = 1, 3
EXEC_SECONDS = 30.0

Read = TypeVar("Read")

_CUT = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, ConnectionError)
"""Errors of a stream that the other side closes early; a timeout is not one of them."""

_config: Any = kubernetes.aio.config
"""Any: the library ships py.typed with half of its functions untyped."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


OnAnswer = Callable[[str, int], None]
"""Called for each request with its method and the status of the answer; 0 if there was none."""


def _nothing(_method: str, _status: int) -> None:
    pass


class Transport:
    """`Api` over HTTP. Close it when done, or use it as `async with`."""

    def __init__(
        self,
        client: Any,
        *,
        kinds: Kinds = KINDS,
        throttle: Throttle | None = None,
        answered: OnAnswer = _nothing,
        tries: int = 1,
    ) -> None:
        self._client = client
        """A `kubernetes.aio.client.ApiClient`; Any for the same reason as `_config`."""
        self._kinds = kinds
        self._throttle = throttle or Throttle()
        self._answered = answered
        self._tries = tries
        """How often to send a request that is refused temporarily (429, with Retry-After). A command waits, as kubectl
        does; the operator retries through its queue, which blocks no worker."""
        self._parser = ThreadPoolExecutor(1, "parse")

    def beside(self, throttle: Throttle) -> "Transport":
        """Another Transport on the same connections, with its own limit. Close only the first one."""
        return Transport(self._client, kinds=self._kinds, throttle=throttle, answered=self._answered, tries=self._tries)

    async def __aenter__(self) -> "Transport":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self._parser.shutdown(wait=False)
        await self._client.close()

    @property
    def server(self) -> str:
        """The server's URL, without a path."""
        return str(self._client.configuration.host)

    def session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        """A session for another client of the same server, with the same credentials. The caller closes it."""

        async def authorized(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
            request.headers.update(await self._authorization())
            return await send(request)

        connector = aiohttp.TCPConnector(limit=0, ssl=self._client.rest_client.ssl_context)
        proxy = self._client.configuration.proxy
        return aiohttp.ClientSession(connector=connector, proxy=proxy, middlewares=(authorized, *middlewares))

    async def _authorization(self) -> dict[str, str]:
        """Reads a token's file again after it was rotated."""
        token = (await self._client.configuration.auth_settings()).get("BearerToken")
        return {"Authorization": str(token["value"])} if token else {}

    async def get(self, ref: Ref) -> Manifest | None:
        try:
            return await self._json("GET", ref.path)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        selector: str = "",
        limit: int = PAGE,
        fields: str = "",
        reduce: Callable[[Manifest], Any] | None = None,
    ) -> Listing:
        items: list[Any] = []
        asked = {"labelSelector": selector, "fieldSelector": fields}
        query = {name: value for name, value in asked.items() if value}
        most = limit
        while True:
            response = await self._send("GET", resource.path(namespace), query | {"limit": str(most)})
            try:
                body = await _body(response, _LONGEST_PAGE if most > 1 else LONGEST_LINE)
            except TooLong as error:
                if most == 1:
                    raise Unavailable(0, "TooLong", f"one of {resource.plural}: {error}") from error
                most = max(1, most // 4)
                continue
            page, about = await self._understood(a_page, body)
            for item in page:  # a list names the kind once, not per item
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
            items += page if reduce is None else map(reduce, page)
            if not about.get("continue"):
                break
            query["continue"] = about["continue"]
            most = min(limit, 2 * most)
        return Listing(items, about["resourceVersion"])

    async def log(self, pod: Ref, container: str) -> str:
        path = pod.resource.path(pod.namespace, pod.name, "log")
        response = await self._send("GET", path, {"container": container})
        text: bytes = await _read(lambda: _last(response.content))
        return text.decode(errors="replace")

    async def watch(
        self, resource: Resource, namespace: str | None = None, selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(WATCH_SECONDS * (1 + random.random() / 2))),
            "resourceVersion": resource_version,
        } | ({"labelSelector": selector} if selector else {})
        response = await self._send(
            "GET",
            resource.path(namespace),
            query,
            timeout=aiohttp.ClientTimeout(total=None, connect=5, sock_read=SILENCE),
        )
        try:
            events = lines(response.content)
            while line := await _read(lambda: _line(events)):
                event = await self._understood(an_event, line)
                if event["type"] == "ERROR":
                    code = event["object"].get("code")
                    raise error_of(code if isinstance(code, int) and code else 500, event["object"])
                yield WatchEvent(event["type"], event["object"])
        finally:
            response.close()

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = True) -> Manifest:
        query = {"fieldManager": manager, "force": str(force).lower(), "fieldValidation": "Strict"}
        path = ref_of(manifest, self._kinds).path
        return await self._json("PATCH", path, query, manifest, "application/apply-patch+yaml")

    async def create(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest, self._kinds)
        return await self._json("POST", ref.resource.path(ref.namespace), {}, manifest)

    async def update(self, manifest: Manifest) -> Manifest:
        return await self._json("PUT", ref_of(manifest, self._kinds).path, {}, manifest)

    async def replace_status(self, manifest: Manifest) -> Manifest:
        # A PUT of a partial object would take the omitted fields from their managers.
        ref = ref_of(manifest, self._kinds)
        version = manifest["metadata"].get("resourceVersion")
        changes = {"/status": manifest["status"]} | ({"/metadata/resourceVersion": version} if version else {})
        patch = [{"op": "add", "path": path, "value": value} for path, value in changes.items()]
        path = ref.resource.path(ref.namespace, ref.name, "status")
        return await self._json("PATCH", path, {"fieldValidation": "Strict"}, patch, "application/json-patch+json")

    async def delete(self, ref: Ref, *, uid: str, propagation: str = "Background") -> bool:
        options = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        try:
            await self._json("DELETE", ref.path, {}, options)
        except (NotFound, Conflict):
            return False
        return True

    async def exec(self, pod: Ref, container: str, command: Sequence[str]) -> bytes:
        """Run a command in a container and return its stdout. Raises ApiError if it cannot start or fails."""
        query = [("container", container), ("stdout", "true"), ("stderr", "true"), *(("command", w) for w in command)]
        url = self.server + pod.resource.path(pod.namespace, pod.name, "exec")
        channels = {STDOUT: bytearray(), STATUS: bytearray()}

        async def read() -> None:
            async with (
                asyncio.timeout(EXEC_SECONDS),
                self.session(_only_upgraded) as session,
                session.ws_connect(url, params=query, protocols=(EXEC_PROTOCOL,)) as socket,
            ):
                async for message in socket:
                    if message.type is aiohttp.WSMsgType.BINARY and message.data[:1] and message.data[0] in channels:
                        channels[message.data[0]] += message.data[1:]

        try:
            await _read(read)
        except Unavailable as error:
            if isinstance(error.__cause__, TimeoutError):
                raise Unavailable(0, "TimeoutError", f"not finished after {EXEC_SECONDS:g} s") from error
            raise
        if not channels[STATUS]:
            raise Unavailable(0, "Closed", "the connection closed before the command ended")
        status = _status(bytes(channels[STATUS]))
        if status.get("status") != "Success":
            code = status.get("code")
            raise error_of(code if isinstance(code, int) else 500, status)
        return bytes(channels[STDOUT])

    async def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Manifest:
        response = await self._send(method, path, query or {}, body, content_type)
        return await self._understood(an_object, await _object(response))

    async def _understood(self, read: Callable[[bytes], Read], text: bytes) -> Read:
        try:
            if len(text) < BESIDE:
                return read(text)
            return await asyncio.get_running_loop().run_in_executor(self._parser, read, text)
        except ValueError as error:
            raise Unavailable(0, "BrokenAnswer", f"not JSON: {text[:200]!r}") from error

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout = REQUEST_TIMEOUT,  # noqa: ASYNC109 (aiohttp's own, per phase)
    ) -> aiohttp.ClientResponse:
        """The response with its body unread, if the status is a success; else raises the status's error."""
        for _ in range(self._tries - 1):
            try:
                return await self._send_once(method, path, query, body, content_type, timeout)
            except TooManyRequests as error:
                if not error.retry_after:
                    raise
                await asyncio.sleep(error.retry_after)
        return await self._send_once(method, path, query, body, content_type, timeout)

    async def _send_once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content_type: str,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 (aiohttp's own, per phase)
    ) -> aiohttp.ClientResponse:
        await self._throttle.take()
        headers = {"Accept": "application/json", "Content-Type": content_type, "User-Agent": "paceline"}
        headers |= await self._authorization()
        url = self.server + path + (f"?{urlencode(query)}" if query else "")
        try:
            answer = await _read(
                lambda: self._client.rest_client.request(
                    method, url, headers=headers, body=body, _request_timeout=timeout
                )
            )
        except Unavailable:
            self._answered(method, 0)
            raise
        response: aiohttp.ClientResponse = answer.response
        self._answered(method, response.status)
        if response.status >= 300:
            raise error_of(response.status, _status(await _object(response)), _retry_after(response.headers))
        return response


async def connect(
    kubeconfig: str | None = None,
    *,
    context: str | None = None,
    kinds: Kinds = KINDS,
    throttle: Throttle | None = None,
    answered: OnAnswer = _nothing,
    tries: int = 1,
) -> Transport:
    """Connect by `kubeconfig`; else as the pod that we run in; else by $KUBECONFIG or ~/.kube/config."""
    settings = Configuration()
    if kubeconfig is None and context is None and SERVICE_ACCOUNT.exists():  # noqa: ASYNC240 (a tmpfs)
        _config.load_incluster_config(client_configuration=settings)
    else:
        await _config.load_kube_config(
            config_file=kubeconfig or os.environ.get("KUBECONFIG"),
            context=context,
            client_configuration=settings,
            persist_config=False,
        )
    return Transport(ApiClient(settings), kinds=kinds, throttle=throttle, answered=answered, tries=tries)


async def _read(read: Callable[[], Any]) -> Any:
    """Await `read()`; every network error becomes Unavailable."""
    try:
        return await read()
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Unavailable(0, type(error).__name__, str(error) or repr(error)) from error


async def _only_upgraded(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Middleware that keeps the body of a refused handshake, which gives the reason; aiohttp drops it."""
    response = await send(request)
    if response.status != 101:
        raise error_of(response.status, _status(await _object(response)))
    return response


async def _line(events: AsyncIterator[bytes]) -> bytes:
    """The next line of a watch; empty if the watch ended, or if the other side, alive until then, cut it. A proxy cuts
    idle connections; that differs from the silence of a dead connection."""
    try:
        return await anext(events, b"")
    except _CUT:
        return b""


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes:
    try:
        body: bytes = await _read(lambda: read_body(response.content, most))
    except TooLong:
        response.close()
        raise
    return body


async def _last(content: aiohttp.StreamReader) -> bytes:
    """The last bytes of a log, because a result is at the end."""
    kept = bytearray()
    async for chunk in content.iter_chunked(1 << 16):
        kept += chunk
        if len(kept) > 2 * _LONGEST_LOG:
            del kept[:-_LONGEST_LOG]
    return bytes(kept[-_LONGEST_LOG:])


async def _object(response: aiohttp.ClientResponse) -> bytes:
    """The body of a response, or of a refusal."""
    try:
        return await _body(response, LONGEST_LINE)
    except TooLong as error:
        raise Unavailable(0, "TooLong", str(error)) from error


def _status(text: bytes) -> Mapping[str, Any]:
    """A metav1.Status; the answer of a proxy in between is wrapped like one."""
    try:
        answer = parsed(text)
    except ValueError:
        answer = None
    return answer if isinstance(answer, dict) else {"message": text[:500].decode(errors="replace")}


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")
    return min(float(value), LONGEST_WAIT) if value.isascii() and value.isdecimal() else 0.0
