"""What a load says of its requests one by one: how many met the workload's slo, how long prompts and answers were, and
how fast each prompt was beside the same prompt at the baseline."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import stdev
from typing import Any

from paceline.core import Slo
from paceline.evidence import Point

Report = Mapping[str, Any]
"""Of the benchmark client, with its details: a column per number, a row per request, in the order of the prompts."""
FEWEST = 8
"""Requests of which a spread is computed."""


def good(report: Report, slo: Slo, max_tokens: int) -> tuple[int, int]:
    """How many answered requests met the slo, and how many tokens their answers have. One token has no time after the
    first, so it meets any; an answer that broke off (`load.UNCOUNTED`) meets none."""
    met = [
        tokens
        for first, gaps, tokens, error in _rows(report)
        if not error and 0 < tokens <= max_tokens and slo.met(first, math.fsum(gaps) / max(1, tokens - 1))
    ]
    return len(met), sum(met)


def lengths(report: Report) -> dict[str, Any]:
    """Fields of a point, in tokens: of prompts as the client's tokenizer counts their text, without the template that
    the server adds (of conversations as the server counts them); of answers as the server counts them."""
    prompts, answers = sorted(report.get("input_lens") or ()), sorted(report.get("output_lens") or ())
    return {
        "mean_input": math.fsum(prompts) / len(prompts) if prompts else None,
        "p50_input": at(prompts, 0.5),
        "p99_input": at(prompts, 0.99),
        "p50_output": at(answers, 0.5),
        "p99_output": at(answers, 0.99),
    }


def speeds(report: Report) -> tuple[float, ...]:
    """Output tokens per second of each request, from its sending to its end; empty if one failed or took no time, as
    the others could then not be told apart by their place."""
    rows = [(tokens, first + math.fsum(gaps), error) for first, gaps, tokens, error in _rows(report)]
    if any(error or tokens <= 0 or not 0 < seconds < math.inf for tokens, seconds, error in rows):
        return ()
    return tuple(tokens / seconds for tokens, seconds, _ in rows)


def spread(report: Report) -> float | None:
    """Standard deviation of ln(speed of a request); None for fewer than eight, or if one failed."""
    logs = [math.log(speed) for speed in speeds(report)]
    return stdev(logs) if len(logs) >= FEWEST else None


def beside(point: Point, mine: Sequence[float], baseline: Sequence[float]) -> Point:
    """With the deciles of its prompts' speed-ups. Every arm of a round is sent the same prompts in the same order, so
    the n-th request of one is the n-th of the other; of two arms that differ in number nothing is said."""
    if not mine or len(mine) != len(baseline):
        return point
    ratios = sorted(own / base for own, base in zip(mine, baseline, strict=True))
    return replace(
        point,
        worst_decile=at(ratios, 0.1),
        median_prompt=at(ratios, 0.5),
        best_decile=at(ratios, 0.9),
        slower_prompts=sum(ratio < 1 for ratio in ratios) / len(ratios),
    )


def at(rising: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of all does not exceed (the nearest rank); None without values."""
    return rising[max(0, math.ceil(share * len(rising) - 1e-9) - 1)] if rising else None


def _rows(report: Report) -> list[tuple[float, Sequence[float], int, str]]:
    columns = [report.get(name) or () for name in ("ttfts", "itls", "output_lens")]
    errors = report.get("errors") or [""] * len(columns[0])
    return list(zip(*columns, errors, strict=True))
