"""A user's file of prompts: what is read of it, and what is refused rather than measured as something else."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from paceline.core import Source
from paceline.pods.prompt_file import DatasetError, read

SOURCE = Source.parse("configMap://prompts/code.jsonl")


def said(role: str, text: Any) -> dict[str, Any]:
    return {"role": role, "content": text}


def turn(speaker: str, text: Any) -> dict[str, Any]:
    return {"from": speaker, "value": text}


def lines(*entries: Any) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def file(directory: Path, content: str | bytes) -> Path:
    path = directory / "code.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


OPENAI = lines(
    {"messages": [said("user", "Sort a list.")], "max_tokens": 64},
    {"messages": [said("user", "Grüße\u2028in zwei Zeilen"), said("assistant", "Hallo")]},
)
SHAREGPT = json.dumps([
    {"id": "1", "conversations": [turn("human", "Sort a list."), turn("gpt", "sorted(it)")]},
    {"id": "2", "conversations": [turn("human", "Grüße\u2028in zwei Zeilen")]},
])  # fmt: skip


@pytest.mark.parametrize("content", [OPENAI, SHAREGPT, lines(*json.loads(SHAREGPT)), f"\n{OPENAI}\n\n"])
def test_both_forms_as_lines_or_a_list(tmp_path: Path, content: str) -> None:
    assert read(file(tmp_path, content), SOURCE).usable == ("Sort a list.", "Grüße\u2028in zwei Zeilen")


def test_a_prompt_of_nothing_is_not_usable(tmp_path: Path) -> None:
    content = lines({"messages": [said("user", " \n")]}, {"messages": [said("user", "Sort a list.")]})
    assert read(file(tmp_path, content), SOURCE).usable == ("Sort a list.",)


def test_a_prompt_that_stands_there_twice_is_one(tmp_path: Path) -> None:
    """A hundred copies of one prompt are no set of a hundred: a cache would answer, and no interval would tell."""
    content = lines(*({"messages": [said("user", text)]} for text in ("one", "two", "one")))
    assert read(file(tmp_path, content), SOURCE).usable == ("one", "two")


def test_the_digest_is_sha256sums(tmp_path: Path) -> None:
    assert read(file(tmp_path, OPENAI), SOURCE).sha256 == hashlib.sha256(OPENAI.encode()).hexdigest()


def test_a_file_that_changes_while_arms_are_measured_is_still_the_same(tmp_path: Path) -> None:
    before = read(file(tmp_path, OPENAI), SOURCE)
    assert read(file(tmp_path, lines({"messages": [said("user", "Something else.")]})), SOURCE) is before


TWO = [said("user", "One?"), said("assistant", "One."), said("user", "And two?")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lines({"messages": TWO[:1]}, {"messages": TWO}), "entry 2 has 3 messages, 2 of them the user's: only single"),
        (json.dumps([{"conversations": [turn("human", "a"), turn("gpt", "b"), turn("human", "c")]}]), "entry 1 has 3"),
        (lines({"messages": [said("system", "Be brief."), TWO[0]]}), "entry 1 has a message of system: only one user"),
        (lines({"messages": [TWO[1], TWO[0]]}), "entry 1 has 2 messages, 1 of them the user's"),
        (lines({"messages": []}), "entry 1 has 0 messages"),
        (lines({"messages": [said("user", [{"type": "text", "text": "a"}])]}), "entry 1: content must be text"),
        (lines({"messages": ["Sort a list."]}), "entry 1: messages must be a list of objects with role and content"),
        (lines({"prompt": "Sort a list."}), "entry 1 has neither messages nor conversations: write"),
        (lines({"messages": [TWO[0]]}) + "{", "line 2 is no JSON"),
        ("[{]", "no JSON"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
    ],
)
def test_what_would_be_measured_as_something_else_is_refused(tmp_path: Path, content: str | bytes, why: str) -> None:
    with pytest.raises(DatasetError) as refused:
        read(file(tmp_path, content), SOURCE)
    assert str(refused.value).startswith(str(SOURCE))
    assert why in str(refused.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no such file: create it, or correct the source"):
        read(tmp_path / "absent", SOURCE)
    with pytest.raises(DatasetError, match="a directory: name a file in it"):
        read(tmp_path, SOURCE)
