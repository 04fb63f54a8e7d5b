"""One version in all files, and CHANGELOG.md: what a tag is held to before anything is built."""

import shutil
from datetime import date
from pathlib import Path

import pytest
from dev.release import __main__ as commands
from dev.release import changelog, versions

ROOT = Path(__file__).parents[3]
TEXT = """# Changelog

## [Unreleased]

### Added

* A thing that
  takes two lines.
* Another.

### Security

* A hole is closed.

## [0.1.0] - 2026-11-01

### Fixed

* An old one.
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the files that say the version."""
    for place in (*versions.PLACES, versions.RENDERED):
        (tmp_path / place.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place.file, tmp_path / place.file)
    return tmp_path


def test_every_file_says_the_same_version() -> None:
    assert versions.faults(f"v{versions.current()}") == []


@pytest.mark.parametrize("place", versions.PLACES, ids=lambda place: f"{place.file}-{place.line.partition(' ')[0]}")
def test_a_file_that_says_another_stops_a_release(tree: Path, place: versions.Place) -> None:
    was = versions.current(tree)
    place.say("9.9.9", tree)
    assert versions.faults(f"v{was}", tree) == [f"{place.file}: {place.line}9.9.9, not {was}"]


@pytest.mark.parametrize(("tag", "says"), [("0.1.0", "the tag is 0.1.0, not v0.1.0"), ("v1.0", "1.0 is no version")])
def test_a_tag_that_is_no_version_stops_a_release(tag: str, says: str) -> None:
    assert any(says in fault for fault in versions.faults(tag))


def test_another_version_is_written_everywhere(tree: Path) -> None:
    for place in versions.PLACES:
        place.say("0.2.0-rc.1", tree)
    rendered = f"deploy/kustomize/base/install.yaml: it is of {versions.current()}, not 0.2.0-rc.1: run `make chart`"
    assert versions.faults("v0.2.0-rc.1", tree) == [rendered], "what is written from the chart"
    assert "newTag: 0.2.0-rc.1" in (tree / "deploy/kustomize/example/kustomization.yaml").read_text()
    versions.RENDERED.say("0.2.0-rc.1", tree)
    assert versions.faults("v0.2.0-rc.1", tree) == []
    before, after = ((root / "pyproject.toml").read_text().splitlines() for root in (ROOT, tree))
    assert [new for old, new in zip(before, after, strict=True) if old != new] == ['version = "0.2.0-rc.1"']


def test_the_notes_of_a_version_are_its_section() -> None:
    assert changelog.section("0.1.0", TEXT) == "### Fixed\n\n* An old one."
    assert list(changelog.entries(changelog.notes("0.2.0", TEXT))) == [
        ("Added", "A thing that takes two lines."),
        ("Added", "Another."),
        ("Security", "A hole is closed."),
    ]


def test_a_release_makes_what_was_unreleased_its_own() -> None:
    new = changelog.released("0.2.0", date(2026, 12, 1), TEXT)
    assert changelog.section("0.2.0", new).startswith("### Added\n\n* A thing")
    assert new.index(changelog.UNRELEASED) < new.index("## [0.2.0] - 2026-12-01") < new.index("## [0.1.0]")
    with pytest.raises(ValueError, match=r"no `## \[0.3.0\] - DATE` with anything below it"):
        changelog.released("0.3.0", date(2026, 12, 2), new)


def test_a_tag_without_a_section_stops_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.check("v9.9.9") == 1
    assert "CHANGELOG.md has no `## [9.9.9] - DATE`" in capsys.readouterr().out


def test_the_changelog_has_the_headings_that_artifact_hub_knows() -> None:
    text = changelog.CHANGELOG.read_text()
    assert changelog.UNRELEASED in text
    assert list(changelog.entries(text.partition(changelog.UNRELEASED)[2])) != []
    with pytest.raises(ValueError, match="### Improved is none of Added"):
        list(changelog.entries("### Improved\n\n* x"))
