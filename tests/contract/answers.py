"""Pages of a real server, what was asked for each, and how an emulated one is held to them: status, content type, keys
and kinds of values, and the words of every refusal."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

FIXED = frozenset(
    {"object", "role", "finish_reason", "type", "message", "detail", "param", "code", "owned_by", "error"}
)
"""What is said in so many words; of anything else only its kind is compared."""
WORDS = frozenset({"top_logprobs"})
"""Where a word of the answer is a key; where it is none, these hold a list of objects with a `token`."""
PATIENCE = 20.0


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def name(row: Row) -> str:
    return str(row["name"])


def asked(url: str, row: Row) -> tuple[int, str | None, str]:
    """Status, content type and body."""
    body = row.get("body")
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(url + row["path"], data, headers, method=row["method"])
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()


def compare(url: str, row: Row) -> None:
    """Ask the server at `url` what the real one was asked."""
    status, kind, text = asked(url, row)
    assert (status, kind) == (row["status"], row["type"]), text
    if "json" in row:
        assert " " not in re.sub(r'"([^"\\]|\\.)*"', "", text), "the real one writes no blanks"
        assert shape(json.loads(text)) == shape(row["json"])
    elif "events" in row:
        _compare_streams(text, row["events"])
    else:
        assert worded(text) == worded(row["text"])


def _compare_streams(text: str, captured: list[Any]) -> None:
    """The first and the second chunk, and all from the one with a reason on."""
    found = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert found[-1] == captured[-1] == "[DONE]"
    chunks, real = [json.loads(one) for one in found[:-1]], captured[:-1]
    last = next(place for place, chunk in enumerate(chunks) if _ends(chunk))
    assert [shape(one) for one in [*chunks[:2], *chunks[last:]]] == [shape(one) for one in real]


def _ends(chunk: Mapping[str, Any]) -> bool:
    of = chunk.get("choices") or [chunk.get("meta_info", {})]
    return bool(of[0].get("finish_reason"))


def shape(value: Any, key: str = "") -> Any:
    """Keys, and what is below them: a kind, or the words themselves."""
    if isinstance(value, dict):
        return {
            "a word" if key in WORDS and "token" not in value else name: shape(one, name) for name, one in value.items()
        }
    if isinstance(value, list):
        return [shape(one, key) for one in value[:1]] if key != "bytes" else []
    if key in FIXED and isinstance(value, str | int):
        return worded(str(value))
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def worded(text: str) -> str:
    """Without what follows from the prompt, the model or the moment."""
    return re.sub(r"\d+(\.\d+)?", "0", text)
