"""Saturation against simulated arrivals of which the truth is known: docs/reports/steady-window.md."""

from tests.gate.open_loops import DOCUMENT, LOADS, broken, cells, line, written

WRITTEN = written(DOCUMENT.read_text())


def test_the_document_has_every_rate_and_saturation_is_told_where_it_is() -> None:
    assert [cells(text)[0] for text in WRITTEN] == list(LOADS)
    assert [text for text in WRITTEN if broken(text)] == []


def test_a_rate_counted_anew_is_the_documents() -> None:
    """Half as much again as the server can take, with the code that reads the client's report as it is now."""
    assert line(1.5) in WRITTEN


def test_what_would_break_the_promise() -> None:
    assert broken("| 80% | 0% | 2% | 100% | 100% | 1.14x | 1.13x | 1.12x |")
    assert broken("| 150% | 98% | 100% | 67% | 67% | 1.10x | 1.12x | 1.13x |")
    assert not broken("| 100% | 5% | 15% | 98% | 100% | 1.11x | 1.15x | 1.23x |")
