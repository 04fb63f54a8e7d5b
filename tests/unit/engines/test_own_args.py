"""A candidate's `args` are an allow list: speculation's own flags, and nothing that would make another server."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.edits import changed, example
from tests.support.messages import Says

from paceline import cli
from paceline.engines import ENGINES
from paceline.engines.sglang.arguments import CANDIDATE_FLAGS, TUNING
from paceline.engines.sglang_jax import rules as sglang_jax
from paceline.engines.vllm import arguments as vllm
from paceline.evidence.arguments import comparable

FIRST = "spec.candidates.0.args"
PLACE = "spec.candidates[0].args[0]"

SGLANG = (
    "--json-model-override-args={\"num_hidden_layers\": 8}",
    "--load-format=dummy",
    "--default-chat-template-kwargs={\"enable_thinking\": false}",
    "--chat-template=/models/other.jinja",
    "--preferred-sampling-params={\"temperature\": 0}",
    "--sampling-defaults=openai",
    "--enable-torch-compile",
    "--stream-interval=8",
    "--dp-size=2",
    "--ep-size=2",
    "--cuda-graph-max-bs-decode=8",
    "--cuda-graph-backend-decode=disabled",
    "--max-total-tokens=2048",
    "--enable-lora",
    "--enable-deterministic-inference",
    "--enable-mixed-chunk",
    "--disable-overlap-schedule",
    "--fp8-gemm-backend=triton",
    "--schedule-conservativeness=0.3",
    "--mem-fraction-static=0.7",
)  # fmt: skip
VLLM = (
    "--hf-overrides={\"num_hidden_layers\": 8}",
    "--compilation-config={\"mode\": 0}",
    "--max-cudagraph-capture-size=8",
    "--chat-template=/models/other.jinja",
    "--logits-processors=a.b:C",
    "--stream-interval=8",
    "-O0",
    "--max-num-seqs=8",
)  # fmt: skip
JAX = ("--load-format=dummy", "--context-length=512", "--precompile-bs-paddings=16", "--disable-overlap-schedule")
ROWS = [
    *(("qwen3-8b", argument) for argument in SGLANG),
    *(("qwen3-coder-30b-vllm", argument) for argument in VLLM),
    *(("qwen3-8b-tpu", argument) for argument in JAX),
]


@pytest.mark.parametrize(("of", "argument"), ROWS)
def test_an_argument_that_is_no_speculation_is_refused_at_the_desk(
    of: str, argument: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    manifest = tmp_path / "deployment.yaml"
    manifest.write_text(yaml.safe_dump(changed(example(of), (FIRST, [argument]))))
    assert cli.main(["validate", str(manifest)]) == 1
    said = capsys.readouterr().out
    assert f"{PLACE}: {argument.split('=')[0]} " in said
    says(*said.splitlines())


@pytest.mark.parametrize(
    "argument",
    [
        "--speculative-attention-mode=decode",
        "--speculative-draft-attention-backend=fa3",
        "--speculative-moe-runner-backend=triton",
        "--enable-linear-replayssm-spec",
    ],
)
def test_what_is_speculations_own_is_let_go(argument: str, tmp_path: Path) -> None:
    manifest: dict[str, Any] = changed(example("qwen3-8b"), (FIRST, [argument]))
    (tmp_path / "deployment.yaml").write_text(yaml.safe_dump(manifest))
    assert cli.main(["validate", str(tmp_path / "deployment.yaml")]) == 0


def test_what_a_candidate_may_set_is_not_compared() -> None:
    """Or it would be allowed at the desk and refused in the round."""
    names = {flag.removeprefix("--").replace("-", "_"): "1" for flag in (*TUNING, *CANDIDATE_FLAGS)}
    assert comparable(names, ENGINES["SGLang"].moved(())) == {}
    assert not sglang_jax.CANDIDATE_FLAGS, "what they would set has to be in MOVED"
    assert {"--speculative-config"} == vllm.CANDIDATE_FLAGS, "whose keys no start log has"
