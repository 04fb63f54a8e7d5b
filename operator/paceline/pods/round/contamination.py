"""Compares the server's counters with the client's: did only this load reach the server, and was its cache empty?

A contaminated arm is not evidence for any workload: what else happened to its server is unknown.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

from paceline.engines import Work
from paceline.evidence import Point

CACHE_SLACK = 0.05
"""Prompt tokens that may be cached beside shared beginnings, as a share of all: those are counted in characters."""


def contamination(point: Point, report: Mapping[str, Any], shared: float, work: Work) -> str:
    """Why the numbers do not come from this load on a fresh server; "" if the counters agree. `shared` is the
    `shared_share` of its prompts. A load with failed requests is left to the judge: the server may have counted some
    of them."""
    if point.errors or point.completed != point.asked:
        return ""
    return _served_by_another(point, work) or _cached(point, report, shared, work)


def shared_share(prompts: Sequence[str]) -> float:
    """The share of all characters that begin another one of these prompts, too: a prefix cache may have them."""
    length = sum(map(len, prompts))
    return sum(_common(*pair) for pair in pairwise(sorted(prompts))) / length if length else 0.0


def _served_by_another(point: Point, work: Work) -> str:
    """vLLM does not count a request whose client disconnects before its end."""
    if work.requests is None or work.requests == point.completed:
        return ""
    counted = f"{point.workload}: {point.completed} requests were answered, and the server counted {work.requests}"
    if work.requests < point.completed:
        return f"{counted}: it was restarted, or another server answered"
    return f"{counted}: it received other requests"


def _cached(point: Point, report: Mapping[str, Any], shared: float, work: Work) -> str:
    if not work.prompt_tokens or work.cached_tokens is None:
        return ""
    template = max(0, work.prompt_tokens - int(report["total_input_tokens"]))  # the same before every prompt
    text = work.prompt_tokens - template
    most = template + text * shared + work.prompt_tokens * CACHE_SLACK
    if work.cached_tokens <= most:
        return ""
    return (
        f"{point.workload}: {work.cached_tokens} of {work.prompt_tokens} prompt tokens came from a cache that had just "
        f"been emptied; its prompts have at most {most:.0f} in common"
    )


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
