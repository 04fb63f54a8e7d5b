"""Every field that a page names by its path is there: from `spec` or `status` on in one of our kinds, else below
the spec of a SpeculativeDeployment, which is what a reader edits, or below a status."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.documented import PAGES, ROOT

from paceline.api import crds

SPAN = re.compile(r"`([a-z][A-Za-z]*(?:\[\d*\])?(?:\.[a-z][A-Za-z]*(?:\[\d*\])?)+)(?::[^`]*)?`")
WHOLE = ("spec.", "status.")
OTHERS = {
    "engine.podTemplate.metadata.labels", "engine.podTemplate.spec.imagePullSecrets",  # a pod's
    "engine.podTemplate.spec.nodeSelector", "engine.podTemplate.spec.resourceClaims",
    "pools.message", "pools.run.search",  # what `gate NAME -o json` and `status -o json` print
    "spec.speculator", "status.storedVersions",  # of KServe, of a CRD
}  # fmt: skip
"""Paths of other objects, and of what commands print."""


def paths(schema: dict[str, Any], below: str = "") -> Iterator[str]:
    for name, inner in (schema.get("properties") or {}).items():
        yield f"{below}{name}"
        yield from paths(inner.get("items") or inner, f"{below}{name}.")


def fields(number: int) -> set[str]:
    return set(paths(crds()[number]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]))


EITHER = {path for number in range(len(crds())) for path in fields(number)}
EDITED = {path.removeprefix("spec.") for path in fields(0) if path.startswith("spec.")}


def unknown(text: str) -> Iterator[str]:
    for span in SPAN.findall(text):
        path = re.sub(r"\[\d*\]", "", span)
        named, kind = re.subn("^(specdep|bench|benchround)[.]", "", path)
        if path.startswith(WHOLE) or kind:
            known = named in EITHER
        else:
            known = path.partition(".")[0] not in EDITED or path in EDITED or f"status.{path}" in EITHER
        if not known and path not in OTHERS:
            yield span


def test_a_field_that_another_kind_has_there_is_found() -> None:
    text = "`gate.decideAfterRounds`, `benchmark.decideAfterRounds`, `benchround.spec.try`, `status.history`"
    assert list(unknown(text)) == ["benchmark.decideAfterRounds", "status.history"]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "api.md"], ids=lambda page: page.name)
def test_a_field_that_a_page_names_is_there(page: Path) -> None:
    assert list(unknown(page.read_text())) == []


def test_every_example_has_its_line_on_their_page() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    assert [file.name for file in sorted((ROOT / "examples").glob("*.yaml")) if f"/{file.name})" not in page] == []
