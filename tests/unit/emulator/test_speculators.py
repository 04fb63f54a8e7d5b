"""A model in the speculators format: vLLM serves its verifier and speculates by itself, SGLang ends at its start."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.running import TARGET, model
from tests.support.speculator import speculator

from paceline_emulator import flags, resolve, settings
from paceline_emulator.vllm import flags as vllm_flags
from paceline_emulator.vllm import launch

VERIFIER = "Qwen/Qwen3-8B"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A cache that has the verifier."""
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen3-8B" / "snapshots" / "main"
    model(snapshot, {**TARGET, "hidden_size": 4096})
    return tmp_path / "hub"


def served(hub: Path, *argv: str) -> launch.Launch:
    return launch.resolve(vllm_flags.parse(("serve", *argv)), settings.read({"HF_HUB_CACHE": str(hub)}))


def test_vllm_speculates_by_itself(hub: Path, tmp_path: Path) -> None:
    """On an arm that was to be the baseline."""
    found = served(hub, model(tmp_path / "speculator", speculator()))
    assert found.target.path == VERIFIER
    assert found.speculation
    assert (found.speculation.method, found.speculation.tokens) == ("eagle3", 5)


def test_what_is_said_beside_it_takes_the_place_but_for_method_and_model(hub: Path, tmp_path: Path) -> None:
    path = model(tmp_path / "speculator", speculator())
    asked: dict[str, Any] = {"method": "ngram", "num_speculative_tokens": 3}
    found = served(hub, path, "--speculative-config", json.dumps(asked)).speculation
    assert found
    assert (found.method, found.tokens, found.head and found.head.path) == ("eagle3", 3, path)


def test_as_a_head_it_is_served_with_its_sizes(hub: Path, tmp_path: Path) -> None:
    target, head = model(tmp_path / "target", TARGET), model(tmp_path / "head", speculator(hidden_size=2048))
    asked = {"method": "eagle3", "model": head, "num_speculative_tokens": 3}
    found = served(hub, target, "--speculative-config", json.dumps(asked)).speculation
    assert found
    assert found.head
    assert found.head.text["hidden_size"] == 2048


def test_sglang_does_not_know_it(tmp_path: Path) -> None:
    target, head = model(tmp_path / "target", TARGET), model(tmp_path / "head", speculator(hidden_size=2048))
    argv = ("--model-path", target, "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", head)
    told = settings.read({})
    with pytest.raises(ValueError, match="Should have a `model_type` key"):
        resolve.resolve(flags.parse(argv), told, lambda text: None)
