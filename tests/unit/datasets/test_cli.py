"""`paceline datasets export code -o code.json` gives what SGLang's client reads."""

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest

from paceline.cli import datasets as command
from paceline.pods import datasets


def paceline(*argv: str) -> int:
    parser = ArgumentParser()
    command.add(parser.add_subparsers())
    args = parser.parse_args(argv)
    return command.run(args)


def test_export_writes_sharegpt(tmp_path: Path) -> None:
    assert paceline("datasets", "export", "chat", "-o", str(tmp_path / "chat.json")) == 0

    first, *rest = json.loads((tmp_path / "chat.json").read_text(encoding="utf-8"))
    assert first["id"] == "chat-001"
    assert [turn["from"] for turn in first["conversations"]] == ["human", "gpt"]
    assert first["conversations"][0]["value"] == datasets.load_dataset("chat")[0]
    assert 24 <= len(first["conversations"][1]["value"].split()) <= 60
    assert [first["conversations"][0]["value"], *(c["conversations"][0]["value"] for c in rest)] == [
        *datasets.load_dataset("chat")
    ]


def test_list_shows_every_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("datasets", "list") == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[1:]] == list(datasets.NAMES)


def test_an_unknown_name_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        paceline("datasets", "export", "gsm8k")
    assert stop.value.code == 2
    assert "swe" in capsys.readouterr().err
