"""How the benchmark client is told to send a workload."""

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.rounds import PLAN

from paceline.api.prompts import FEWEST_TOKENS
from paceline.core import Dataset, Workload
from paceline.pods.round import load

SET = Dataset(name="chat", source="builtin://chat", requests=24, max_tokens=96)


def words(workload: Workload) -> list[str]:
    return load.command(
        PLAN, workload, name="chat", dataset=Path("in"), report=Path("out"), requests=24, tokens=96, rate=workload.rate
    )


def test_at_a_rate_nothing_holds_a_request_back() -> None:
    """The client's times begin when it sends: who waits for a place in it would seem faster than he was."""
    chat = Workload(dataset=Dataset(name="chat", source="builtin://chat", requests=24, max_tokens=96, rate=0.5),
                    concurrency=8)  # fmt: skip
    said = words(chat)
    assert said[said.index("--request-rate") + 1] == "0.5"
    assert "--max-concurrency" not in said


def test_in_a_closed_loop_as_many_as_there_are_places() -> None:
    said = words(Workload(dataset=SET, concurrency=8))
    assert said[said.index("--max-concurrency") + 1] == "8"
    assert "--request-rate" not in said


def asked(temperature: float | None, engine: str = "SGLang", version: str = "0.5.23") -> dict[str, Any]:
    """The fields that every request of a load gets beside the client's own."""
    plan = dataclasses.replace(PLAN, engine=engine, engine_version=version)
    workload = Workload(dataset=dataclasses.replace(SET, temperature=temperature), concurrency=8)
    said = load.command(plan, workload, name="chat", dataset=Path("in"), report=Path("out"), requests=24, tokens=96)
    body: dict[str, Any] = json.loads(said[said.index("--extra-request-body") + 1])
    return body


def test_a_request_is_greedy_unless_its_dataset_says_otherwise() -> None:
    """The compiled client says temperature 0 where the body names none (test_round.py sees it arrive)."""
    assert "temperature" not in asked(0.0)
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


@pytest.mark.parametrize(("tokens", "refuses"), [(FEWEST_TOKENS - 1, True), (FEWEST_TOKENS, False)])
def test_the_shortest_answers_that_can_be_asked_for_are_those_that_the_client_takes(
    tmp_path: Path, tokens: int, refuses: bool
) -> None:
    """The compiled client itself, which looks for a tokenizer only once it knows what it is to ask; there is none."""
    prompts, report = tmp_path / "prompts.json", tmp_path / "report.jsonl"
    turns = [{"from": "human", "value": "Hello there, who are you?"}, {"from": "gpt", "value": "An answer."}]
    prompts.write_text(json.dumps([{"conversations": turns}]))
    said = load.command(
        dataclasses.replace(PLAN, tokenizer=str(tmp_path)),
        Workload(dataset=SET, concurrency=1),
        name="chat",
        dataset=prompts,
        report=report,
        requests=1,
        tokens=tokens,
    )
    ended = subprocess.run(said, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("--sharegpt-output-len is too small" in ended.stderr) == refuses
    assert ("tokenizer" in ended.stderr.splitlines()[-1]) != refuses


@pytest.mark.parametrize(
    ("engine", "argv", "missing"),
    [
        ("SGLang", (), ""),
        ("vLLM", (), "vLLM refuses without --enable-auto-tool-choice and --tool-call-parser: add to engine.args"),
        ("vLLM", ("--enable_auto_tool_choice",), "without --tool-call-parser: add"),
        ("vLLM", ("--enable-auto-tool-choice", "--tool-call-parser=hermes"), ""),
        ("SGLangJAX", (), "SGLangJAX refuses without --tool-call-parser: add to engine.args"),
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
    arm = dataclasses.replace(PLAN.arms[0], argv=("serve", *argv))
    plan = dataclasses.replace(PLAN, engine=engine, arms=(arm,), workloads=(own,), files={"own": str(file)})
    if missing:
        with pytest.raises(load.DatasetError, match=missing):
            load.tools_are_taken(plan)
    else:
        load.tools_are_taken(plan)
