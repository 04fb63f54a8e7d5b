"""What the API server answers, read within bounds: no object, whoever made it, stops or swells who reads it.

The API server stores objects that are nested 10,000 deep, where Python's parser gives up at about 1,000, and of
1.5 MiB, which as Python's objects may take 30 times as much. Of such an object the parts that are too deep or too large
are left out, and `UNREAD` says which and why; who it is and its status can still be read and written.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import aiohttp

from paceline.kube.errors import Unavailable
from paceline.kube.resources import Manifest

DEEPEST = 100
"""Levels of one part of an object, such as its spec. A pod's spec has about ten."""
LARGEST = 256 * 1024
"""Bytes, as JSON, of one part of an object. The status is not bounded: it is written by controllers alone."""
LONGEST_LINE = 16 * 2**20
"""Bytes of one object in a list or a watch. etcd takes 1.5 MiB of them, some kinds in a shorter form than JSON."""

UNREAD = "unread"
"""Key beside `metadata`, which no object of Kubernetes has: what has been left out, for a person to read."""

CUT = float("nan")
"""In place of what is nested too deep. No JSON of an API server has one."""

TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]')


class TooLong(Exception):  # noqa: N818 (as the errors of the API are named)
    """The answer has more bytes than are read of one."""


async def whole(content: aiohttp.StreamReader, most: int) -> bytes:
    """The body, read as it comes; TooLong at `most` bytes."""
    parts, size = list[bytes](), 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooLong(f"more than {most} bytes")
    return b"".join(parts)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """One event of a watch after the other, of any length up to LONGEST_LINE."""
    rest = b""
    async for part in content.iter_any():
        *complete, rest = (rest + part).split(b"\n")
        for line in complete:
            if line.strip():
                yield line
        if len(rest) > LONGEST_LINE:
            raise Unavailable(0, "TooLong", f"an event of more than {LONGEST_LINE} bytes")
    if rest.strip():
        yield rest


def parsed(text: bytes) -> Any:
    """JSON; ValueError if it is none. What is nested too deep for the parser is CUT."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(shallow(text), parse_constant=lambda _: CUT)


def shallow(text: bytes, deepest: int = 2 * DEEPEST) -> bytes:
    """The JSON with NaN in place of what is nested deeper. For what the parser refuses: 4 MiB take a second."""
    kept, depth, start = [], 0, 0
    for token in TOKEN.finditer(text):
        match text[token.start()]:
            case 0x7B | 0x5B:  # { [
                depth += 1
                if depth == deepest + 1:
                    kept += [text[start : token.start()], b"NaN"]
            case 0x7D | 0x5D:  # } ]
                if depth == deepest + 1:
                    start = token.end()
                depth -= 1
    return b"".join([*kept, text[start:]])


def bounded(manifest: Manifest, size: int) -> Manifest:
    """The manifest, of an answer of `size` bytes, without those of its parts that are too deep or too large."""
    faults = {name: why for name, part in manifest.items() if name != "metadata" and (why := _fault(name, part, size))}
    if not faults:
        return manifest
    return {name: part for name, part in manifest.items() if name not in faults} | {UNREAD: "; ".join(faults.values())}


def _fault(name: str, part: Any, size: int) -> str | None:
    if not within(part, DEEPEST):
        return f"{name}: is nested more than {DEEPEST} levels deep"
    if name != "status" and size > LARGEST and (length := len(json.dumps(part, separators=(",", ":")))) > LARGEST:
        return f"{name}: has {length} bytes as JSON, at most {LARGEST} are read"
    return None


def within(value: Any, deepest: int) -> bool:
    """Lists and mappings are nested at most that deep in `value`."""
    level = _nests([value])
    for _ in range(deepest):
        level = [inner for outer in level for inner in _nests(outer.values() if isinstance(outer, dict) else outer)]
    return not level


def _nests(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def without_managed_fields(manifest: Manifest) -> Manifest:
    """Half of an object's size, and of no use to a reader. Copies what it changes."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    return manifest | {"metadata": metadata}


def an_object(text: bytes) -> Manifest:
    """One object, or a Status."""
    return bounded(cast("Manifest", parsed(text)), len(text))


def a_page(text: bytes) -> tuple[list[Manifest], Manifest]:
    """The objects of one page of a list, and its metadata."""
    page = parsed(text)
    return [without_managed_fields(bounded(item, len(text))) for item in page.get("items") or []], page["metadata"]


def an_event(text: bytes) -> Manifest:
    """One event of a watch."""
    event: Manifest = parsed(text)
    return event | {"object": bounded(event["object"], len(text))}
