"""What the documents name is there: tests, files, links, commands."""

import ast
import re
from pathlib import Path

import pytest

from paceline.cli import COMMANDS

ROOT = Path(__file__).parents[3]
DECISIONS = ROOT / "docs" / "decisions" / "README.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)+")
FILE = re.compile(r"(?<![\w/.-])(?:charts|crds|dev|docs|examples|operator|paceline_emulator|tests)/[\w./-]*\w")
TARGET = re.compile(r"\bmake ([a-z][a-z-]*)")
COMMAND = re.compile(r"\.venv/bin/paceline ([a-z]+)")
CONTRACT = re.compile(r"importlinter:([a-z-]+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")

document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def code(path: Path) -> str:
    """What stands in code spans and code blocks."""
    return "\n".join(CODE.findall(path.read_text()))


@document
def test_the_tests_it_names_are_there(path: Path) -> None:
    assert [test for test in TEST.findall(path.read_text()) if not is_there(*test.split("::"))] == []


def is_there(file: str, *names: str) -> bool:
    """A function of that name, in the classes before it."""
    source = ROOT / file
    body = ast.parse(source.read_text()).body if source.exists() else []
    for name in names:
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
        ]
        if not found:
            return False
        body = found[0].body
    return True


@document
def test_the_files_it_names_are_there(path: Path) -> None:
    assert [file for file in FILE.findall(code(path)) if not (ROOT / file).exists()] == []


@document
def test_its_links_lead_somewhere(path: Path) -> None:
    inside = [link.partition("#")[0] for link in LINK.findall(path.read_text()) if "://" not in link]
    assert [link for link in inside if not (path.parent / link).exists()] == []


@document
def test_its_commands_are_there(path: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", (ROOT / "Makefile").read_text()))
    contracts = set(re.findall(r"(?m)^\[importlinter:contract:([a-z-]+)\]", (ROOT / ".importlinter").read_text()))
    assert set(TARGET.findall(code(path))) <= targets
    assert set(COMMAND.findall(code(path))) <= set(COMMANDS)
    assert set(CONTRACT.findall(code(path))) <= contracts


@pytest.mark.parametrize("path", sorted(DECISIONS.parent.glob("[0-9]*.md")), ids=lambda path: path.stem)
def test_a_decision_says_why_and_what_else_was_possible(path: Path) -> None:
    headings = re.findall(r"^## (.*)$", path.read_text(), re.MULTILINE)
    assert headings == ["Context", "Decision", "Rejected", "Consequences"]
    assert f"]({path.name})" in DECISIONS.read_text()


SOURCES = [path for part in ("operator", "tests", "dev", "charts", "examples") for path in (ROOT / part).rglob("*.py")]
SECTION = re.compile(r"(docs/[\w/-]+\.md)#([\w-]+)")
"""What code says of a document: the file and its heading, as GitHub makes an anchor of it."""


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text())
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_sections_that_code_names_are_there() -> None:
    named = {(*section, path) for path in SOURCES for section in SECTION.findall(path.read_text())}
    assert ("docs/gate.md", "the-rule", ROOT / "operator/paceline/gate/rule.py") in named
    assert [found for found in sorted(named) if found[1] not in anchors(ROOT / found[0])] == []


def test_code_names_no_section_by_a_number() -> None:
    assert [path for path in SOURCES if re.search(r"DESIGN[\w']* §|DESIGN's", path.read_text())] == [Path(__file__)]


MOST_COLUMNS = 100
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "api.md"})]
"""docs/api.md is generated."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_its_lines_are_wrapped(path: Path) -> None:
    """Tables and code aside, and what has no space to wrap at: a link, the name of a test."""
    text = re.sub(r"(?ms)^```.*?^```|^    .*?$|^\|.*?$|^<!--.*?-->$", "", path.read_text())
    words = {line: len(re.sub(r"`[^`]*`", "code", line).split()) for line in text.splitlines()}
    assert [line for line, many in words.items() if len(line) > MOST_COLUMNS and many > 2] == []


def test_the_map_is_short_enough_to_read() -> None:
    assert len((ROOT / "AGENTS.md").read_bytes()) <= 10_000


def test_every_gotcha_names_a_test_that_is_there() -> None:
    """`load_bearing` stands for its file; whole files and contracts of import-linter are tests, too."""
    rows = (ROOT / "AGENTS.md").read_text().partition("| fact | test |")[2].splitlines()[2:]
    tests = [row.rstrip("| ").rpartition(" | ")[2] for row in rows if row.startswith("|")]
    short = [name for test in tests for name in re.findall(r"`(test_\w+)`", test)]
    assert len(tests) > 10
    assert [test for test in tests if not re.search(r"`(?:tests/|importlinter:|load_bearing`: `test_)", test)] == []
    assert [name for name in short if not is_there("tests/unit/docs/test_load_bearing.py", name)] == []
