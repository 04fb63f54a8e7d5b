"""Which values the parser of a real engine takes, option by option, and which an emulated one does."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

WORDS = (
    "", "None", "0", "7", "-1", "1.5", "-0.5", "1e3", "many", "auto", "2k", "1.5k", "2K", "1.5K", "2Ki", "true",
    "{}", "{a", "[1]", '{"a": 1}',
)  # fmt: skip
"""What dev/vllm/try_values.py and dev/sglang-jax/try_values.py have tried."""


def options(captures: Path) -> list[Mapping[str, Any]]:
    """Names, choices, nargs, and those of WORDS that it takes; switches are left out."""
    return [json.loads(line) for line in (captures / "parser.jsonl").read_text().splitlines()]


def differing(parser: argparse.ArgumentParser, captured: list[Mapping[str, Any]]) -> Iterator[str]:
    """Options of `parser` that differ from the captured ones in what they take."""
    ours = {option: action for action in parser._actions for option in action.option_strings}
    for row in captured:
        name = row["names"][0]
        action = ours[name]
        choices = None if action.choices is None else sorted(map(str, action.choices))
        real = None if row["choices"] is None else sorted(row["choices"])
        if (action.nargs, choices) != (row["nargs"], real):
            yield f"{name}: {action.nargs}, {choices}"
        yield from (f"{name}={word}" for word in WORDS if taken(parser, action, word) != (word in row["takes"]))


def taken(parser: argparse.ArgumentParser, action: argparse.Action, word: str) -> bool:
    try:
        parser._check_value(action, parser._get_value(action, word))
    except (argparse.ArgumentError, ValueError):
        return False
    return True
