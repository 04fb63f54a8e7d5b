"""How often the gate errs, counted on 4,000 seeded campaigns a row: what docs/gate.md promises, with its tables."""

import pytest
from tests.gate import lengths
from tests.gate.rates import DOCUMENT, NONE, broken, line, measured, read, written
from tests.gate.rows import Promise, Row, rows

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())


@pytest.mark.parametrize("row", [row for row in ROWS if row.figure][::2], ids=lambda row: f"{row.name}, {row.noise}")
def test_a_figure_is_reached_and_stands_in_the_document(row: Row) -> None:
    """Every second one; `make bench` counts them all."""
    text = line(row, measured(row))
    assert broken(row, read(text)) == []
    assert text in WRITTEN


def test_the_document_has_every_row_once_and_in_each_every_promise_is_kept() -> None:
    told = [text.split(" | ")[:3] for text in WRITTEN]
    assert told == [[f"| {row.name}", ", ".join(map(str, row.promises)) or NONE, row.noise] for row in ROWS]
    assert [fault for row, text in zip(ROWS, WRITTEN, strict=True) for fault in broken(row, read(text))] == []


@pytest.mark.parametrize(
    ("promise", "kept", "not_kept"),
    [
        (Promise(of="wrong", most=0.05), 0.0610, 0.06125),
        (Promise(of="wrong", most=0.01), 0.01525, 0.0155),
        (Promise(of="wrong", most=0.0), 0.0, 0.00025),
        (Promise(of="promoted", least=0.98), 0.97275, 0.9725),
    ],
)
def test_a_bound_is_held_to_within_its_binomial_error(promise: Promise, kept: float, not_kept: float) -> None:
    """In 4,000 campaigns a rate of 5 % shows more than 6.1 % once in a thousand times."""
    assert promise.kept(kept)
    assert not promise.kept(not_kept)


def test_lengths_that_part_cost_few_rounds_and_no_candidate_and_the_document_says_so() -> None:
    assert [fault for row in lengths.rows() for fault in lengths.broken(row)] == []
    assert lengths.written(DOCUMENT.read_text()) == lengths.table()
