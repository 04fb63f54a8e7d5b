"""Environment variables that a release reads, or does not: the table is that of the wheels (`variables.json`)."""

import json
from pathlib import Path

import pytest
from tests.support.messages import Says
from tests.unit.engines.sglang.servers import server

from paceline.engines import ENGINES
from paceline.engines.sglang.variables import VARIABLES

READ = json.loads(Path(__file__).with_name("variables.json").read_text())


def test_each_is_read_by_the_releases_that_the_table_names() -> None:
    """Anew: dev/sglang/extract_variables.py."""
    table = {name: [[row.since, row.until] if row.until else [row.since]] for name, row in VARIABLES.items()}
    assert table == READ


@pytest.mark.parametrize(
    ("version", "name", "read"),
    [
        ("0.5.12", "SGLANG_ENABLE_SPEC_V2", True),
        ("0.5.13.post1", "SGLANG_ENABLE_SPEC_V2", True),
        ("0.5.23", "SGLANG_ENABLE_SPEC_V2", False),
        ("0.5.23", "SGL_ENABLE_SPEC_V2", False),
        ("0.5.4", "SGLANG_ENABLE_SPEC_V2", False),
        ("0.5.20", "SGLANG_ENABLE_PP_SPEC", False),
        ("0.5.22", "SGLANG_DSPARK_FAST_SAMPLING", False),
        ("0.5.23", "SGLANG_ANYTHING_ELSE", True),
        ("0.6.0", "SGLANG_ENABLE_SPEC_V2", True),
    ],
)
def test_what_a_release_does_not_read_is_noted(version: str, name: str, read: bool, says: Says) -> None:
    given = server(version=version, env=({"name": "A", "value": "b"}, {"name": name, "value": "1"}))
    notes = list(ENGINES["SGLang"].ignored(given))
    assert [path for path, _ in notes] == ([] if read else ["engine.env[1].name"])
    says(*(message for _, message in notes))
