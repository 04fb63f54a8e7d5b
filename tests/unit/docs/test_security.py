"""docs/security.md: each claim names the tests that show it, and each of these is there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "security.md").read_text()
BODY, _, TABLE = TEXT.partition("\n## Tests\n")
ROWS = re.findall(r"^\| `(tests/\S+)` \| ([\d, ]+) \|$", TABLE, re.MULTILINE)
FILES = {int(number): file for file, numbers in ROWS for number in numbers.split(", ")}
TESTS: dict[int, str] = yaml.safe_load((ROOT / "tests" / "docs" / "security.yaml").read_text())
MARK = re.compile(r"\[(?:\d+|–)\]")
INTRODUCES = (
    "Numbers in brackets name",
    "Here `paceline` is",
    "A SpeculativeDeployment and a BenchmarkRun become pods",
)
"""How paragraphs begin that say what the page is about."""


def claims() -> Iterator[str]:
    """Paragraphs, items of lists and rows of tables: all but headings, code, and what leads to a list or a command."""
    for block in BODY.split("\n\n"):
        for part in re.split(r"\n(?=\* |\| )", block.strip("\n")):
            text = " ".join(part.split())
            framing = text.startswith(("#", "|---", "| who |")) or not text
            if not (framing or part.startswith("    ") or text.endswith(":") or text.startswith(INTRODUCES)):
                yield text


def test_each_claim_names_what_shows_it_or_says_that_nothing_does() -> None:
    assert len(list(claims())) > 40
    assert [claim for claim in claims() if not MARK.search(claim)] == []


def test_every_number_is_a_test_and_every_test_is_named() -> None:
    assert {int(number) for number in re.findall(r"\[(\d+)\]", BODY)} == set(TESTS) == set(range(1, len(TESTS) + 1))


def test_the_table_has_the_file_of_each_test() -> None:
    assert len(TESTS) > 50
    assert {number: test.partition("::")[0] for number, test in TESTS.items()} == FILES


def test_each_test_is_there() -> None:
    for test in TESTS.values():
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in found, test
