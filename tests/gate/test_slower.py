"""What is slower than the incumbent seldom replaces it: what docs/gate.md#non-inferiority says, with its table."""

import pytest
from tests.gate.rates import DOCUMENT
from tests.gate.rows import Row
from tests.gate.slower import COLUMNS, REPEATED, broken, line, measured, rows, written

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())
assert COLUMNS[REPEATED] == "workloads"


@pytest.mark.parametrize("row", [row for row in ROWS if row.figure], ids=lambda row: row.noise)
def test_a_figure_counted_anew_is_the_documents(row: Row) -> None:
    text = line(row, measured(row))
    assert broken(row, text) == []
    assert text in WRITTEN


def test_the_document_has_every_row_and_in_each_every_promise_is_kept() -> None:
    told = [text.split(" | ")[:4] for text in WRITTEN]
    assert told == [line(row, measured(row, 2)).split(" | ")[:4] for row in ROWS]
    assert [fault for row, text in zip(ROWS, WRITTEN, strict=True) for fault in broken(row, text)] == []
