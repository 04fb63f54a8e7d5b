"""How much of a load's prompts a prefix cache may have: common beginnings, whatever else a request says."""

import json
from typing import Any

import pytest
from tests.support.rounds import GOOD

from paceline.engines import Work
from paceline.pods.conversation import conversation
from paceline.pods.round.contamination import bare, contamination, shared_share

MANUAL = {"role": "system", "content": "The rules of this house, one after another. " * 40}
KINDS = ("bug", "crash", "question", "wish", "praise", "spam")
PROMPT_TOKENS = 6000


def body(number: int, **options: Any) -> str:
    found = conversation({"messages": [MANUAL, {"role": "user", "content": f"{number}: what is it?"}], **options}, "")
    assert found
    return found.body(-1)


def form(kind: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {kind: {"type": "string"}}, "required": [kind]}
    return {"type": "json_schema", "json_schema": {"name": kind, "schema": schema}}


def tool(kind: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": kind, "parameters": {"type": "object"}}}


def share(bodies: list[str]) -> float:
    return shared_share([json.loads(one) for one in bodies])


def told(bodies: list[str], cached: int, template: int = 1) -> str:
    work = Work(requests=6, prompt_tokens=PROMPT_TOKENS, cached_tokens=cached)
    return contamination(GOOD, share(bodies), template, work)


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
    assert share(bodies) == pytest.approx(5 / 6, abs=0.1)
    assert told(bodies, cached=5 * PROMPT_TOKENS // 6) == ""


def test_what_nothing_shares_was_not_cached() -> None:
    alone = [
        json.dumps({"messages": [{"role": "user", "content": f"{n} is the number of this one. " * 60}]})
        for n in range(6)
    ]
    assert share(alone) < 0.05
    assert told(alone, cached=5 * PROMPT_TOKENS // 6).startswith("code@1: 5000 of 6000 ")


def test_what_a_template_puts_before_every_prompt_may_be_cached() -> None:
    """500 tokens of it and 500 of text, six times."""
    alone = [json.dumps({"messages": [{"role": "user", "content": f"{n} is its number. " * 60}]}) for n in range(6)]
    assert told(alone, cached=2500, template=500) == ""
    assert told(alone, cached=2500, template=20).startswith("code@1: 2500 of 6000 ")


def test_short_prompts_are_no_excuse_for_a_cache() -> None:
    """Sixty tokens each, ten of them the template's: of prompts as short as those that are built in."""
    alone = [json.dumps({"messages": [{"role": "user", "content": f"{n} is its number. " * 10}]}) for n in range(6)]
    work = Work(requests=6, prompt_tokens=360, cached_tokens=180)
    assert "180 of 360" in contamination(GOOD, share(alone), 10, work)


def test_the_bare_request_has_the_most_tools_that_a_prompt_has() -> None:
    asked = [body(0), body(1, tools=[tool("a")]), body(2, tools=[tool("a"), tool("b")])]
    found = json.loads(bare(asked))
    assert [one["function"]["name"] for one in found["tools"]] == ["a", "b"]
    assert found["messages"] == [{"role": "user", "content": "."}]
    assert set(json.loads(bare([body(0)]))) == {"messages"}
