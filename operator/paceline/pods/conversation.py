"""Converts one entry of a file of prompts, in common formats, to requests for a server.

An answer of a conversation is requested, its last one or each: everything before it is sent as history, and the file's
own answer is not sent. A conversation that ends with a question or with a tool's result is sent completely.
"""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from paceline.core import response_format
from paceline.core.text import error_text

Message = Mapping[str, Any]

_ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "tool": "tool",
}
"""Speaker in a file → role in the request."""
BY_TURNS = ("user", "assistant")
"""Alternating roles of messages without one, as in bench_serving's `custom`."""
OF_A_MESSAGE = ("name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning")
OF_A_REQUEST = ("tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", "response_format")
"""Fields that an entry may have next to its messages, and that are sent. The model, the sampling and the maximum length
come from the dataset, for all of its requests."""
ANOTHER_QUESTION: Mapping[str, str] = {
    "continue_final_message": "the last answer is generated from its beginning: leave it out",
    "functions": "write them as tools",
    "documents": "write them into a message",
}
"""Fields of an entry that change the question and are not supported, and what to write instead."""
OF_ANOTHER_MESSAGE: Mapping[str, str] = {
    "function_call": "write it as tool_calls",
    "prefix": "the last answer is generated from its beginning: leave it out",
    "partial": "the last answer is generated from its beginning: leave it out",
}
"""The same for a message. `prefix` is DeepSeek's word for an answer to be continued, `partial` Moonshot's."""
TIMESTAMP = "timestamp"
"""The field with an entry's arrival time, as in Mooncake's traces and bench_serving's."""
NUMBER = re.compile(r"\s*[-+]?[0-9.]+([eE][-+]?[0-9]+)?\s*")
PROMPT = "prompt"
"""The field with a single question, as in vLLM's `custom`."""
_ELSEWHERE = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"
"""SPEED-Bench's placeholder for a turn whose text has another licence."""
AWAITED: Message = {"role": "assistant", "content": None}
"""Stands for the server's answer to the request before; no message of a file is without content."""
ASKING = ("user", "tool")


class DatasetError(ValueError):
    """A file that a round cannot use; the message names the entry and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`messages` in the form of OpenAI's API; `options` are other fields of its requests (`OF_A_REQUEST`).

    Requests are written when they are needed: those of a long conversation are many times larger than it is.
    """

    messages: tuple[Message, ...]
    turns: tuple[int, ...]
    """Number of messages of each request; they are sent one after another."""
    options: Mapping[str, Any] = field(default_factory=dict)
    time: float | None = None
    """Arrival time in any unit; None if not given."""

    @property
    def waits(self) -> bool:
        """Whether its history has answers of the server that is asked."""
        return AWAITED in self.messages

    def body(self, turn: int) -> str:
        """A request's fields as JSON."""
        return json.dumps({**self.options, "messages": self.messages[: self.turns[turn]]}, ensure_ascii=False)

    @property
    def digests(self) -> dict[int, bytes]:
        """Of each request, by its number of messages: equal for equal requests, of any conversation."""
        read, found = hashlib.sha256(json.dumps(self.options).encode()), {}
        for count, message in enumerate(self.messages, 1):
            read.update(b"\n" + json.dumps(message).encode())
            if count in self.turns:
                found[count] = read.digest()
        return found


def conversation(entry: Any, where: str) -> Conversation | None:
    """An entry with all answers that can be asked for; None if its questions are blank. `where` begins the message of a
    DatasetError."""
    messages = _messages(entry, where)
    if not _ends_with_a_question(messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages):
        raise DatasetError(f"{where} asks nothing: end it with a user or tool message, or with the answer to one")
    if not any(_text(message).strip() for message in messages if _asks(message)):
        return None
    ends = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    turns = tuple(end for end in (*ends, len(messages)) if _ends_with_a_question(messages[:end]))
    fields = entry if isinstance(entry, dict) else {}
    found = Conversation(
        messages=tuple(messages[: turns[-1]]), turns=turns, options=_options(fields, where), time=_time(fields, where)
    )
    try:
        found.body(-1).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise DatasetError(f"{where} has {half!a}, half of a character whose text was cut: remove it") from error
    return found


def _messages(entry: Any, where: str) -> list[Message]:
    if isinstance(entry, list):
        return _agentic_trace(entry, where)
    kind = next(
        (kind for kind in CONVERSATION_FORMATS if isinstance(entry, dict) and _is_there(kind, entry.get(kind))), None
    )
    if kind is None:
        raise DatasetError(
            f'{where} has neither messages nor conversations: write {{"messages": [{{"role": "user", …}}]}}'
        )
    return CONVERSATION_FORMATS[kind](entry[kind], f"{where}: {kind}")


def _ends_with_a_question(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1]["role"] in ASKING and any(map(_asks, messages))


def _time(entry: Mapping[str, Any], where: str) -> float | None:
    """Read a number, or a date and time, which is text in JSON (ISO 8601) and a value in a table."""
    said = entry.get(TIMESTAMP)
    try:
        if isinstance(said, datetime):
            return _in_utc(said)
        if isinstance(said, str) and not NUMBER.fullmatch(said):
            return _in_utc(datetime.fromisoformat(said))
        time = None if said is None else float(said)
    except (TypeError, ValueError, OverflowError) as error:
        raise DatasetError(
            f"{where}: timestamp must be a number or an ISO 8601 date and time; got {said!r:.80}"
        ) from error
    if time is not None and not math.isfinite(time):
        raise DatasetError(f"{where}: timestamp must be finite; got {said!r:.80}")
    return time


def _in_utc(time: datetime) -> float:
    """A time without a zone is UTC: a machine's zone may skip an hour, or repeat one."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _is_there(kind: str, value: Any) -> bool:
    return isinstance(value, list) or (kind in (PROMPT, "messages_json") and isinstance(value, str))


def _options(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    for name, way in ANOTHER_QUESTION.items():
        if entry.get(name):
            raise DatasetError(f"{where}: {name} is not sent: {way}")
    options = {name: entry[name] for name in OF_A_REQUEST if entry.get(name) not in (None, [], {})}
    tools = options.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise DatasetError(f"{where}: tools must be a list of objects, as in a request")
    if "response_format" in options and (wrong := response_format.problem(options["response_format"])):
        raise DatasetError(f"{where}: response_format: {wrong}")
    return options


def _openai(messages: Sequence[Any], where: str) -> list[Message]:
    return [_message(message, "role", "content", where) for message in _objects(messages, where, "role", "content")]


def _messages_json(text: str | Sequence[Any], where: str) -> list[Message]:
    try:
        said = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where} is not JSON: {error_text(error)}") from error
    if not isinstance(said, list):
        raise DatasetError(f"{where} must be the JSON of a list of messages")
    return _openai(said, where)


def agentic_trace(text: str) -> list[Any]:
    """The conversations of a file of SGLang's `agentic_trace`; empty for a file of another format."""
    try:
        said = json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        return []
    found = said.get("conversations") if isinstance(said, dict) else None
    return found if isinstance(found, list) and any(isinstance(one, list) for one in found) else []


def _agentic_trace(turns: Sequence[Any], where: str) -> list[Message]:
    """Each turn has the messages that follow the answer to the turn before, which the file does not have."""
    found: list[Message] = []
    for turn in turns:
        said = turn.get("messages") if isinstance(turn, dict) else None
        if not isinstance(said, list):
            raise DatasetError(f"{where} must be a list of turns, each with messages")
        if not said:
            continue
        new = _openai(said, where)
        if new[-1]["role"] not in ASKING or any(message["role"] == "assistant" for message in new):
            raise DatasetError(
                f"{where}: each turn must end with a user or tool message, and have none of the assistant: answers are "
                "the server's; with answers of your own write messages"
            )
        found += [*([AWAITED] if found else []), *new]
    return found


def _sharegpt(messages: Sequence[Any], where: str) -> list[Message]:
    """Messages with ShareGPT's field names or OpenAI's. In bench_serving's `custom`, they have no speaker, and the text
    under either name."""
    found = []
    for number, message in enumerate(_objects(messages, where, "from", "value")):
        speaker = next((name for name in ("from", "role") if name in message), "from")
        named = message if speaker in message else {**message, speaker: BY_TURNS[number % 2]}
        found.append(_message(named, speaker, "value" if "value" in message else "content", where))
    return found


def _speed_bench(turns: Sequence[Any], where: str) -> list[Message]:
    """SPEED-Bench has only the user's turns. The first is sent, as in bench_serving."""
    if not turns or not isinstance(turns[0], str):
        raise DatasetError(f"{where} must be a list of strings")
    if turns[0].startswith(_ELSEWHERE):
        raise DatasetError(f"{where} has no text: make the file with NVIDIA's script, which fetches it, and name that")
    return [{"role": "user", "content": turns[0]}]


def _prompt(prompt: Any, where: str) -> list[Message]:
    """The field is a question, or, in tables for training, a list of messages."""
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else _openai(prompt, where)


CONVERSATION_FORMATS: Mapping[str, Callable[[Any, str], list[Message]]] = {
    "messages": _openai,
    "messages_json": _messages_json,
    "conversations": _sharegpt,
    "conversation": _sharegpt,
    "turns": _speed_bench,
    PROMPT: _prompt,
}
"""The entry's field that has the messages → its reader."""


def _objects(messages: Sequence[Any], where: str, role: str, text: str) -> Sequence[Mapping[str, Any]]:
    if not all(isinstance(message, dict) for message in messages):
        raise DatasetError(f"{where} must be a list of objects with {role} and {text}")
    return messages


def _message(message: Mapping[str, Any], speaker: str, text: str, where: str) -> Message:
    role = _ROLES.get(str(message.get(speaker)))
    if role is None:
        raise DatasetError(f"{where} has a message of {message.get(speaker)!s:.80}: write one of {', '.join(_ROLES)}")
    content, calls = message.get(text), message.get("tool_calls")
    if content is None and role == "assistant" and calls:
        content = ""
    if not _is_text(content):
        raise DatasetError(
            f"{where}: {text} of {message.get(speaker)!s:.80} must be text, or a list of parts of type text: nothing "
            "else is sent"
        )
    for name, way in OF_ANOTHER_MESSAGE.items():
        if message.get(name):
            raise DatasetError(f"{where}: {name} of {message.get(speaker)!s:.80} is not sent: {way}")
    kept = {name: message[name] for name in OF_A_MESSAGE if message.get(name) not in (None, [], "")}
    return {"role": role, "content": content, **kept}


def _is_text(content: Any) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str) for part in content
    )


def _asks(message: Message) -> bool:
    return bool(message["role"] == "user")


def _text(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
