"""Golden files: what is written is compared with what is checked in. `PACELINE_GOLDEN=write` writes it instead."""

import inspect
import os
import textwrap
from pathlib import Path
from typing import Any

import yaml

WRITE = os.environ.get("PACELINE_GOLDEN") == "write"


class Readable(yaml.SafeDumper):
    """Without anchors, lists indented, scripts as they are written: a diff of it is meant to be read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: Readable, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, _text)


def check(path: Path, value: Any, title: str = "") -> None:
    """`value` is what the golden file at `path` holds; `title` stands above it as a comment."""
    header = textwrap.indent(inspect.cleandoc(title), "# ", lambda _: True) + "\n" if title else ""
    text = header + yaml.dump(value, Dumper=Readable, sort_keys=False, allow_unicode=True, width=2000)
    if WRITE:
        path.write_text(text)
    golden = path.read_text() if path.exists() else ""
    assert text == golden, f"{path.name} says otherwise: PACELINE_GOLDEN=write pytest TESTS, then read the diff"
