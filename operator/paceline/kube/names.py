"""An HTTP middleware that gives another API client only the names of objects.

Such a client parses and keeps what it receives: an object nested 10,000 deep crashes it, and a few large ones fill its
memory. Here the API server is asked for metadata only, and only identifying fields reach the client: as many bytes for
the worst object as for the best.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import aiohttp

from paceline.kube.errors import ApiError
from paceline.kube.reading import BESIDE, LONGEST_LINE, TooLong, lines, read_body, shallow

WANTED = frozenset(
    {
        *("kind", "apiVersion", "metadata", "name", "namespace", "uid", "resourceVersion"),
        *("items", "continue", "type", "object", "code", "reason", "message"),
    }
)
"""Fields to keep at any depth: of a list, of an event, of an object and of an error Status."""

_LONGEST_PAGE = 4 * LONGEST_LINE
"""Maximum bytes of a list. Callers limit the number of objects in a list."""

LIST, OBJECT = (
    f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
    for kind in ("PartialObjectMetadataList", "PartialObjectMetadata")
)


def names_only(plural: str) -> aiohttp.ClientMiddlewareType:
    """For the `middlewares` of an aiohttp session: lists and watches of this kind are reduced to names."""

    async def cut_down(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if request.url.name != plural:
            return await handler(request)
        request.headers["Accept"] = OBJECT if request.url.query.get("watch") == "true" else LIST
        response = await handler(request)
        if response.status == 200:
            response.content = cast("aiohttp.StreamReader", _Names(response.content))
        return response

    return cut_down


def wanted_fields(text: bytes) -> bytes:
    """The JSON with only the WANTED fields. Others are dropped during parsing."""
    try:
        listed = json.loads(text, object_pairs_hook=_wanted)
    except RecursionError:
        listed = json.loads(shallow(text), object_pairs_hook=_wanted)
    return json.dumps(listed).encode()


async def _cut(text: bytes) -> bytes:
    """Reduce the text, in a thread if it is long; for a short text the hand-over takes longer than parsing."""
    return wanted_fields(text) if len(text) < BESIDE else await asyncio.to_thread(wanted_fields, text)


def _wanted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The API server writes an empty list as null, which crashes Kopf."""
    return {key: value or [] if key == "items" else value for key, value in pairs if key in WANTED}


@contextmanager
def _as_a_broken_connection() -> Iterator[None]:
    """Report unreadable content as a broken connection, which clients can handle."""
    try:
        yield
    except (TooLong, ApiError, ValueError) as error:
        raise aiohttp.ClientPayloadError(str(error)) from error


class _Names:
    """A response's content, whole or line by line; other attributes come from the stream."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def read(self, _: int = -1) -> bytes:
        with _as_a_broken_connection():
            return await _cut(await read_body(self._content, _LONGEST_PAGE))

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        with _as_a_broken_connection():
            async for line in lines(self._content):
                yield await _cut(line) + b"\n"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)
