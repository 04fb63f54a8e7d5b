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


def test_a_warm_up_has_a_prompt_for_each_place_and_a_bare_one() -> None:
    sent = load.warm_up_requests(
        PLAN, PLAN.arms[0], Workload(dataset=dataclasses.replace(SET, rate=0.5), concurrency=8)
    )
    assert (len(sent.bodies), sent.arrivals) == (9, None)
    assert sent.bodies[-1]["messages"] == [{"role": "user", "content": "."}]
    assert {body["max_completion_tokens"] for body in sent.bodies} == {load.WARM_UP_TOKENS}


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
