"""What the client is told to send of a workload."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.rounds import PLAN, arm_command, with_arms

from paceline.core import Dataset, Workload
from paceline.pods.round import load

SET = Dataset(name="chat", source="builtin://chat", requests=24, max_tokens=96)


def test_at_a_rate_nothing_holds_a_request_back() -> None:
    sent = load.load_requests(PLAN, PLAN.arms[0], Workload(dataset=dataclasses.replace(SET, rate=0.5), concurrency=8))
    assert sent.arrivals == load.arrivals(0.5, 24)


def test_in_a_closed_loop_as_many_as_there_are_places() -> None:
    sent = load.load_requests(PLAN, PLAN.arms[0], Workload(dataset=SET, concurrency=8))
    assert (sent.concurrency, sent.arrivals, len(sent.bodies)) == (8, None, 24)


@pytest.mark.parametrize(("concurrency", "requests"), [(8, 16), (1, 4), (32, 24)])
def test_a_window_has_two_prompts_for_each_place_and_a_bare_one(concurrency: int, requests: int) -> None:
    """Of at most as many as the load."""
    at_a_rate = Workload(dataset=dataclasses.replace(SET, rate=0.5), concurrency=concurrency)
    sent = load.warm_up_requests(PLAN, PLAN.arms[0], at_a_rate, 1)
    assert (len(sent.bodies), sent.concurrency, sent.arrivals) == (requests + 1, concurrency, None)
    assert sent.bodies[-1]["messages"] == [{"role": "user", "content": "."}]


def test_half_of_the_answers_of_a_window_end_together_and_the_others_one_by_one() -> None:
    """With equal limits all would end at the same step, and the next eight come at once. Another window has other
    requests end early, so other batches of requests come."""

    def limits(window: int, most: int = 96) -> list[int]:
        workload = Workload(dataset=dataclasses.replace(SET, max_tokens=most), concurrency=8)
        return [
            body["max_completion_tokens"] for body in load.warm_up_requests(PLAN, PLAN.arms[0], workload, window).bodies
        ]

    assert limits(1)[:8].count(32) == 4
    assert len({*limits(1)[:8]}) == 5
    assert min(limits(1)) >= 8
    assert limits(2) != limits(1)
    assert sorted(limits(2)) == sorted(limits(1))
    assert {*limits(1, most=1)} == {1}


def test_windows_send_the_same_prompts_and_vllm_a_salt_of_each() -> None:
    """Their difference is the server's. SGLang's cache is flushed between them."""
    workload = Workload(dataset=SET, concurrency=8)
    on_vllm = dataclasses.replace(PLAN.arms[0], engine="vLLM", engine_version="0.33.0")
    for arm, salts in ((PLAN.arms[0], {None}), (on_vllm, {"chat-8-warm-up-1", "chat-8-warm-up-2"})):
        windows = [load.warm_up_requests(PLAN, arm, workload, window) for window in (1, 2)]
        first, second = ([body["messages"] for body in window.bodies] for window in windows)
        assert first == second
        assert {body.get("cache_salt") for window in windows for body in window.bodies} == salts


def asked(temperature: float | None, engine: str = "SGLang", version: str = "0.5.23") -> Mapping[str, Any]:
    plan = with_arms(PLAN, engine=engine, engine_version=version)
    workload = Workload(dataset=dataclasses.replace(SET, temperature=temperature), concurrency=8)
    return load.load_requests(plan, plan.arms[0], workload).bodies[0]


def test_a_request_is_greedy_unless_its_dataset_says_otherwise() -> None:
    assert asked(0.0)["temperature"] == 0
    assert asked(0.7)["temperature"] == 0.7


@pytest.mark.parametrize(
    ("engine", "version", "sent"),
    [
        ("SGLang", "0.5.23", None),  # null is none: the model's generation_config.json
        ("SGLang", "0.5.6", None),
        ("vLLM", "0.33.0", None),
        ("SGLang", "0.4.5", 0.7),  # these know no null, and always have the same
        ("SGLangJAX", "0.1.0rc0", 0.7),
    ],
)
def test_at_its_own_sampling_a_server_gets_what_leaves_it_to_itself(
    engine: str, version: str, sent: float | None
) -> None:
    assert asked(None, engine, version)["temperature"] == sent


@pytest.mark.parametrize(
    ("engine", "argv", "missing"),
    [
        ("SGLang", (), ""),
        ("vLLM", (), "--enable-auto-tool-choice and --tool-call-parser"),
        ("vLLM", ("--enable_auto_tool_choice",), " --tool-call-parser"),
        ("vLLM", ("--enable-auto-tool-choice", "--tool-call-parser=hermes"), ""),
        ("SGLangJAX", (), " --tool-call-parser"),
        ("SGLangJAX", ("--tool-call-parser", "qwen25"), ""),
    ],
)
def test_tools_that_servers_would_refuse_are_found_out_before_one_starts(
    tmp_path: Path, engine: str, argv: tuple[str, ...], missing: str
) -> None:
    file = tmp_path / "own.jsonl"
    asked = {"messages": [{"role": "user", "content": "What is it?"}]}
    file.write_text("".join(json.dumps(entry) + "\n" for entry in (asked, {**asked, "tools": [{"type": "function"}]})))
    own = Workload(dataset=dataclasses.replace(SET, name="own", source="pvc://data/own.jsonl"), concurrency=1)
    arm = arm_command("baseline", "serve", *argv, engine=engine)
    plan = dataclasses.replace(PLAN, arms=(arm,), workloads=(own,), files={"own": str(file)})
    if missing:
        with pytest.raises(load.DatasetError, match=missing):
            load.tools_are_taken(plan)
    else:
        load.tools_are_taken(plan)
