"""Reads prompts from a user's file, JSON or a table: conversations in the formats of OpenAI's API, ShareGPT and others.

Entries that cannot be sent unchanged are refused by number, so that no user believes that they were measured.

A prefetch reads the file before weights are downloaded, a round before it measures.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paceline.core import Scheme, Source
from paceline.core.text import error_text
from paceline.pods.conversation import DatasetError, conversation
from paceline.pods.prompt_table import READERS, conversation_columns

LARGEST_FILE = 256 << 20
"""Maximum bytes of a file: it is held in memory more than once."""

__all__ = ["LARGEST_FILE", "DatasetError", "Prompts", "read_prompts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """In the file's order; `sha256` is of its bytes. `usable` are request bodies (`Conversation.body`)."""

    usable: tuple[str, ...]
    sha256: str
    times: tuple[float | None, ...] = ()
    """Arrival time of each item of `usable`, in any unit; None if not given."""


@cache
def read_prompts(file: Path, source: Source) -> Prompts:
    """The prompts of a file; messages name its `source`. The file is read only once: a ConfigMap may change during a
    round, whose arms must get the same prompts. Raises DatasetError."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise DatasetError(f"{source}: larger than {LARGEST_FILE >> 20} MiB: take a part of it")
        content, of_table = file.read_bytes(), file.suffix.lower() in READERS
        entries = list(_of_table(file, source) if of_table else _entries(content.decode("utf-8-sig"), source))
    except FileNotFoundError as error:
        of_the_hub = source.scheme is Scheme.HUB_DATASET
        way = "bring the missing commit, or correct it" if of_the_hub else "create it, or correct the source"
        raise DatasetError(f"{source}: there is no such file: {way}") from error
    except IsADirectoryError as error:
        raise DatasetError(f"{source}: a directory: name a file in it") from error
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{source}: not UTF-8 at byte {error.start}") from error
    numbered = (conversation(entry, f"{source}: entry {number}") for number, entry in enumerate(entries, 1))
    conversations = [found for found in numbered if found]
    # Duplicates are dropped: the second one would be answered from the cache, which no interval would show.
    times: dict[str, float | None] = {}
    for one in conversations:
        times.setdefault(one.body, one.time)
    return Prompts(usable=tuple(times), sha256=hashlib.sha256(content).hexdigest(), times=tuple(times.values()))


def _of_table(file: Path, source: Source) -> Iterator[Any]:
    try:
        yield from conversation_columns(file, LARGEST_FILE)
    except DatasetError as error:
        raise DatasetError(f"{source}: {error}") from error


def _entries(text: str, source: Source) -> Iterator[Any]:
    """The items of a JSON array, or of JSON lines."""
    if text.lstrip()[:1] == "[":
        try:
            yield from json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{source}: no JSON: {error_text(error)}") from error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetError(
                    f"{source}: line {number} is not JSON: {error_text(error)}; write one object per line"
                ) from error
