"""docs/api.md is what the models say, and leads nowhere that is not there."""

import re
from pathlib import Path

from paceline.api.crd import CRD_KINDS, schema
from paceline.api.reference import reference_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "api.md"


def test_the_checked_in_page_is_current() -> None:
    assert PAGE.read_text() == reference_page(), "make generate"


def test_every_field_of_every_block_has_a_line() -> None:
    fields = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    for kind in CRD_KINDS.values():
        for model in filter(None, (kind.spec, kind.status)):
            assert schema(model)["properties"].keys() <= fields


def test_every_link_has_its_heading() -> None:
    page = PAGE.read_text()
    headings = {line.lstrip("# ").lower() for line in page.splitlines() if line.startswith("#")}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


def test_a_block_of_several_kinds_is_told_once() -> None:
    headings = re.findall(r"^### (.+)$", PAGE.read_text(), re.MULTILINE)
    assert len(headings) == len(set(headings))
