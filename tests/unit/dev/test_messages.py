"""The golden of all messages: what a test hears is held to it, and nothing in it is of a test that has gone."""

import json
from pathlib import Path

import pytest
from tests.support.messages import FILE, Messages

ROOT = Path(__file__).parents[3]


def test_a_message_that_differs_comes_first_or_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.messages.WRITE", False)
    messages = Messages()
    messages.kept = {"test": ["one at 127.0.0.1:PORT", "two"]}
    with messages.of("test") as says:
        says("one at 127.0.0.1:8080")
        says("two")
    for heard in (["one"], ["two", "one at 127.0.0.1:1"], ["one at 127.0.0.1:1"]):
        with pytest.raises(AssertionError, match="PACELINE_GOLDEN=write pytest test"), messages.of("test") as says:
            says(*heard)


def test_each_is_of_a_test_that_is_there() -> None:
    missing = []
    for test in json.loads(FILE.read_text()):
        file, _, name = test.partition("::")
        path = ROOT / file
        if not path.exists() or f"def {name.partition('[')[0].rpartition('::')[2]}(" not in path.read_text():
            missing.append(test)
    assert missing == []
