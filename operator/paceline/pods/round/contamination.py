"""Compares the server's counters with the client's: did only this load reach the server, and was its cache empty?

A contaminated arm is not evidence for any workload: what else happened to its server is unknown.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any

from paceline.engines import Work
from paceline.evidence import Point

CACHE_SLACK = 0.05
"""Prompt tokens that may be cached beside shared beginnings, as a share of all: those are counted in characters."""
CHAT_TEMPLATE_TOKENS = 300
"""What a chat template may put before every conversation, tools explained; Paceline's client has no tokenizer to tell.
A choice: templates of Qwen3 and Llama 3.1 put some 30 tokens there, and some 250 where there are tools."""
SYSTEM = ("system", "developer")
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


def shared_share_of_chats(bodies: Sequence[str]) -> float:
    """The same of bodies of requests (`Conversation.body`), of what a template makes a prompt of: it writes tools
    before the messages, or behind the system prompt (as that of Qwen3 does). Whichever shares more counts."""
    requests = [json.loads(body) for body in bodies]
    return max(
        shared_share([json.dumps(order(one), ensure_ascii=False) for one in requests])
        for order in (_tools_first, _system_first)
    )


def _tools_first(request: Mapping[str, Any]) -> list[Any]:
    return [*request.get("tools", ()), *request["messages"]]


def _system_first(request: Mapping[str, Any]) -> list[Any]:
    system = list(takewhile(lambda message: message["role"] in SYSTEM, request["messages"]))
    return [*system, *request.get("tools", ()), *request["messages"][len(system) :]]


def without_aborted(point: Point, report: Mapping[str, Any], work: Work) -> Point:
    """The point with answers that the server aborted as failed ones. SGLang 0.5.23 ends their streams with usage, after
    an error that its own client does not look for or a reason that it does not read (`serving_chat.py:2564`)."""
    if work.timed is None or work.requests != point.completed or point.errors:
        return point
    came_in_pieces = sum(1 for gaps in report.get("itls", ()) if gaps)
    aborted = max(0, came_in_pieces - work.timed)
    return replace(point, completed=point.completed - aborted, errors=aborted)


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
