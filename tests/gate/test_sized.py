"""Requests by the noise of the first round's baseline: what docs/gate.md says of them."""

import pytest
from tests.gate.rates import DOCUMENT
from tests.gate.sized import Row, broken, line, measured, read, rows, written

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())


@pytest.mark.parametrize("row", [row for row in ROWS if row.figure], ids=lambda row: f"{row.name}, {row.noise}")
def test_a_figure_counted_anew_is_the_documents(row: Row) -> None:
    text = line(row, measured(row))
    assert broken(row, read(text)) == []
    assert text in WRITTEN


def test_the_document_has_every_row_and_in_each_every_promise_is_kept() -> None:
    assert [text.split(" | ")[:6] for text in WRITTEN] == [line(row, measured(row, 1)).split(" | ")[:6] for row in ROWS]
    assert [fault for row, text in zip(ROWS, WRITTEN, strict=True) for fault in broken(row, read(text))] == []


def test_the_flagships_verdict_costs_a_quarter_less() -> None:
    hours = {
        text.split(" | ")[4]: float(text.strip("| ").split(" | ")[-2])
        for text in WRITTEN
        if text.startswith("| the flagship's `latency` |") and " | 15, " in text
    }
    assert hours["by noise"] < 0.75 * hours["64"]
