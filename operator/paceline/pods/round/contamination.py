"""Compares the server's counters with the client's: did only this load reach the server, and was its cache empty?

A contaminated arm is not evidence for any workload: what else happened to its server is unknown.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from paceline.engines import Work
from paceline.evidence import Point

CACHE_SLACK = 0.05
"""Prompt tokens that may be cached beside shared beginnings, as a share of all: those are counted in characters."""
CHAT_TEMPLATE_TOKENS = 300
"""What a chat template may put before every conversation, tools explained; Paceline's client has no tokenizer to tell.
A choice: templates of Qwen3 and Llama 3.1 put some 30 tokens there, and some 250 where there are tools."""
DENSER = 2
"""How many times as many tokens a character of the shared beginning (tools as JSON) may have as one of the rest."""


def contamination(point: Point, report: Mapping[str, Any], shared: float, work: Work, *, chats: bool = False) -> str:
    """Why the numbers do not come from this load on a fresh server; "" if the counters agree. `shared` is the
    `shared_share` of its prompts, which of `chats` are bodies of requests. A load with failed requests is left to the
    judge: the server may have counted some of them."""
    if point.errors or point.completed != point.asked:
        return ""
    return _served_by_another(point, work) or _cached(point, report, shared, work, chats)


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


def _cached(point: Point, report: Mapping[str, Any], shared: float, work: Work, chats: bool) -> str:
    if not work.prompt_tokens or work.cached_tokens is None:
        return ""
    if chats:
        template = min(work.prompt_tokens, CHAT_TEMPLATE_TOKENS * point.completed)
        shared = DENSER * shared / (1 + (DENSER - 1) * shared)
    else:
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
    lengths = range(min(len(one), len(other)))
    return bisect_left(lengths, True, key=lambda last: one[: last + 1] != other[: last + 1])
