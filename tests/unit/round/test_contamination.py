"""How much of a load's prompts a prefix cache may have: common beginnings, whatever else a request says."""

import json
from typing import Any

import pytest
from tests.support.rounds import GOOD

from paceline.engines import Work
from paceline.pods.conversation import conversation
from paceline.pods.round.contamination import contamination, shared_share_of_chats

MANUAL = {"role": "system", "content": "The rules of this house, one after another. " * 40}
KINDS = ("bug", "crash", "question", "wish", "praise", "spam")
PROMPT_TOKENS = 6000


def body(number: int, **options: Any) -> str:
    found = conversation({"messages": [MANUAL, {"role": "user", "content": f"{number}: what is it?"}], **options}, "")
    assert found
    return found.body


def form(kind: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {kind: {"type": "string"}}, "required": [kind]}
    return {"type": "json_schema", "json_schema": {"name": kind, "schema": schema}}


def tool(kind: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": kind, "parameters": {"type": "object"}}}


def told(bodies: list[str], cached: int) -> str:
    work = Work(requests=6, prompt_tokens=PROMPT_TOKENS, cached_tokens=cached)
    return contamination(GOOD, {}, shared_share_of_chats(bodies), work, chats=True)


@pytest.mark.parametrize(
    "bodies",
    [
        pytest.param([body(n) for n in range(6)], id="one system prompt"),
        pytest.param([body(n, response_format=form(kind)) for n, kind in enumerate(KINDS)], id="a form for each"),
        pytest.param(
            [body(n, tools=[tool(kind)]) for n, kind in enumerate(KINDS)], id="tools behind the system prompt"
        ),
        pytest.param(
            [body(n, tool_choice=("auto", "none")[n % 2], tools=[tool("a")]) for n in range(6)], id="a choice"
        ),
    ],
)
def test_a_system_prompt_that_all_have_may_be_cached(bodies: list[str]) -> None:
    """Five of six times, whatever else a request says of itself: the text of a prompt decides."""
    assert shared_share_of_chats(bodies) == pytest.approx(5 / 6, abs=0.1)
    assert told(bodies, cached=5 * PROMPT_TOKENS // 6) == ""


def test_what_nothing_shares_was_not_cached() -> None:
    alone = [
        json.dumps({"messages": [{"role": "user", "content": f"{n} is the number of this one. " * 60}]})
        for n in range(6)
    ]
    assert shared_share_of_chats(alone) < 0.05
    assert told(alone, cached=5 * PROMPT_TOKENS // 6).startswith("code@1: 5000 of 6000 prompt tokens came from a cache")
