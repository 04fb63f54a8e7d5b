"""The steady window against simulated loops of which the truth is known: what docs/validity.md says of it."""

import pytest
from tests.gate.closed_loops import CLOSE, DOCUMENT, Row, bias, line, measured, rows, written

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())


def test_the_document_has_every_row_and_each_is_right_to_half_a_percent() -> None:
    assert len(WRITTEN) == len(ROWS)
    assert all(text.startswith(row.name) for row, text in zip(ROWS, WRITTEN, strict=True))
    assert [text for text in WRITTEN if abs(bias(text)) > CLOSE] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.concurrency == 8 and row.dataset == "swe"], ids=str)
def test_a_row_counted_anew_is_the_documents(row: Row) -> None:
    """Those of one concurrency, with the code that reads the client's report as it is now."""
    assert line(row, measured(row)) in WRITTEN
