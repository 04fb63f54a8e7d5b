"""Parts of a document that tests write: between `<!-- NAME -->` and `<!-- end -->`."""

from pathlib import Path

from tests.support.golden import WRITE


def is_in(document: Path, name: str, told: str, by: str) -> None:
    """The part has this text; with PACELINE_GOLDEN=write it gets it. `by`: the tests that write it."""
    before, mark, rest = document.read_text().partition(f"<!-- {name} -->\n")
    written, end, after = rest.partition("<!-- end -->\n")
    assert end, f"{document.name} has no place for {name}"
    if WRITE:
        document.write_text("".join((before, mark, told, end, after)))
        written = told
    assert written == told, f"PACELINE_GOLDEN=write pytest {by}, then read the diff"
