"""`paceline measure` with the real vLLM 0.33.0 on a CPU, from dev/vllm/tiny.yaml to a verdict that its drafts earn."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.real.measured import ROOT
from tests.real.staged import staged
from tests.real.test_vllm import environment, program
from tests.real.without_cluster import Told, measure, told

CANDIDATES = ("ngram", "copy", "noise")


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory, tell: Callable[[Told], Told]) -> Told:
    place = tmp_path_factory.mktemp("measured")
    command = f"{program(Path(os.environ['VLLM_DIR']), place)} serve"
    folder = staged(Path(os.environ["VLLM_DIR"]) / "models", place)
    measured = measure(ROOT / "dev/vllm/tiny.yaml", folder, place, command, environment(place))
    return tell(told(place, measured, ROOT / "docs/reports/vllm.md"))


def test_the_real_server_was_measured(vllm: Told) -> None:
    assert vllm.status["engineVersion"] == "0.33.0"
    assert not vllm.status.get("emulated")


def test_every_point_is_evidence(vllm: Told) -> None:
    assert {(one["arm"], one["why"]) for one in vllm.points} == {(arm, "") for arm in vllm.arms}


def test_the_model_that_drafts_what_the_target_says_is_shown_to_be_faster(vllm: Told) -> None:
    """N-grams may be faster still, and then win: models of random weights repeat themselves."""
    assert (vllm.code, vllm.verdict["outcome"]) == (0, "Promote")
    assert {one["arm"]: one["outcome"] for one in vllm.status["armVerdicts"]}["copy"] == "promotable"
    assert float(vllm.result("copy")["lower"]) > 1.05
    assert vllm.verdict["winner"] in ("copy", "ngram")


def test_a_head_of_noise_is_rejected_after_one_round(vllm: Told) -> None:
    assert len(vllm.of("noise")) == 1
    assert float(vllm.of("noise")[0]["acceptLength"]) == pytest.approx(1.0, abs=0.05)


def test_the_target_accepts_all_that_its_like_proposes(vllm: Told) -> None:
    """All three of a step, and verify calls agree with what clients received: but for what a request's end cuts off."""
    for point in vllm.of("copy"):
        length = float(point["acceptLength"])
        assert length == pytest.approx(4.0, abs=0.4)
        beyond = point["verifyCalls"] * length - (point["outputTokens"] - point["completed"])
        assert 0 <= beyond <= 3 * point["completed"] + 0.5


@pytest.mark.parametrize("arm", CANDIDATES)
def test_no_answer_parts_from_the_baselines_by_more_than_rounding(vllm: Told, arm: str) -> None:
    for one in vllm.replicates(arm):
        assert not one["parity"].get("unknown"), one["parity"]
        assert one["parity"]["diverged"] == 0
