"""Results of a load per request: how many met the workload's slo, lengths of prompts and answers, and each prompt's
speed relative to the same prompt at the baseline."""

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import fmean, stdev
from typing import Any

from paceline.core import Slo
from paceline.evidence import Point
from paceline.evidence.result import Context

LoadReport = Mapping[str, Any]
"""A load's report: a column per number, a row per request, in the order of the prompts (`answers.report`)."""
CONTEXTS = (0, 4096, 16384, 65536)
"""Tokens from which on prompts count as longer ones."""
_FEWEST = 8
"""Minimum requests for computing a spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request; times in seconds, `start` after the load's."""

    start: float
    first: float
    """From its start to the first piece of its answer."""
    gaps: Sequence[float]
    """Seconds between two pieces."""
    seconds: float
    """From its start to the end of its answer."""
    tokens: int
    error: str
    turn: int = 0
    """Its number in its conversation; the next one is sent when it is answered."""

    @property
    def end(self) -> float:
        return self.start + self.seconds

    @property
    def after(self) -> float:
        """Seconds after the first piece."""
        return self.seconds - self.first

    @property
    def arrivals(self) -> list[float]:
        """Arrival times of its pieces, after the load's start."""
        return list(itertools.accumulate(self.gaps, initial=self.start + self.first))


def request_rows(report: LoadReport) -> list[RequestRow]:
    columns = ("starts", "ttfts", "itls", "latencies", "output_lens", "errors")
    return [
        RequestRow(start=start, first=first, gaps=gaps, seconds=seconds, tokens=tokens, error=error, turn=turn)
        for start, first, gaps, seconds, tokens, error, turn in zip(
            *(report[name] for name in columns), report.get("turns") or [0] * len(report["errors"]), strict=True
        )
    ]


def most_under_way(sent: Sequence[RequestRow]) -> int | None:
    """The maximum of concurrently running requests; None without requests."""
    changes = sorted([(one.start, 1) for one in sent] + [(one.end, -1) for one in sent])
    return max(itertools.accumulate(change for _, change in changes), default=None)


def good(report: LoadReport, slo: Slo) -> tuple[int, int]:
    """How many answered requests met the slo, and the tokens in their answers. An answer of one token has no time after
    the first, so it meets any limit on that."""
    answered = [one for one in request_rows(report) if not one.error and one.tokens]
    met = [one.tokens for one in answered if slo.met(one.first, one.after / max(1, one.tokens - 1))]
    return len(met), sum(met)


def length_fields(report: LoadReport) -> dict[str, Any]:
    """A point's fields, in tokens as counted by the server: prompts include its template."""
    prompts, answers = (sorted(filter(None, report[name])) for name in ("input_lens", "output_lens"))
    return {
        "mean_input": math.fsum(prompts) / len(prompts) if prompts else None,
        "p50_input": at(prompts, 0.5),
        "p99_input": at(prompts, 0.99),
        "p50_output": at(answers, 0.5),
        "p99_output": at(answers, 0.99),
    }


def by_context(report: LoadReport) -> tuple[Context, ...]:
    """Answered requests by the length of their prompts."""
    rows = [(one, length) for one, length in zip(request_rows(report), report["input_lens"], strict=True)]
    found = []
    for over, below in zip_longest(CONTEXTS, CONTEXTS[1:], fillvalue=sys.maxsize):
        if within := [one for one, length in rows if one.tokens and not one.error and over <= length < below]:
            tokens = sum(one.tokens for one in within)
            found.append(
                Context(
                    over=over,
                    requests=len(within),
                    mean_ttft=fmean(one.first for one in within),
                    speed=tokens / math.fsum(one.seconds for one in within),
                    tokens_per_chunk=tokens / sum(len(one.arrivals) for one in within),
                )
            )
    return tuple(found)


def request_speeds(report: LoadReport) -> tuple[float, ...]:
    """Output tokens per second of each request, from its sending to its end; empty if one failed or took no time,
    because the others could then not be matched by index."""
    sent = request_rows(report)
    if any(one.error or one.tokens <= 0 or not 0 < one.seconds < math.inf for one in sent):
        return ()
    return tuple(one.tokens / one.seconds for one in sent)


def speed_spread(report: LoadReport) -> float | None:
    """Standard deviation of ln(speed of a request); None for fewer than eight, or if one failed."""
    logs = [math.log(speed) for speed in request_speeds(report)]
    return stdev(logs) if len(logs) >= _FEWEST else None


def with_prompt_speedups(point: Point, mine: Sequence[float], baseline: Sequence[float]) -> Point:
    """Adds the deciles of its prompts' speed-ups. Every arm of a round gets the same prompts in the same order, so
    requests are matched by index; if two arms differ in number, nothing is added."""
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
    """The smallest value that is not exceeded by at least this share of all (the nearest rank); None without values."""
    return rising[max(0, math.ceil(share * len(rising) - 1e-9) - 1)] if rising else None
