"""Rounds on a user's own prompts and at a rate, with the emulated server and SGLang's client on loopback."""

import dataclasses
import gzip
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.round.pod import CODE_1, Arms, Start
from tests.unit.round.test_round import emulated, fake

from paceline.core import Dataset, Workload
from paceline.core.names import snapshot_path
from paceline.evidence import RoundPlan
from paceline.pods.round import load
from paceline_emulator.hub.prompts import files


def own(requests: int, concurrency: int = 2, rate: float | None = None) -> Workload:
    source = Dataset(name="own", source="configMap://prompts/own.jsonl", requests=requests, max_tokens=32, rate=rate)
    return Workload(dataset=source, concurrency=concurrency)


def prompts(models: Path, count: int) -> Callable[[RoundPlan], RoundPlan]:
    """A ConfigMap with so many of them, where the client finds it."""
    file = models / "own.jsonl"
    texts = [f"Write a function that adds {number} to its argument, and explain it." for number in range(count)]
    file.write_text("".join(json.dumps({"messages": [{"role": "user", "content": text}]}) + "\n" for text in texts))
    return lambda plan: dataclasses.replace(plan, files={"own": str(file)})


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    chain = ("--speculative-num-steps", "5", "--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "6")
    head = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(models / "head"))
    return emulated(models, port, "baseline"), emulated(models, port, "narrow", *head, *chain)


def test_prompts_of_ones_own_at_the_models_own_sampling_beside_a_built_in_set(
    start: Start, pair: Arms, models: Path
) -> None:
    mine = own(8)
    sampled = dataclasses.replace(mine, dataset=dataclasses.replace(mine.dataset, temperature=None))
    outcome = start(pair, sampled, CODE_1, change=prompts(models, 8)).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    assert set(outcome.result.datasets) == {"own", "code"}


def test_all_but_one_are_measured_and_that_one_warms_up(start: Start, port: int, models: Path) -> None:
    log = models / "log.jsonl"
    outcome = start((fake(port, "baseline", "--log", str(log)),), own(6, 1), change=prompts(models, 7)).finish()
    assert outcome.client == 0, outcome.log
    texts = [json.loads(line)[0] for line in log.read_text().splitlines()]
    windows = texts[:-6]
    assert windows[4::5] == ["."] * outcome.result.replicates[0].points[0].warm_up_windows
    numbers = [int(text.split()[5]) for text in (windows[0], *texts[-6:])]
    assert sorted(numbers) == list(range(7)), "warmed up with the one that is not measured, and with three more"
    chosen = load.prompts_of_load(outcome.plan, outcome.plan.workloads[0])
    asked = [json.loads(body)["messages"][0]["content"] for body in chosen]
    assert [int(text.split()[5]) for text in asked] == numbers[1:]
    assert outcome.result.prompts == {"own": 7}


def test_a_file_that_the_prefetch_brought(start: Start, pair: Arms, models: Path) -> None:
    """As the hub's client lays it down: a link to a blob, on a path by commit. Its digest is the file's."""
    source, commit = "hf://datasets/paceline-test/prompts/code.jsonl", "5" * 40
    path = models / snapshot_path(source, commit).removeprefix("/models/")
    blob = path.parents[2] / "blobs" / "one"
    for folder in (path.parent, blob.parent):
        folder.mkdir(parents=True)
    blob.write_bytes(files()["code.jsonl"])
    path.symlink_to(os.path.relpath(blob, path.parent))
    brought = dataclasses.replace(own(8), dataset=dataclasses.replace(own(8).dataset, source=source, commit=commit))
    there = {"own": str(path)}
    outcome = start(pair, brought, change=lambda plan: dataclasses.replace(plan, files=there)).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    assert outcome.result.datasets == {"own": hashlib.sha256(files()["code.jsonl"]).hexdigest()[:12]}


def test_a_commit_that_is_not_on_the_claim_takes_no_gpu(start: Start, pair: Arms, models: Path) -> None:
    """Of a run made by hand: nothing brings its prompts."""
    source = "hf://datasets/paceline-test/prompts/code.jsonl"
    absent = dataclasses.replace(own(8), dataset=dataclasses.replace(own(8).dataset, source=source, commit="5" * 40))
    there = {"own": str(models / "nowhere.jsonl")}
    outcome = start(pair, absent, change=lambda plan: dataclasses.replace(plan, files=there)).finish()
    assert (outcome.client, outcome.wrapper) == (1, 0)
    assert f"{source}: there is no such file: bring the missing commit, or correct it" in outcome.message
    assert "starting" not in outcome.log


def test_fewer_prompts_than_requests_take_no_gpu(start: Start, pair: Arms, models: Path) -> None:
    outcome = start(pair, own(8), change=prompts(models, 5)).finish()
    assert (outcome.client, outcome.wrapper) == (1, 0)
    assert "own@2: configMap://prompts/own.jsonl has 5 " in outcome.message
    assert "starting" not in outcome.log


def test_requests_that_arrive_at_a_rate(start: Start, pair: Arms, models: Path) -> None:
    """Far below what a server can do: both arms write the same tokens in the same time, the speed of a request
    differs."""
    at_a_rate = own(24, rate=8.0)
    outcome = start(pair, at_a_rate, change=prompts(models, 24)).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    baseline, narrow = (replicate.points[0] for replicate in outcome.result.replicates)
    for point in (baseline, narrow):
        assert point.workload == "own@8/s"
        assert point.steady_throughput is None
        assert point.kept_rate == pytest.approx(8, rel=0.05)
    assert baseline.duration == pytest.approx(narrow.duration, rel=0.15)
    assert baseline.request_speed is not None
    assert narrow.request_speed is not None
    assert narrow.request_speed > baseline.request_speed  # by a tenth on a quiet machine


def log_of_chats(models: Path, count: int) -> Callable[[RoundPlan], RoundPlan]:
    """Conversations of three turns with a system prompt and a tool, as an API's log has them."""
    system = {"role": "system", "content": "You help people with their code. Answer in one paragraph. " * 20}
    tool = {"type": "function", "function": {"name": "run_tests", "parameters": {"type": "object"}}}

    def chat(number: int) -> dict[str, object]:
        turns = [(f"Add {number} to it.", "Done."), ("And test that.", "It passes."), (f"Now {number} more.", "Done.")]
        said = [
            {"role": role, "content": text}
            for turn in turns
            for role, text in zip(("user", "assistant"), turn, strict=True)
        ]
        return {"messages": [system, *said], "tools": [tool]}

    file = models / "own.jsonl"
    file.write_text("".join(json.dumps(chat(number)) + "\n" for number in range(count)))
    return lambda plan: dataclasses.replace(plan, files={"own": str(file)})


def test_a_log_of_chats_with_system_prompt_three_turns_and_tools(start: Start, pair: Arms, models: Path) -> None:
    outcome = start(pair, own(12), CODE_1, change=log_of_chats(models, 12)).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    with gzip.open(models / "results" / "2-0.jsonl.gz", "rt") as lines:
        reports = [report for line in lines if (report := json.loads(line).get("report"))]
    assert min(reports[0]["input_lens"]) > 300, "the history and the tools are sent"
    narrow = outcome.result.replicates[1].points[0]
    assert narrow.accept_length is not None
    assert narrow.accept_length > 1.5
