"""Whole rounds of vLLM: the command of its adapter, the emulated `vllm` on PATH, SGLang's benchmark client."""

import dataclasses
import gzip
import json
import os
import sys
from pathlib import Path

import pytest
from tests.support.rounds import arm_command, with_arms
from tests.support.vllm_server import BASE, SERVER, chain
from tests.unit.round.pod import CHAT_8, CODE_1, Arms, Start, workload

from paceline.core import Arm, Parity, SecretKey, Server
from paceline.core.names import snapshot_path
from paceline.engines import ENGINES
from paceline.engines.keys import API_KEY
from paceline.evidence import ArmCommand, Outputs, RoundPlan

VLLM = ENGINES["vLLM"]
BIN = Path(__file__).parents[3] / "dev" / "emulator-image" / "bin"
PATH = f"{BIN}:{Path(sys.executable).parent}:{os.environ['PATH']}"
QWEN3_MOE = {"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 128}
SECRET = SecretKey(name="keys", key="api")
ALIKE = dataclasses.replace(SERVER, engine=dataclasses.replace(SERVER.engine, args=()))


def command(models: Path, port: int, arm: Arm, server: Server = ALIKE) -> ArmCommand:
    """As it would be rendered, but for the port and where the models are."""
    here = {str(VLLM.port): str(port), snapshot_path(SERVER.target.source, "1" * 40): str(models / "target")}
    argv = tuple(here.get(word, word) for word in VLLM.argv(server, arm))
    if arm.draft and arm.draft.model:
        head = snapshot_path(arm.draft.model.source, "2" * 40)
        argv = tuple(word.replace(head, str(models / "head")) for word in argv)
    return arm_command(arm.name, *argv, candidate=arm.draft is not None, expected=VLLM.expected(server, arm))


def of_vllm(plan: RoundPlan) -> RoundPlan:
    unseen = VLLM.probe("0.33.0").unseen
    plan = dataclasses.replace(plan, served_name=SERVER.served_name, moved=VLLM.moved(()))
    return with_arms(plan, engine="vLLM", engine_version="0.33.0", compared=VLLM.compared, unseen=unseen)


def and_compared(plan: RoundPlan) -> RoundPlan:
    return dataclasses.replace(of_vllm(plan), parity=Parity(samples=2, max_tokens=8))


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    return command(models, port, BASE), command(models, port, chain(4))


@pytest.fixture
def vllm(start: Start) -> Start:
    return lambda *given, **env: start(*given, change=of_vllm, PATH=PATH, **env)


def test_a_round_of_the_pair_that_was_published(vllm: Start, pair: Arms, models: Path) -> None:
    """35 for 25 tokens per second alone, 270 for 316 with eight requests at a time."""
    target = json.loads((models / "target" / "config.json").read_text()) | QWEN3_MOE
    (models / "target" / "config.json").write_text(json.dumps(target))
    outcome = vllm(pair, workload("code", 1, 3, 40), CHAT_8).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    result = outcome.result
    assert (result.engine_version, result.emulated) == ("0.33.0+emulated", True)
    baseline, four = result.replicates
    assert (baseline.resolved["method"], four.resolved["method"], four.resolved["draft_positions"]) == (
        None, "eagle3", 4,
    )  # fmt: skip
    assert (baseline.kv_tokens, four.kv_tokens) == (1_000_000, 970_000)
    with gzip.open(models / "results" / "2-0.jsonl.gz", "rt") as lines:
        kept = [json.loads(line) for line in lines]
    assert [line["kv_tokens"] for line in kept if "resolved" in line] == [1_000_000, 970_000]
    assert len(kept[-1]["speculation"]["accepted_at"]) == 4
    assert kept[-1]["work"]["requests"] == four.points[1].completed
    alone, eight = (
        mine.steady_throughput / base.steady_throughput  # type: ignore[operator]
        for mine, base in zip(four.points, baseline.points, strict=True)
    )
    assert (alone, eight) == (pytest.approx(1.4, rel=0.1), pytest.approx(0.854, rel=0.1))
    for base, mine in zip(baseline.points, four.points, strict=True):
        assert (base.accept_length, base.verify_calls, base.retractions) == (None, None, 0)
        assert mine.accept_length == pytest.approx(2.53, abs=0.15)
        assert mine.output_tokens is not None
        assert mine.output_tokens == base.output_tokens
        expected = (mine.output_tokens - mine.completed) / mine.accept_length
        assert mine.verify_calls == pytest.approx(expected, rel=0.1)
        assert (len(base.accepted_at), len(mine.accepted_at)) == (0, 4)
        assert 1 + sum(mine.accepted_at) == pytest.approx(mine.accept_length, rel=1e-3)
        assert list(mine.accepted_at) == sorted(mine.accepted_at, reverse=True)


def test_outputs_are_compared(start: Start, pair: Arms) -> None:
    """With a salt of their own: there is no page that empties the cache."""
    outcome = start(pair, workload("code", 1, 3, 16), change=and_compared, PATH=PATH).finish()
    baseline, four = (one.outputs for one in outcome.result.replicates)
    assert baseline is not None
    assert (len(baseline.digests), four) == (2, Outputs(samples=2)), outcome.log
    assert {one.why for one in outcome.judged.values()} == {""}


def test_a_head_of_another_target_accepts_nothing(vllm: Start, pair: Arms, models: Path) -> None:
    head = json.loads((models / "head" / "config.json").read_text()) | {"hidden_size": 4096}
    (models / "head" / "config.json").write_text(json.dumps(head))
    outcome = vllm(pair, CODE_1).finish()
    judged = outcome.judged["four", "code@1"]
    assert judged.point is not None
    assert (judged.valid, judged.nothing_accepted, judged.point.accept_length) == (True, True, 1.0)


def test_an_arm_whose_context_differs_is_no_evidence(vllm: Start, pair: Arms) -> None:
    shorter = dataclasses.replace(pair[1], argv=(*pair[1].argv, "--max-model-len=4096"))
    outcome = vllm((pair[0], shorter), CODE_1).finish()
    assert outcome.judged["four", "code@1"].why.startswith("max_seq_len is 4096")


def test_a_server_that_speculates_otherwise_is_not_measured(vllm: Start, pair: Arms) -> None:
    asked = dataclasses.replace(pair[1], expected={**pair[1].expected, "num_spec_tokens": 7})
    (replicate,) = vllm((asked,), CODE_1).finish().result.replicates
    assert ("num_spec_tokens=4" in replicate.error, replicate.points) == (True, ())


def test_a_server_that_does_not_say_what_it_runs_with_is_not_measured(vllm: Start, pair: Arms) -> None:
    """A wrapper of the image that swallows the log."""
    quiet = dataclasses.replace(pair[0], argv=("sh", "-c", 'exec "$@" 2>/dev/null', "sh", *pair[0].argv))
    (replicate,) = vllm((quiet,), CODE_1).finish().result.replicates
    assert "Initializing a V1 LLM engine" in replicate.error
    assert replicate.points == ()


def test_an_option_that_vllm_does_not_have(vllm: Start, pair: Arms) -> None:
    bogus = dataclasses.replace(pair[0], argv=(*pair[0].argv, "--mem-fraction-static=0.8"))
    (replicate,) = vllm((bogus,), CODE_1).finish().result.replicates
    assert replicate.exit_code == 2
    assert "unrecognized arguments: --mem-fraction-static=0.8" in replicate.error


def guarded() -> dict[str, str]:
    """Of a server with a key: the variable that vLLM reads it from."""
    keyed = VLLM.env(dataclasses.replace(ALIKE, engine=dataclasses.replace(ALIKE.engine, api_key=SECRET)))
    return {variable["name"]: "sk-of-the-server" for variable in keyed if "valueFrom" in variable}


def test_a_server_with_a_key_is_measured(vllm: Start, pair: Arms) -> None:
    outcome = vllm(pair[:1], CODE_1, **guarded(), **{API_KEY: "sk-of-the-server"}).finish()
    assert outcome.judged["baseline", "code@1"].valid, outcome.message


def test_without_its_key_it_is_not(vllm: Start, pair: Arms) -> None:
    (replicate,) = vllm(pair[:1], CODE_1, **guarded()).finish().result.replicates
    assert "401" in replicate.error
