"""The pictures of docs: small, of a page that says which, and loading nothing."""

import re
from pathlib import Path

import pytest
from tests.browser.screenshots import LARGEST, SHOTS, TERMINALS

PICTURES = Path(__file__).parents[3] / "docs" / "pictures"


def test_every_picture_is_drawn_by_a_target_and_none_is_left_over() -> None:
    drawn = {f"{name}.png" for name in SHOTS} | {f"{name}.svg" for name in TERMINALS}
    assert {path.name for path in PICTURES.iterdir()} == drawn | {"README.md"}


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.[ps][nv]g")), ids=lambda path: path.name)
def test_it_is_small_enough_for_a_page(path: Path) -> None:
    assert 1000 < path.stat().st_size <= LARGEST


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_terminal_loads_nothing_and_says_that_it_is_emulated(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"@font-face|href=|url\((?!#)", text)
    assert ">emulated</text>" in text


def test_every_picture_of_a_document_says_that_it_is_emulated() -> None:
    pages = PICTURES.parent.rglob("*.md")
    shown = [
        alt for page in pages for alt in re.findall(r"!\[([^\]]*)\]\((?:\.\./)*(?:docs/)?pictures/", page.read_text())
    ]
    assert len(shown) >= 3
    assert all(alt.startswith("Emulated: ") for alt in shown)
