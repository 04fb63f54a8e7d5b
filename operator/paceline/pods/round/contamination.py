"""Whether it was the server that was started, it alone and with an empty cache: its counters against the client's.

An arm of which this is not so is no evidence on any workload: what else happened to it is not known.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

from paceline.engines import Work
from paceline.evidence import Point

ALIKE = "alike"
"""In a report: the share of its prompts' text that is the beginning of another one, too."""
CACHE_SLACK = 0.05
"""Of the prompt tokens: what may be cached beside that, as the share is of characters and not of tokens."""


def contamination(point: Point, report: Mapping[str, Any], work: Work) -> str:
    """Why these numbers are not of the server alone; "" if nothing speaks against it. Failed requests are the judge's
    affair: nobody knows which of them the server has counted."""
    if point.errors or point.completed != point.asked:
        return ""
    return _served_by_another(point, work) or _cached(point, report, work)


def alike(prompts: Sequence[str]) -> float:
    """The share of all characters that a prefix cache may know from another of these prompts."""
    length = sum(map(len, prompts))
    return sum(_common(one, next) for one, next in pairwise(sorted(prompts))) / length if length else 0.0


def _served_by_another(point: Point, work: Work) -> str:
    """A request whose client left before its end is not seen on vLLM: it is in no counter of requests."""
    if work.requests is None or work.requests == point.completed:
        return ""
    counted = f"{point.workload}: {point.completed} requests were answered, and the server counted {work.requests}"
    if work.requests < point.completed:
        return f"{counted}: it was restarted meanwhile, or another one answered"
    return f"{counted}: somebody else used it"


def _cached(point: Point, report: Mapping[str, Any], work: Work) -> str:
    if not work.prompt_tokens or work.cached_tokens is None:
        return ""
    template = max(0, work.prompt_tokens - int(report["total_input_tokens"]))  # the same before every prompt
    text = work.prompt_tokens - template
    most = template + text * report[ALIKE] + work.prompt_tokens * CACHE_SLACK
    if work.cached_tokens <= most:
        return ""
    return (
        f"{point.workload}: {work.cached_tokens} of {work.prompt_tokens} prompt tokens came from a cache that had just "
        f"been emptied; its prompts have at most {most:.0f} in common"
    )


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
