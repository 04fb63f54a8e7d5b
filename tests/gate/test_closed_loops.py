"""The steady window against simulated loops of which the truth is known: docs/reports/steady-window.md."""

import random
from bisect import bisect_right
from dataclasses import replace
from statistics import fmean

import pytest
from tests.gate.closed_loops import (
    CLOSE,
    DOCUMENT,
    Loop,
    Row,
    bias,
    endless,
    line,
    loop,
    measured,
    pair,
    prompts,
    rows,
    written,
)

from paceline.pods.round.report import steady

ROWS = list(rows())
WRITTEN = written(DOCUMENT.read_text())


def test_the_document_has_every_row_and_each_is_right_to_half_a_percent() -> None:
    assert len(WRITTEN) == len(ROWS)
    assert all(text.startswith(row.cells) for row, text in zip(ROWS, WRITTEN, strict=True))
    assert [text for text in WRITTEN if abs(bias(text)) > CLOSE] == []


@pytest.mark.parametrize("row", [row for row in ROWS if row.concurrency == 8 and row.dataset == "swe"], ids=str)
def test_a_row_counted_anew_is_the_documents(row: Row) -> None:
    """Those of one concurrency, with the code that reads the client's report as it is now."""
    assert line(row, measured(row)) in WRITTEN


@pytest.mark.parametrize("row", [row for row in ROWS if row.concurrency == 8 and row.spread == 0.25], ids=str)
def test_a_loop_without_end_is_as_fast_as_the_middle_of_a_long_one(row: Row) -> None:
    dice = random.Random(row.name)
    for server in pair(row):
        found = loop(server, prompts(row, 150 * row.concurrency, dice), row.concurrency, dice)
        assert endless(server, found, row.concurrency) == pytest.approx(middle(found, row.concurrency), rel=0.01)


def middle(found: Loop, concurrency: int) -> float:
    """Output tokens per second from when every place has answered once until one is left empty."""
    ends = [came[-1] for came in found.arrivals]
    begin, end = max(ends[:concurrency]), sorted(ends)[-concurrency]
    inside = sum(
        length * (bisect_right(came, end) - bisect_right(came, begin)) / len(came)
        for came, length in zip(found.arrivals, found.report["output_lens"], strict=True)
    )
    return float(inside / (end - begin))


@pytest.mark.parametrize(("turns", "prefill"), [(2, 0.3), (8, 0.1), (8, 0.5), (20, 0.3)])
def test_the_window_of_conversations_is_right_to_half_a_percent(turns: int, prefill: float) -> None:
    """Nine tenths of the later prompts are cached; the mean of ten rounds."""
    row = Row(dataset="swe", concurrency=8, answers="median 220", prefill=prefill, spread=0.25)
    dice, share = random.Random(row.name), (1 + (turns - 1) * 0.1) / turns
    off = []
    for _ in range(10):
        sent = prompts(row, 5 * row.concurrency * turns, dice)
        for one in pair(row):
            server = replace(one, prompt=one.prompt / share)
            found = loop(server, sent, row.concurrency, dice, turns=turns, cached=0.9)
            seen = steady(found.report, row.concurrency)
            assert seen
            off.append(seen.throughput / endless(server, found, row.concurrency, cached=0.9) - 1)
    assert abs(fmean(off)) < CLOSE
