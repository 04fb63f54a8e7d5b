"""Every example is valid, and renders as its golden says: `PACELINE_GOLDEN=write` writes these anew."""

from importlib import resources
from pathlib import Path
from textwrap import indent

import pytest
from tests.support import golden
from tests.support.example_files import RUNS, ours
from tests.support.rendered import FILES, argv, arms, readable

from paceline.cli import main
from paceline.render.round_job import as_it_is

GOLDEN = Path(__file__).with_name("golden")
INDENT = " " * 10
SCRIPTS = {
    f"{INDENT}({name})\n": indent(as_it_is((resources.files("paceline.render") / name).read_text()), INDENT)
    for name in ("wrapper.sh", "energy.py")
}

every = pytest.mark.parametrize("path", [*FILES, *RUNS], ids=lambda path: path.stem)


@every
def test_validate_has_nothing_to_say(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == ""


@every
def test_it_renders_as_its_golden(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts of an arm's container, which are the same in every round, by their names."""
    assert main(["render", str(path)]) == 0
    found, kept = capsys.readouterr().out, GOLDEN / path.name
    for name, script in SCRIPTS.items():
        found = found.replace(script, name)
    if golden.WRITE:
        kept.write_text(found)
    assert found == kept.read_text(), "PACELINE_GOLDEN=write pytest tests/unit/examples, then read the diff"


def test_the_argv_of_every_arm() -> None:
    """One line an arm, as a person would type it; models by the names of their repositories."""
    told: dict[str, dict[str, dict[str, str]]] = {}
    for path in FILES:
        for pool, arm in arms(path.stem):
            line = readable(" ".join(argv(path.stem, pool, arm)))
            told.setdefault(path.stem, {}).setdefault(pool, {})[arm] = line
    golden.check(GOLDEN / "argv" / "argv.yaml", told)


def test_every_golden_has_its_example() -> None:
    assert {path.name for path in GOLDEN.glob("*.yaml")} == {path.name for path in (*FILES, *RUNS)}


@every
def test_it_says_why(path: Path) -> None:
    """An example is read before it is applied: it begins with a comment."""
    assert path.read_text().startswith("# ")


def test_the_copy_for_gitops_is_a_copy() -> None:
    (path,) = [path for path in FILES if path.stem == "qwen3-coder-next"]
    assert (path.parent / "gitops" / "models" / path.name).read_text() == path.read_text()


def test_each_has_a_name_of_its_own() -> None:
    """So that all of them can be applied to one namespace."""
    for paths in (FILES, RUNS):
        names = [ours(path)["metadata"]["name"] for path in paths]
        assert len(names) == len(set(names))
