"""Prompts in a user's file: OpenAI messages or ShareGPT conversations, one user message each.

The benchmark client sends one user message per request, and silently drops the rest of a conversation (a system
message, a second turn). Such entries are refused by their number, so that no user believes they were measured.

A prefetch reads the file before weights are downloaded, a round before it measures.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paceline.core import Scheme, Source

LARGEST_FILE = 256 << 20
"""Bytes of a file: it is held in memory, more than once."""


class DatasetError(ValueError):
    """A file that a round cannot use; the text names the entry and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A format of conversations: the fields of a message, the roles that ask and those that answer."""

    role: str
    text: str
    asks: frozenset[str]
    answers: frozenset[str]


OPENAI = Form(role="role", text="content", asks=frozenset({"user"}), answers=frozenset({"assistant"}))
SHAREGPT = Form(
    role="from", text="value", asks=frozenset({"human", "user"}), answers=frozenset({"gpt", "chatgpt", "assistant"})
)
FORMS: Mapping[str, Form] = {"messages": OPENAI, "conversations": SHAREGPT, "conversation": SHAREGPT}
"""By the field of an entry that has its messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """In the order of the file; `sha256` is of its bytes."""

    usable: tuple[str, ...]
    sha256: str


@cache
def read(file: Path, source: Source) -> Prompts:
    """The prompts of a file; messages name its `source`. Read once: a ConfigMap may change during a round, whose arms
    must get the same prompts. Raises DatasetError."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise DatasetError(f"{source}: larger than {LARGEST_FILE >> 20} MiB: take a part of it")
        content = file.read_bytes()
        entries = list(_entries(content.decode(), source))
    except FileNotFoundError as error:
        of_the_hub = source.scheme is Scheme.HUB_DATASET
        way = "bring that commit, or correct it" if of_the_hub else "create it, or correct the source"
        raise DatasetError(f"{source}: there is no such file: {way}") from error
    except IsADirectoryError as error:
        raise DatasetError(f"{source}: a directory: name a file in it") from error
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{source}: not UTF-8 at byte {error.start}") from error
    prompts = (_prompt(entry, f"{source}: entry {number}") for number, entry in enumerate(entries, 1))
    # Duplicates are dropped: the second one would be answered from the cache, and no interval would show it.
    return Prompts(usable=tuple(dict.fromkeys(filter(None, prompts))), sha256=hashlib.sha256(content).hexdigest())


def _entries(text: str, source: Source) -> Iterator[Any]:
    """The items of a JSON array, or of JSON lines."""
    if text.lstrip()[:1] == "[":
        try:
            yield from json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{source}: no JSON: {error}") from error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetError(f"{source}: line {number} is no JSON: {error}; write one object a line") from error


def _prompt(entry: Any, where: str) -> str:
    """The user's message; "" if it is blank."""
    kind = next((kind for kind in FORMS if isinstance(entry, dict) and isinstance(entry.get(kind), list)), None)
    if kind is None:
        raise DatasetError(
            f'{where} has neither messages nor conversations: write {{"messages": [{{"role": "user", …}}]}}'
        )
    form, messages = FORMS[kind], entry[kind]
    if not all(isinstance(message, dict) for message in messages):
        raise DatasetError(f"{where}: {kind} must be a list of objects with {form.role} and {form.text}")
    roles = [str(message.get(form.role)) for message in messages]
    for role in roles:
        if role not in form.asks | form.answers:
            raise DatasetError(f"{where} has a message of {role}: only one user message is sent; put its text in there")
    questions = [message for message, role in zip(messages, roles, strict=True) if role in form.asks]
    if len(questions) != 1 or len(messages) > 2 or roles[0] not in form.asks:
        raise DatasetError(
            f"{where} has {len(messages)} messages, {len(questions)} of them the user's: only single turns are "
            "measured; write one user message, and at most one answer after it"
        )
    text = questions[0].get(form.text)
    if not isinstance(text, str):
        raise DatasetError(f"{where}: {form.text} must be text")
    return text if text.strip() else ""
