"""Reads prompts from a user's file, JSON or a table: conversations in the formats of OpenAI's API, ShareGPT and others.

Entries that cannot be sent unchanged are refused by number, so that no user believes that they were measured.

A prefetch reads the file before weights are downloaded, a round before it measures.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from paceline.core import Scheme, Source
from paceline.core.text import error_text
from paceline.pods.conversation import Conversation, DatasetError, agentic_trace, conversation
from paceline.pods.prompt_table import READERS, conversation_columns

LARGEST_FILE = 256 << 20
"""Maximum bytes of a file: it is held in memory more than once."""

__all__ = ["LARGEST_FILE", "DatasetError", "Prompts", "read_prompts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompts:
    """In the file's order; `sha256` is of its bytes."""

    conversations: tuple[Conversation, ...]
    """Each with the requests that are sent one after another: one, unless turns are measured."""
    sha256: str

    @property
    def usable(self) -> int:
        """Number of requests."""
        return sum(len(one.turns) for one in self.conversations)


@cache
def read_prompts(file: Path, source: Source, turns: int = 1) -> Prompts:
    """The prompts of a file; messages name its `source`. `turns`: most answers of a conversation to ask for one after
    another. The file is read only once: a ConfigMap may change during a round, whose arms must get the same prompts.
    Raises DatasetError."""
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
    # Duplicates are dropped: the second one would be answered from the cache, which no interval would show.
    seen, found = set[bytes](), list[Conversation]()
    for number, entry in enumerate(entries, 1):
        if whole := conversation(entry, f"{source}: entry {number}"):
            digests = whole.digests
            asked = whole.turns[-1:] if turns == 1 else whole.turns[:turns] if whole.waits else whole.turns
            fresh = tuple(turn for turn in asked if digests[turn] not in seen)
            if whole.waits:  # the server's answers to all earlier ones are needed
                fresh = asked if asked[-1:] == fresh[-1:] else ()
            seen.update(digests[turn] for turn in asked)
            found += _parts(replace(whole, turns=fresh), turns)
    return Prompts(conversations=tuple(found), sha256=hashlib.sha256(content).hexdigest())


def _parts(whole: Conversation, most: int) -> Iterator[Conversation]:
    """The conversation's requests in parts of about equal size, at most `most` each."""
    count = len(whole.turns)
    parts = math.ceil(count / most)
    for part in range(parts):
        yield replace(whole, turns=whole.turns[part * count // parts : (part + 1) * count // parts])


def _of_table(file: Path, source: Source) -> Iterator[Any]:
    try:
        yield from conversation_columns(file, LARGEST_FILE)
    except DatasetError as error:
        raise DatasetError(f"{source}: {error}") from error


def _entries(text: str, source: Source) -> Iterator[Any]:
    """The items of a JSON array, or of JSON lines; of a file of SGLang's `agentic_trace`, its conversations."""
    if text.lstrip()[:1] == "[":
        try:
            yield from json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{source}: no JSON: {error_text(error)}") from error
        return
    if traced := agentic_trace(text):
        yield from traced
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetError(
                    f"{source}: line {number} is not JSON: {error_text(error)}; write one object per line"
                ) from error
