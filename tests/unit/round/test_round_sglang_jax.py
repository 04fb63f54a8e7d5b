"""A whole round of sglang-jax on loopback: its acceptance is read off the log that the wrapper keeps."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from tests.support.rounds import arm_command, with_arms
from tests.unit.round.pod import TARGET, Arms, Start, workload

from paceline.core import Parity
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, Outputs, RoundPlan

SHAPE = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
CODE_1, CHAT_4 = workload("code", 1, 4, 48), workload("chat", 4, 12, 32)
PROBABILITY = 0.65
"""That the generic profile's head is right once more: a chain of three yields 1 + p + p² + p³."""


def as_sglang_jax(plan: RoundPlan) -> RoundPlan:
    jax = ENGINES["SGLangJAX"]
    plan = dataclasses.replace(plan, parity=Parity(samples=2, max_tokens=8), moved=jax.moved(()))
    return with_arms(plan, engine="SGLangJAX", engine_version="0.1.0", compared=jax.compared)


def emulated(models: Path, port: int, name: str, **speculation: str | int) -> ArmCommand:
    words = (word for key, value in speculation.items() for word in (f"--{key.replace('_', '-')}", str(value)))
    argv = (
        sys.executable, "-u", "-m", "paceline_emulator.sglang_jax",
        "--model-path", str(models / "target"),
        "--served-model-name", "pair",
        "--port", str(port),
        "--tp-size", "4",
        "--random-seed", "0",
        "--decode-log-interval", "1",
        "--page-size", "64",
        *words,
    )  # fmt: skip
    expected = {"speculative_algorithm": speculation.get("speculative_algorithm"), "decode_log_interval": 1}
    return arm_command(name, *argv, candidate=bool(speculation), expected=expected)


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    (models / "target" / "config.json").write_text(json.dumps({**TARGET, "architectures": ["Qwen3ForCausalLM"]}))
    head = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": str(models / "head")}
    return emulated(models, port, "baseline"), emulated(models, port, "chain", **head, **SHAPE)


def test_a_round_of_the_emulated_pair(start: Start, pair: Arms) -> None:
    outcome = start(pair, CODE_1, CHAT_4, change=as_sglang_jax, NVIDIA_VISIBLE_DEVICES="").finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log
    assert {one.why for one in outcome.judged.values()} == {""}
    result = outcome.result
    assert (result.engine_version, result.emulated, result.gpus) == ("0.1.0rc0+emulated", True, ())
    assert result.replicates[1].outputs == Outputs(samples=2)
    for name in ("code@1", "chat@4"):
        baseline, chain = (outcome.judged[one, name].point for one in ("baseline", "chain"))
        assert baseline is not None
        assert chain is not None
        assert (baseline.accept_length, baseline.verify_calls, baseline.retractions) == (None, None, 0)
        assert chain.accept_length == pytest.approx(sum(PROBABILITY**n for n in range(4)), rel=0.1)
        assert chain.verify_calls is not None
        decoded = chain.output_tokens - chain.completed if chain.output_tokens else 0
        assert chain.verify_calls * (chain.accept_length or 0) == pytest.approx(decoded, rel=0.1)


def test_a_log_without_its_lines_is_no_evidence(start: Start, pair: Arms) -> None:
    """As with the default of 40 steps between two lines, or a level that hides them."""
    rare = tuple(
        dataclasses.replace(one, argv=(*one.argv, "--decode-log-interval", "100000"), expected={}) for one in pair
    )
    outcome = start(rare, CODE_1, change=as_sglang_jax).finish()
    assert outcome.judged["chain", "code@1"].why == "no speculation was running: no verify calls"
    assert outcome.judged["baseline", "code@1"].why == "retractions unknown"
