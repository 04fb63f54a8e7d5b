"""Converts one entry of a file of prompts, in common formats, to a request for a server.

The last answer of a conversation is requested: everything before it is sent as history, and the file's own answer is
not sent. A conversation that ends with a question or with a tool's result is sent completely.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from paceline.core import response_format

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
ASKING = ("user", "tool")


class DatasetError(ValueError):
    """A file that a round cannot use; the message names the entry and what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`messages` in the form of OpenAI's API; `options` are other fields of the request (`OF_A_REQUEST`)."""

    messages: tuple[Message, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    time: float | None = None
    """Arrival time in any unit; None if not given."""

    @property
    def body(self) -> str:
        """The request's fields as JSON."""
        return json.dumps({**self.options, "messages": self.messages}, ensure_ascii=False)


def conversation(entry: Any, where: str) -> Conversation | None:
    """The request of an entry; None if its questions are blank. `where` begins the message of a DatasetError."""
    kind = next(
        (kind for kind in CONVERSATION_FORMATS if isinstance(entry, dict) and _is_there(kind, entry.get(kind))), None
    )
    if kind is None:
        raise DatasetError(
            f'{where} has neither messages nor conversations: write {{"messages": [{{"role": "user", …}}]}}'
        )
    messages = CONVERSATION_FORMATS[kind](entry[kind], f"{where}: {kind}")
    if messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]
    if not messages or messages[-1]["role"] not in ASKING or not any(map(_asks, messages)):
        raise DatasetError(f"{where} asks nothing: end it with a user or tool message, or with the answer to one")
    if not any(_text(message).strip() for message in messages if _asks(message)):
        return None
    found = Conversation(messages=tuple(messages), options=_options(entry, where), time=_time(entry, where))
    try:
        found.body.encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise DatasetError(f"{where} has {half!a}, half of a character whose text was cut: remove it") from error
    return found


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
    return isinstance(value, list) or (kind == PROMPT and isinstance(value, str))


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
