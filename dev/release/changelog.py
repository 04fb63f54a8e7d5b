"""CHANGELOG.md (Keep a Changelog 1.1.0): the section of a version, its entries, and a new one."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The headings that Keep a Changelog has; Artifact Hub has the same kinds."""
UNRELEASED = "## [Unreleased]"


def section(version: str, text: str) -> str:
    """What stands below `## [VERSION] - DATE`."""
    found = re.search(rf"(?ms)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$\n(.*?)(?=^## |\Z)", text)
    if found is None or not found[1].strip():
        raise ValueError(f"CHANGELOG.md has no `## [{version}] - DATE` with anything below it")
    return found[1].strip()


def notes(version: str, text: str) -> str:
    """Its section; before it has one, what is unreleased. `check` demands the section."""
    try:
        return section(version, text)
    except ValueError:
        return text.partition(UNRELEASED)[2].partition("\n## ")[0].strip()


def entries(said: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each entry, on one line each."""
    kind = ""
    for block in re.split(r"\n(?=### |\* )", said):
        if block.startswith("### "):
            kind = block.partition("\n")[0].removeprefix("### ").strip()
            if kind not in KINDS:
                raise ValueError(f"CHANGELOG.md: ### {kind} is none of {', '.join(KINDS)}")
        elif block.startswith("* ") and kind:
            yield kind, " ".join(block.removeprefix("* ").split())


def released(version: str, day: date, text: str) -> str:
    """What was unreleased is this version's."""
    if UNRELEASED not in text:
        raise ValueError(f"CHANGELOG.md has no {UNRELEASED}")
    new = text.replace(UNRELEASED, f"{UNRELEASED}\n\n## [{version}] - {day.isoformat()}", 1)
    section(version, new)
    return new
