"""A user's file of prompts: what is read of it, and what is refused rather than measured as something else."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.messages import Says

from paceline.core import Source
from paceline.pods import prompt_table
from paceline.pods.prompt_file import DatasetError, Prompts, read_prompts

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


def texts(found: Prompts) -> list[str]:
    """Of prompts that are one question each."""
    return [one["messages"][0]["content"] for one in bodies(found)]


def bodies(found: Prompts) -> list[Any]:
    """Of all requests."""
    return [json.loads(one.body(turn)) for one in found.conversations for turn in range(len(one.turns))]


@pytest.mark.parametrize("content", [OPENAI, SHAREGPT, lines(*json.loads(SHAREGPT)), f"\n{OPENAI}\n\n"])
def test_both_forms_as_lines_or_a_list(tmp_path: Path, content: str) -> None:
    assert texts(read_prompts(file(tmp_path, content), SOURCE)) == ["Sort a list.", "Grüße\u2028in zwei Zeilen"]


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    """Editors on Windows begin a file with it."""
    assert texts(read_prompts(file(tmp_path, f"\ufeff{OPENAI}"), SOURCE)) == [
        "Sort a list.",
        "Grüße\u2028in zwei Zeilen",
    ]


def test_a_prompt_of_nothing_is_not_usable(tmp_path: Path) -> None:
    content = lines({"messages": [said("user", " \n")]}, {"messages": [said("user", "Sort a list.")]})
    assert texts(read_prompts(file(tmp_path, content), SOURCE)) == ["Sort a list."]


def test_a_prompt_that_stands_there_twice_is_one(tmp_path: Path) -> None:
    """A hundred copies of one prompt are no set of a hundred: a cache would answer, and no interval would tell."""
    content = lines(*({"messages": [said("user", text)]} for text in ("one", "two", "one")))
    assert texts(read_prompts(file(tmp_path, content), SOURCE)) == ["one", "two"]


def test_the_digest_is_sha256sums(tmp_path: Path) -> None:
    assert read_prompts(file(tmp_path, OPENAI), SOURCE).sha256 == hashlib.sha256(OPENAI.encode()).hexdigest()


def test_a_file_that_changes_while_arms_are_measured_is_still_the_same(tmp_path: Path) -> None:
    before = read_prompts(file(tmp_path, OPENAI), SOURCE)
    assert read_prompts(file(tmp_path, lines({"messages": [said("user", "Something else.")]})), SOURCE) is before


TWO = [said("user", "One?"), said("assistant", "One."), said("user", "And two?")]


TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
CALL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
SYSTEM = said("system", "Be brief.")
ASKED = {"messages": TWO}


@pytest.mark.parametrize(
    ("entry", "sent"),
    [
        pytest.param({"messages": TWO}, ASKED, id="ends with a question: sent whole"),
        pytest.param({"messages": [*TWO, said("assistant", "Two.")]}, ASKED, id="the last answer is generated"),
        pytest.param({"messages": [SYSTEM, TWO[0]]}, {"messages": [SYSTEM, TWO[0]]}, id="system prompt"),
        pytest.param(
            {"messages": TWO, "max_tokens": 9, "temperature": 1, "model": "m", "tools": [TOOL], "tool_choice": "auto"},
            {"tools": [TOOL], "tool_choice": "auto", "messages": TWO},
            id="bench_serving's openai: tools are sent, sampling and lengths are the dataset's",
        ),
        pytest.param(
            {"messages": [TWO[0], {**said("assistant", None), "tool_calls": [CALL]},
                          {**said("tool", "found"), "tool_call_id": "1"}, said("assistant", "It is there.")]},
            {"messages": [TWO[0], {**said("assistant", ""), "tool_calls": [CALL]},
                          {**said("tool", "found"), "tool_call_id": "1"}]},
            id="a tool's result is answered",
        ),
        pytest.param(
            {"conversations": [turn("system", "Be brief."), turn("human", "One?"), turn("gpt", "One.")]},
            {"messages": [SYSTEM, TWO[0]]},
            id="ShareGPT with a system prompt",
        ),
        pytest.param(
            {"conversations": [{"content": message["content"]} for message in TWO]}, ASKED, id="bench_serving's custom"
        ),
        pytest.param(
            {"messages": [TWO[0], {**TWO[1], "reasoning": "Hm."}, TWO[2]], "continue_final_message": False},
            {"messages": [TWO[0], {**TWO[1], "reasoning": "Hm."}, TWO[2]]},
            id="thoughts, in the words of vLLM",
        ),
        pytest.param(
            {"messages": [said("user", [{"type": "text", "text": "a"}])]},
            {"messages": [said("user", [{"type": "text", "text": "a"}])]},
            id="parts of text",
        ),
    ],
)  # fmt: skip
def test_what_is_sent_of_a_conversation(tmp_path: Path, entry: dict[str, Any], sent: dict[str, Any]) -> None:
    found = read_prompts(file(tmp_path, lines(entry)), SOURCE)
    assert bodies(found) == [sent]


@pytest.mark.parametrize(
    "entry",
    [
        {"conversations": [{"content": "One?"}, {"content": "One."}]},
        {"conversation": [{"value": "One?"}, {"value": "One."}]},
        {"prompt": "One?"},
        {"turns": ["One?", "And two?"], "category": "low_entropy"},
    ],
)
def test_of_benchmarks_the_first_turn_is_asked(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert texts(read_prompts(file(tmp_path, lines(entry)), SOURCE)) == ["One?"]


def test_a_file_may_have_questions_and_conversations(tmp_path: Path) -> None:
    found = read_prompts(file(tmp_path, lines({"messages": TWO[:1]}, {"messages": TWO})), SOURCE)
    assert [len(body["messages"]) for body in bodies(found)] == [1, 3]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (lines({"messages": TWO[:1]}, {"messages": TWO[1:2]}), "entry 2"),
        (lines({"messages": [said("system", "Be brief.")]}), "entry 1"),
        (lines({"messages": []}), "entry 1"),
        (lines({"messages": [said("function", "a"), TWO[0]]}), "entry 1: messages"),
        (lines({"messages": [said("user", None)]}), "entry 1: messages: content"),
        (lines({"messages": [said("user", [{"type": "image_url", "image_url": {}}])]}), "entry 1: messages: content"),
        (lines({"messages": ["Sort a list."]}), "entry 1: messages"),
        (lines({"messages": TWO, "tools": "search"}), "entry 1: tools"),
        (lines({"turns": ["FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING A SCRIPT"]}), "entry 1"),
        (
            lines({"messages": [TWO[0], said("assistant", "On")], "continue_final_message": True}),
            "entry 1: continue_final_message",
        ),
        (lines({"messages": [TWO[0], {**said("assistant", "On"), "prefix": True}]}), "entry 1: messages: prefix"),
        (lines({"messages": TWO, "functions": [{"name": "f"}]}), "entry 1: functions"),
        (
            lines({"messages": [TWO[0], {**said("assistant", ""), "function_call": {"name": "f"}}, TWO[2]]}),
            "entry 1: messages: function_call",
        ),
        (lines({"turns": [{"content": "a"}]}), "entry 1: turns"),
        ('{"prompt": "One?"}\n{"prompt": "Two \\ud83d?"}', "entry 2"),
        (lines({"question": "Sort a list."}), "entry 1"),
        (lines({"messages": [TWO[0]]}) + "{", "line 2"),
        ("[{]", ""),
        (b"\xff\xfe", "byte 0"),
    ],
    ids=itertools.count(),
)
def test_what_would_be_measured_as_something_else_is_refused(
    tmp_path: Path, content: str | bytes, place: str, says: Says
) -> None:
    with pytest.raises(DatasetError, match=f"^{SOURCE}: .*{place}") as refused:
        read_prompts(file(tmp_path, content), SOURCE)
    says(refused.value)


def test_what_is_not_there(tmp_path: Path, says: Says) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(DatasetError, match=f"^{SOURCE}: ") as refused:
            read_prompts(path, SOURCE)
        says(refused.value)


def parquet(path: Path, row: str) -> Path:
    duckdb.execute(f"COPY (SELECT {row}) TO '{path}' (FORMAT parquet)")
    return path


MESSAGES = "[{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'One?'}]"


@pytest.mark.parametrize(
    ("row", "usable"),
    [
        (f"{MESSAGES} AS messages, 7 AS id", [{"messages": [SYSTEM, TWO[0]]}]),
        (f"$${json.dumps([SYSTEM, TWO[0]])}$$ AS messages", [{"messages": [SYSTEM, TWO[0]]}]),
        ("['One?', 'And two?'] AS turns, 'low_entropy' AS category", [{"messages": [said("user", "One?")]}]),
        ("'One?' AS prompt", [{"messages": [said("user", "One?")]}]),
    ],
)
def test_a_table_of_parquet(tmp_path: Path, row: str, usable: list[Any]) -> None:
    found = read_prompts(parquet(tmp_path / "train.parquet", row), SOURCE)
    assert bodies(found) == usable


def test_a_table_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text('id,prompt\n1,"Say ""hello"",\nplease."\n2,007\n')
    assert texts(read_prompts(path, SOURCE)) == ['Say "hello",\nplease.', "007"]


def test_a_prompt_of_a_table_may_be_json_that_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "TRAIN.CSV"
    path.write_text('prompt\n"{""a"": 1}"\n[1]\n"[{""role"": ""user"", ""content"": ""One?""}]"\n')
    assert texts(read_prompts(path, SOURCE)) == ['{"a": 1}', "[1]", "One?"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("train.parquet", b"PAR1"), ("train.csv", b"question,answer\na,b\n"), ("train.csv", b"messages\nhello\n")],
)
def test_a_table_without_prompts(tmp_path: Path, name: str, content: bytes, says: Says) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=f"^{SOURCE}: ") as refused:
        read_prompts(path, SOURCE)
    says(refused.value)


def test_a_table_that_unpacks_to_more_than_is_read(tmp_path: Path) -> None:
    path = parquet(tmp_path / "train.parquet", "repeat('a', 2000) AS prompt FROM range(1000)")
    assert path.stat().st_size < 50_000
    with pytest.raises(DatasetError, match="1 MiB"):
        list(prompt_table.conversation_columns(path, 1 << 20))
