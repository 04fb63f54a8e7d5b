"""Reading within bounds: what is too deep or too large is left out of its object, and of nothing else."""

import json
from typing import Any

import pytest
from tests.support.answered import deep

from paceline.kube.reading import DEEPEST, LARGEST, UNREAD, a_page, an_event, an_object, parsed, shallow, within


def an_item(name: str, spec: str) -> str:
    return f'{{"kind":"Widget","metadata":{{"name":"{name}"}},"spec":{spec},"status":{{"phase":"known"}}}}'


@pytest.mark.parametrize(
    ("spec", "limit"),
    [
        (deep(DEEPEST), None),
        (deep(DEEPEST + 1), DEEPEST),
        (deep(900), DEEPEST),
        (deep(10_000), DEEPEST),
        (f'{{"a":{deep(10_000, "[", "]")}}}', DEEPEST),
        (f'{{"a":"{"x" * (LARGEST - 8)}"}}', None),
        (f'{{"a":"{"x" * (LARGEST - 7)}"}}', LARGEST),
        (f'{{"a":[{"{}," * 450_000}{{}}]}}', LARGEST),
    ],
    ids=["deep-enough", "deeper", "deep-for-us", "deep-for-the-parser", "lists", "large-enough", "larger", "many"],
)
def test_what_is_read_of_an_object(spec: str, limit: int | None) -> None:
    read = an_object(an_item("a", spec).encode())
    assert ("spec" in read, UNREAD in read) == (limit is None, limit is not None)
    assert limit is None or str(limit) in read[UNREAD]
    assert (read["metadata"], read["status"]) == ({"name": "a"}, {"phase": "known"}), "all that a status needs"


def test_one_object_of_a_page_or_of_a_watch_spoils_no_other() -> None:
    items = [an_item("good", '{"size":1}'), an_item("deep", deep(10_000)), an_item("too", '{"size":2}')]
    page = f'{{"metadata":{{"resourceVersion":"7"}},"items":[{",".join(items)}]}}'
    found, about = a_page(page.encode())
    assert about == {"resourceVersion": "7"}
    assert [item.get("spec") for item in found] == [{"size": 1}, None, {"size": 2}]
    event = an_event(f'{{"type":"ADDED","object":{items[1]}}}'.encode())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "deep")


@pytest.mark.parametrize(
    "value",
    [
        {"a": "}]{[", "b": ["\\", '"', '\\"{'], "c": {"d": []}},
        ["{" * 300, {"[" * 300: "]" * 300}],
        "text alone",
        {},
    ],
)
def test_brackets_in_texts_are_no_levels(value: Any) -> None:
    text = json.dumps(value).encode()
    assert shallow(text) == text
    assert shallow(text, 0) == (b"NaN" if isinstance(value, dict | list) else text)


def test_what_is_no_json_is_told_also_where_it_is_deep() -> None:
    for text in (b"", b"{", b"<html>", b"[" * 10_000, (deep(5_000) + "}").encode()):
        with pytest.raises(ValueError, match=r"line 1 column"):
            parsed(text)


def test_levels_are_those_of_lists_and_mappings() -> None:
    assert within("text", 0)
    assert within({}, 1)
    assert within({"a": [1, {"b": 2}]}, 3)
    assert not within({"a": [1, {"b": 2}]}, 2)
