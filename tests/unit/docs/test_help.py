"""`make help` tells every target of the Makefile, and a bare `make` does nothing but that."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
MOST_COLUMNS = 110


def make(*arguments: str) -> str:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_target_has_a_line() -> None:
    targets = re.findall(r"(?m)^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text())
    assert len(targets) > 20
    assert re.findall(r"(?m)^  make ([a-z-]+) +\S", make("help")) == targets


def test_a_bare_make_is_help() -> None:
    assert make() == make("help")


def test_its_lines_fit_a_terminal() -> None:
    assert [line for line in make("help").splitlines() if len(line) > MOST_COLUMNS] == []


def test_every_target_is_phony() -> None:
    """None of them is a file: a folder of that name must not stop it."""
    text = (ROOT / "Makefile").read_text()
    phony = {name for line in re.findall(r"(?m)^\.PHONY: (.*)$", text) for name in line.split()}
    assert phony == set(re.findall(r"(?m)^([a-z][a-z-]*):(?!=)", text))
