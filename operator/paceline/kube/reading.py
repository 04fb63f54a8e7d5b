"""Reads responses of the API server within bounds, so that no object can stop the operator or exhaust its memory.

The API server stores objects nested 10,000 levels deep, while Python's parser fails at about 1,000; and objects of 1.5
MiB, which may take 30 times as much memory in Python. Parts of an object that are too deep or too large are omitted;
`UNREAD` says which and why. The object's metadata and status can still be read and written.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import aiohttp

from paceline.kube.errors import Unavailable
from paceline.kube.resources import Manifest

DEEPEST = 100
"""Maximum levels of one part of an object, such as its spec. A pod's spec has about ten."""
LARGEST = 256 * 1024
"""Maximum bytes of one part of an object, as JSON. The status is not bounded, because only controllers write it."""
LONGEST_LINE = 16 * 2**20
"""Maximum bytes of one object in a list or a watch. etcd stores up to 1.5 MiB, some kinds more compactly than JSON."""

BESIDE = 64 * 1024
"""Responses of at least this many bytes are parsed in a worker thread, one at a time."""

UNREAD = "unread"
"""Key beside `metadata`, unused by Kubernetes: a sentence that says what was left out."""

_CUT = float("nan")
"""Replaces values nested too deep. JSON of an API server never contains NaN."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]')


class TooLong(Exception):  # noqa: N818 (as the errors of the API are named)
    """The response is longer than the limit."""


async def read_body(content: aiohttp.StreamReader, most: int) -> bytes:
    """Read the body as it arrives. Raises TooLong after `most` bytes."""
    parts, size = list[bytes](), 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            raise TooLong(f"more than {most} bytes")
    return b"".join(parts)


async def lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the events of a watch, each of at most LONGEST_LINE bytes."""
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
    """Parse JSON; values nested too deep become `_CUT`. Raises ValueError if it is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(shallow(text), parse_constant=lambda _: _CUT)


def shallow(text: bytes, deepest: int = 2 * DEEPEST) -> bytes:
    """Replace values nested deeper than `deepest` with NaN. Slow (4 MiB/s): only for JSON that the parser refuses."""
    kept, depth, start = [], 0, 0
    for token in _TOKEN.finditer(text):
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
    """Leave out the parts of a manifest that are too deep or too large. `size`: bytes of the response it is from."""
    faults = {name: why for name, part in manifest.items() if name != "metadata" and (why := _fault(name, part, size))}
    if not faults:
        return manifest
    return {name: part for name, part in manifest.items() if name not in faults} | {UNREAD: "; ".join(faults.values())}


def _fault(name: str, part: Any, size: int) -> str | None:
    if not within(part, DEEPEST):
        return f"{name}: is nested deeper than {DEEPEST} levels"
    if name != "status" and size > LARGEST and (length := len(json.dumps(part, separators=(",", ":")))) > LARGEST:
        return f"{name}: has {length} bytes as JSON, at most {LARGEST} are read"
    return None


def within(value: Any, deepest: int) -> bool:
    """Whether lists and mappings in `value` are nested at most `deepest` levels."""
    level = _nests([value])
    for _ in range(deepest):
        level = [inner for outer in level for inner in _nests(outer.values() if isinstance(outer, dict) else outer)]
    return not level


def _nests(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def without_managed_fields(manifest: Manifest) -> Manifest:
    """Drop managedFields: half of an object's size, and never read here. The argument stays unchanged."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    return manifest | {"metadata": metadata}


def an_object(text: bytes) -> Manifest:
    """Read one object, or a Status. Raises ValueError for anything else."""
    value = parsed(text)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return bounded(cast("Manifest", value), len(text))


def a_page(text: bytes) -> tuple[list[Manifest], Manifest]:
    """Read one page of a list: its objects and its metadata. Raises ValueError for anything else."""
    page = parsed(text)
    items = (page.get("items") or []) if isinstance(page, dict) else None
    if not isinstance(items, list) or not _has_version(page) or not all(map(_has_version, items)):
        raise ValueError("not a list of objects with metadata and a resourceVersion")
    return [without_managed_fields(bounded(item, len(text))) for item in items], page["metadata"]


def an_event(text: bytes) -> Manifest:
    """Read one event of a watch. Raises ValueError for anything else."""
    event = parsed(text)
    kind, item = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
    if not isinstance(item, dict) or not (kind == "ERROR" or (isinstance(kind, str) and _has_version(item))):
        raise ValueError("not an event of an object with metadata and a resourceVersion")
    found: Manifest = event
    return found | {"object": bounded(item, len(text))}


def _has_version(item: Any) -> bool:
    """Whether the item has metadata and, if it has a resourceVersion, one from which a watch can continue."""
    about = item.get("metadata") if isinstance(item, dict) else None
    version = about.get("resourceVersion", "0") if isinstance(about, dict) else None
    return isinstance(version, str) and version.isascii() and version.isdecimal()
