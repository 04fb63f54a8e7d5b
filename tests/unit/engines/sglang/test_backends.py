"""The table of attention backends is that of the wheels (`backends.json`, by dev/sglang/extract_backends.py)."""

import json
from pathlib import Path
from typing import Any

import pytest

from paceline.engines.sglang.backends import BACKENDS, GQA, MLA
from paceline.engines.sglang.flags_by_release import flags, judged_by, releases

READ: dict[str, Any] = json.loads(Path(__file__).with_name("backends.json").read_text())
RELEASES = releases()[releases().index("0.5.5") :]
FINAL = [one for one in RELEASES if "rc" not in one]
ALIASES = {"compressed": "dsv4", "tokenspeed_mla": "cutedsl_mla"}
"""Name → the one that 0.5.23 makes of it (arg_groups/choices.py:77 and :86)."""


def said(key: str, version: str) -> set[str]:
    """The backends of which a release says so."""
    at = RELEASES.index(version)
    return {
        name
        for name, spans in READ[key].items()
        if any(RELEASES.index(first) <= at <= RELEASES.index((last or RELEASES)[-1]) for first, *last in spans)
    }


@pytest.mark.parametrize("version", FINAL)
def test_drafts_are_made_where_the_release_makes_them(version: str) -> None:
    offered = set(flags(version)["--attention-backend"].choices) & BACKENDS.keys()
    drafts = said("drafts", version)
    table = {name for name in offered if BACKENDS[name].drafts_in(version) and BACKENDS[name].verifies}
    assert table == {name for name in offered if name in drafts or ALIASES.get(name) in drafts}


@pytest.mark.parametrize("version", RELEASES)
def test_every_attention_backend_of_a_release_is_in_the_table(version: str) -> None:
    assert set(flags(version)["--attention-backend"].choices) - BACKENDS.keys() <= {"qsa"}


def test_each_computes_what_the_registry_says() -> None:
    assert {name for name in READ["onlyMLA"] if GQA in BACKENDS[name].attends} == set()
    assert {name for name in READ["neverMLA"] if MLA in BACKENDS[name].attends} == set()
    assert {name for name in READ["neverSpeculates"] if BACKENDS[name].verifies} == set()


def test_none_branches_on_what_it_does_not_compute() -> None:
    assert [name for name, row in BACKENDS.items() if not row.branches <= row.attends] == []


@pytest.mark.parametrize(("version", "drafts"), [("0.5.9", False), ("0.5.10.post1", True), ("0.5.2", True)])
def test_of_releases_before_those_nothing_is_said(version: str, drafts: bool) -> None:
    assert judged_by(version) == version
    assert BACKENDS["fa4"].drafts_in(version) is drafts
    assert not BACKENDS["wave"].drafts_in(version)
