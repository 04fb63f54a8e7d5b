"""A session for another client of the API, which is told names and nothing else.

Such a client parses what it is given and keeps it: an object that is nested 10,000 deep ends it, and a few that are
large fill its memory. Here the API server is asked for metadata alone, and of that only what says which object it is
reaches the client: as many bytes for the worst object as for the best.
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
"""Fields, wherever they stand, of a list, of an event, of an object and of a Status that says what is wrong."""

_LONGEST_PAGE = 4 * LONGEST_LINE
"""Bytes of a list. Who asks for lists limits the number of objects."""

LIST, OBJECT = (
    f"application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
    for kind in ("PartialObjectMetadataList", "PartialObjectMetadata")
)


def names_only(plural: str) -> aiohttp.ClientMiddlewareType:
    """For the `middlewares` of an aiohttp session: what is listed or watched of this kind arrives as names."""

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
    """The JSON with WANTED fields alone. What is left out is dropped while it is parsed."""
    try:
        listed = json.loads(text, object_pairs_hook=_wanted)
    except RecursionError:
        listed = json.loads(shallow(text), object_pairs_hook=_wanted)
    return json.dumps(listed).encode()


async def _cut(text: bytes) -> bytes:
    """Beside the event loop if it takes long. To hand an event to a thread takes longer than to read it."""
    return wanted_fields(text) if len(text) < BESIDE else await asyncio.to_thread(wanted_fields, text)


def _wanted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The API server writes a list of no names as null, which Kopf dies of."""
    return {key: value or [] if key == "items" else value for key, value in pairs if key in WANTED}


@contextmanager
def _as_a_broken_connection() -> Iterator[None]:
    """A client knows how to live with one: what cannot be read is no more than that."""
    try:
        yield
    except (TooLong, ApiError, ValueError) as error:
        raise aiohttp.ClientPayloadError(str(error)) from error


class _Names:
    """A response's content: whole, or line by line; everything else of it is the stream's own."""

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
