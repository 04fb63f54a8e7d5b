"""Rounds of a workload of a LoRA adapter."""

import dataclasses
import gzip
import json
from pathlib import Path

import pytest
from tests.support.rounds import PLAN, with_arms
from tests.unit.round.pod import Start, workload
from tests.unit.round.test_round import emulated

from paceline.core import Parity, Workload
from paceline.evidence import ArmCommand
from paceline.pods.round import load


def of(load: Workload, adapter: str) -> Workload:
    return dataclasses.replace(load, dataset=dataclasses.replace(load.dataset, adapter=adapter))


SQL = of(workload("code", 1, 5, 16), "sql")


def serving(models: Path, port: int, *flags: str) -> ArmCommand:
    one = emulated(models, port, "baseline", *flags)
    return dataclasses.replace(one, candidate=False)


@pytest.mark.parametrize(("engine", "version", "model"), [("SGLang", "0.5.23", "pair:sql"), ("vLLM", "0.33.0", "sql")])
def test_requests_name_it_as_their_engine_does(engine: str, version: str, model: str) -> None:
    plan = with_arms(PLAN, engine=engine, engine_version=version)
    assert load.model_of(plan, plan.arms[0], SQL) == model
    assert load.model_of(plan, plan.arms[0], of(SQL, "")) == "pair"


def test_the_answers_that_are_compared_are_the_adapters() -> None:
    plan = dataclasses.replace(PLAN, workloads=(SQL,), parity=Parity(samples=1))
    assert [load.parity_question(plan, arm, 0)["model"] for arm in plan.arms] == ["pair:sql", "pair:sql"]


def test_requests_go_to_the_adapter(start: Start, models: Path, port: int) -> None:
    outcome = start((serving(models, port, "--lora-paths", "sql=/models/sql"),), SQL).finish()
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    with gzip.open(models / "results" / "2-0.jsonl.gz", "rt") as lines:
        (adapter,) = json.loads(next(lines))["resolved"]["lora_paths"]
    assert (adapter["lora_name"], adapter["lora_path"]) == ("sql", "/models/sql")


def test_a_server_without_it_is_not_measured(start: Start, models: Path, port: int) -> None:
    outcome = start((serving(models, port, "--lora-paths", "chat=/models/chat"),), SQL).finish()
    assert "adapter sql" in outcome.result.replicates[0].error
