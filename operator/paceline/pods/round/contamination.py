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
from paceline.pods.conversation import AWAITED

CACHE_SLACK = 0.05
"""Allowed cached prompt tokens in addition to shared prefixes, as a share of all: prefixes are counted in characters.
"""
SYSTEM = ("system", "developer")
DENSER = 2
"""Maximum ratio of tokens per character in the shared prefix (tools as JSON) to tokens per character elsewhere."""


def contamination(point: Point, shared: float, template: int, work: Work) -> str:
    """Why the numbers do not come from this load on a fresh server; "" if the counters agree. `shared` is the
    `shared_share` of its prompts, `template` the maximum tokens that a template puts before each. A load with failed
    requests passes, because the server may have counted some of them; the judge handles it."""
    if point.errors or point.completed != point.asked:
        return ""
    return _served_by_another(point, work) or _cached(point, shared, template, work)


def bare(prompts: Sequence[str]) -> str:
    """A request with almost no text, with the longest tools of any prompt: its tokens bound what a template adds before
    every prompt."""
    tools = max((json.loads(prompt).get("tools", []) for prompt in prompts), key=lambda found: len(json.dumps(found)))
    return json.dumps({"messages": [{"role": "user", "content": "."}], **({"tools": tools} if tools else {})})


def shared_share(bodies: Sequence[Mapping[str, Any]]) -> float:
    """The share of all characters in prefixes shared with another of these prompts, which a prefix cache may hold; 1 if
    the servers' answers become part of prompts. A template writes tools before the messages, or after the system prompt
    (like Qwen3's); the larger share counts."""
    if any(AWAITED in one["messages"] for one in bodies):
        return 1.0
    return max(_shared(["".join(map(_text, order(one))) for one in bodies]) for order in (_tools_first, _system_first))


def _shared(prompts: Sequence[str]) -> float:
    length = sum(map(len, prompts))
    return sum(_common(*pair) for pair in pairwise(sorted(prompts))) / length if length else 0.0


def _text(part: Mapping[str, Any]) -> str:
    """The role and text of a plain message; otherwise, and for a tool, the JSON."""
    plain = set(part) == {"role", "content"} and isinstance(part["content"], str)
    return f"{part['role']}:{part['content']}" if plain else json.dumps(part, ensure_ascii=False)


def _tools_first(request: Mapping[str, Any]) -> list[Any]:
    return [*request.get("tools", ()), *request["messages"]]


def _system_first(request: Mapping[str, Any]) -> list[Any]:
    system = list(takewhile(lambda message: message["role"] in SYSTEM, request["messages"]))
    return [*system, *request.get("tools", ()), *request["messages"][len(system) :]]


def without_aborted(point: Point, report: Mapping[str, Any], work: Work) -> Point:
    """The point with aborted answers counted as failed. SGLang 0.5.23 ends their streams with usage, after an error
    that its own client does not look for or a reason that it does not read (`serving_chat.py:2564`)."""
    if work.timed is None or work.requests != point.completed or point.errors:
        return point
    came_in_pieces = sum(1 for gaps in report.get("itls", ()) if gaps)
    aborted = max(0, came_in_pieces - work.timed)
    return replace(point, completed=point.completed - aborted, errors=aborted)


def _served_by_another(point: Point, work: Work) -> str:
    """vLLM does not count a request whose client disconnects before its end."""
    if work.requests is None or work.requests == point.completed:
        return ""
    counted = f"{point.workload}: {point.completed} requests were answered, but the server counted {work.requests}"
    if work.requests < point.completed:
        return f"{counted}: it was restarted, or another server answered"
    return f"{counted}: it received other requests"


def _cached(point: Point, shared: float, template: int, work: Work) -> str:
    if not work.prompt_tokens or work.cached_tokens is None:
        return ""
    before_all = min(work.prompt_tokens, template * point.completed)
    text = work.prompt_tokens - before_all
    most = before_all + text * DENSER * shared / (1 + (DENSER - 1) * shared) + work.prompt_tokens * CACHE_SLACK
    if work.cached_tokens <= most:
        return ""
    return (
        f"{point.workload}: {work.cached_tokens} of {work.prompt_tokens} prompt tokens came from a cache that had just "
        f"been emptied; its prompts have at most {most:.0f} in common"
    )


def _common(one: str, other: str) -> int:
    """Length of the common prefix in characters."""
    lengths = range(min(len(one), len(other)))
    return bisect_left(lengths, True, key=lambda last: one[: last + 1] != other[: last + 1])
