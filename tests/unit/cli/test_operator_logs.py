"""How the operator logs, by its environment as the chart sets it."""

import json
import subprocess
import sys

import pytest

from paceline.controller.settings import from_environment

SAY = """
import logging, sys
from paceline.cli.operator import logs
logs(*sys.argv[1:])
for of in ("paceline.x", "kopf.x"):
    for level in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger(of), level)("%s in %s", level, of)
try:
    raise ValueError("a\\nb")
except ValueError:
    logging.getLogger("paceline").exception("broken")
"""


def said(level: str, form: str) -> list[str]:
    argv = [sys.executable, "-c", SAY, level, form]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stderr.splitlines()


def test_json_is_one_object_a_line_a_traceback_too() -> None:
    lines = [json.loads(line) for line in said("warning", "json")]
    assert [line["message"] for line in lines] == [
        "warning in paceline.x",
        "error in paceline.x",
        "warning in kopf.x",
        "error in kopf.x",
        "broken",
    ]
    assert [line["severity"] for line in lines] == ["warn", "error", "warn", "error", "error"]
    assert all(line["timestamp"] for line in lines)
    assert "ValueError" in lines[-1]["exc_info"]


@pytest.mark.parametrize(
    ("level", "ours", "kopfs"),
    [("debug", 4, 2), ("info", 3, 2), ("warning", 2, 2), ("error", 1, 1)],
)
def test_the_level_is_ours_and_kopf_says_warnings_at_most(level: str, ours: int, kopfs: int) -> None:
    lines = said(level, "text")
    assert (sum("in paceline.x" in line for line in lines), sum("in kopf.x" in line for line in lines)) == (ours, kopfs)


def test_without_a_word_it_is_info_as_text() -> None:
    settings = from_environment({})
    assert (settings.log_level, settings.log_format) == ("info", "text")
