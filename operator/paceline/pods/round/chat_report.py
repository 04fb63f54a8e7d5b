"""The report of Paceline's own client, from what became of each request: the keys and the arithmetic of SGLang's
benchmark client, so that whoever reads one reads the other. Pure.

`tests/unit/round/test_chat_client.py` sends the same requests by both.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev
from typing import Any

PERCENTILES = (90, 95, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request, with times in seconds: `first` to the first piece of its answer, `gaps` between two pieces, `whole`
    to the end of the stream. Tokens are the server's counts. `error` says why there is no answer; "" if there is one.
    """

    first: float = 0.0
    gaps: tuple[float, ...] = ()
    whole: float = 0.0
    prompt_tokens: int = 0
    tokens: int = 0
    text: str = ""
    answer: str = ""
    """The text without thoughts and without calls of tools."""
    error: str = ""


def report(answers: Sequence[Answered], duration: float) -> dict[str, Any]:
    """In the order in which the requests were to be sent. Percentiles are of the answered ones."""
    done = [one for one in answers if not one.error]
    inputs, outputs = sum(one.prompt_tokens for one in done), sum(one.tokens for one in done)
    times = {
        "e2e_latency": [one.whole for one in done],
        "ttft": [one.first for one in done],
        "tpot": [(one.whole - one.first) / (one.tokens - 1) for one in done if one.tokens > 1],
        "itl": [gap for one in done for gap in one.gaps],
    }
    return {
        "client": "paceline",
        "duration": duration,
        "completed": len(done),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": len(done) / duration,
        "input_throughput": inputs / duration,
        "output_throughput": outputs / duration,
        "total_throughput": (inputs + outputs) / duration,
        "concurrency": math.fsum(times["e2e_latency"]) / duration,
        **{name: value for metric, seconds in times.items() for name, value in _statistics(metric, seconds).items()},
        "input_lens": [one.prompt_tokens for one in answers],
        "output_lens": [one.tokens for one in answers],
        "ttfts": [one.first for one in answers],
        "itls": [list(one.gaps) for one in answers],
        "generated_texts": [one.text for one in answers],
        "errors": [one.error for one in answers],
    }


def most_under_way(spans: Sequence[tuple[float, float]]) -> dict[str, int]:
    """The most requests that were under way at a time, from when each one was due and ended; nothing of none."""
    changes = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    return {"most_under_way": max(itertools.accumulate(change for _, change in changes))} if spans else {}


def _statistics(metric: str, seconds: Sequence[float]) -> Mapping[str, float]:
    """In milliseconds; of nothing 0, as the benchmark client has it."""
    values = sorted(1000 * second for second in seconds) or [0.0]
    return {
        f"mean_{metric}_ms": fmean(values),
        f"median_{metric}_ms": median(values),
        f"std_{metric}_ms": pstdev(values),
        **{f"p{percent}_{metric}_ms": _percentile(values, percent) for percent in PERCENTILES},
    }


def _percentile(values: Sequence[float], percent: float) -> float:
    """Of sorted values, by linear interpolation, as NumPy's default."""
    place = (len(values) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)
