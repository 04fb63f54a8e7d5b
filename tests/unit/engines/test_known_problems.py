"""Problems that are known by their issues: where they are told, and where not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.example import FILE, server

from paceline.cli import main
from paceline.core import Arm, Draft, Server
from paceline.engines import ENGINES, known_problems
from paceline.engines.release import release

MTP = Arm(name="mtp", draft=Draft(algorithm="MTP"))
DP = ("--attn-dp-size=2",)
ROWS = [row for adapter in ENGINES.values() for row in adapter.known_problems]


def found(where: Server, arm: Arm) -> list[str]:
    return list(known_problems.found(ENGINES[where.engine.type].known_problems, where, [arm]))


def on(engine: str, version: str, target: str, *args: str, product: str = "NVIDIA-H200") -> Server:
    one = server()
    return replace(
        one,
        engine=replace(one.engine, type=engine, version=version, args=args),
        target=replace(one.target, source=f"hf://{target}"),
        accelerator=replace(one.accelerator, product=product),
    )


@pytest.mark.parametrize(
    ("where", "issue"),
    [
        (on("SGLang", "0.5.14", "zai-org/GLM-5.2-FP8", *DP), "sgl-project/sglang#30296"),
        (on("SGLang", "0.5.23", "cyankiwi/Qwen3.8-27B-AWQ-BF16-INT4"), "sgl-project/sglang#35797"),
        (on("SGLang", "0.5.16", "Qwen/Qwen3.6-35B-A3B"), "sgl-project/sglang#30763"),
        (on("vLLM", "0.33.0", "zai-org/GLM-5.3"), "vllm-project/vllm#55605"),
        (on("vLLM", "0.26.0", "Qwen/Qwen3.6-35B", product="NVIDIA-GB10"), "eugr/spark-vllm-docker#308"),
    ],
)
def test_it_is_told(where: Server, issue: str) -> None:
    assert any(f" {issue}: " in text for text in found(where, MTP))


@pytest.mark.parametrize(
    "where",
    [
        on("SGLang", "0.5.13", "zai-org/GLM-5.2-FP8", *DP),
        on("SGLang", "0.5.14", "zai-org/GLM-5.2-FP8"),
        on("vLLM", "0.33.0", "zai-org/GLM-5.3-Flash"),
        on("vLLM", "0.27.0", "Qwen/Qwen3.6-35B", product="NVIDIA-GB10"),
        on("vLLM", "0.26.0", "Qwen/Qwen3.6-35B"),
        on("vLLM", "nightly", "zai-org/GLM-5.3"),
    ],
)
def test_it_is_not_told_of_other_releases_flags_targets_and_products(where: Server) -> None:
    assert found(where, MTP) == []


def test_the_baseline_has_no_problem_of_drafts() -> None:
    assert found(on("vLLM", "0.33.0", "zai-org/GLM-5.3"), Arm(name="baseline")) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["issue"])
def test_every_row_is_whole(row: dict[str, str]) -> None:
    assert release(row["since"])
    assert row.keys() <= {"since", "until", "algorithms", "flags", "target", "product", "problem", "wayOut",
                          "issue"}  # fmt: skip
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", row["issue"])
    re.compile(row.get("target", "") + row.get("product", ""))


def test_validate_and_plan_tell_it_and_block_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = yaml.safe_load(FILE.read_text())
    manifest["spec"]["target"]["source"] = "hf://zai-org/GLM-5.2-FP8"
    manifest["spec"]["engine"] |= {"version": "0.5.23", "args": ["--attention-backend=triton", "--attn-dp-size=2"]}
    manifest["spec"]["draft"] = {"algorithm": "MTP"}
    file = tmp_path / "glm.yaml"
    file.write_text(yaml.safe_dump(manifest))
    assert main(["validate", str(file)]) == 0
    assert "sgl-project/sglang#30296" in capsys.readouterr().err
    assert main(["plan", str(file)]) == 0
    assert "sgl-project/sglang#30296" in capsys.readouterr().out
