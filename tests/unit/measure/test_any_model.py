"""`paceline measure --emulated` on a model that the emulator has never heard of."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.measure.test_story import QUICK, the_run

from paceline.api import deployment
from paceline.core import Accelerator
from paceline.measure import emulated
from paceline.plan.speeds import Size, alone, as_one_of, size_in_config, size_in_name
from paceline_emulator.hub.models import invented

TARGET = "hf://acme/Wonder-70B-Instruct-FP8"


def manifest(target: str = TARGET, head: str | None = "hf://acme/wonder-head", **changes: Any) -> dict[str, Any]:
    draft = {"algorithm": "EAGLE3", "source": head} if head else {"algorithm": "NGRAM"}
    shape = {"tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}} if head else {"ngram": {"numDraftTokens": 4}}
    spec = {
        "target": {"source": target, "servedName": "wonder"},
        "draft": draft,
        "engine": {
            "type": "SGLang",
            "version": "0.5.23",
            "image": "lmsysorg/sglang:v0.5.23",
            "args": ["--attention-backend=triton"],
        },
        "accelerator": {"product": "NVIDIA-H100-80GB-HBM3", "count": 4},
        "cache": {"claim": {"name": "models", "size": "100Gi"}},
        "pools": [{"name": "chat", "load": [{"concurrency": [1]}]}],
        "candidates": [{"name": "one", **shape}],
        "gate": {"minImprovement": "0%", "maxRegression": "90%", "confidence": "50%", "decideAfterRounds": [2]},
        "benchmark": {
            "datasets": [{"name": "code", "source": "builtin://code", "requests": 5, "maxTokens": 16}],
        },
        **changes,
    }
    kind = {"apiVersion": "paceline.dev/v1alpha1", "kind": "SpeculativeDeployment", "metadata": {"name": "wonder"}}
    return {**kind, "spec": spec}


def measure(directory: Path, asked: dict[str, Any], *options: str) -> "subprocess.CompletedProcess[str]":
    file = directory / "question.yaml"
    file.write_text(yaml.safe_dump(asked))
    program = [sys.executable, "-m", "paceline.cli", "measure", str(file), "--emulated", *options]
    output = ["-o", str(directory / "run.yaml"), *(word for one in QUICK for word in ("--env", one))]
    return subprocess.run([*program, *output], capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.timeout(300)
def test_an_unknown_model_is_measured_and_every_output_begins_with_that(tmp_path: Path) -> None:
    done = measure(tmp_path, manifest())
    assert done.returncode == 0, done.stderr
    mark = "Emulated with invented speeds of a generic 70B model, 93 tokens/s for one request: nothing is published"
    assert done.stdout.startswith(mark)
    assert done.stderr.splitlines() == [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    written = (tmp_path / "run.yaml").read_text()
    assert written.startswith(f"# {mark}")
    run = the_run(tmp_path)
    assert "emulated with invented speeds of a generic 70B model" in run["rounds"][0]["notes"][0]
    assert done.stdout.splitlines().count(done.stdout.splitlines()[0]) == 1
    # Half of a round with one short load is its prefill; speeds are of a busy machine.
    speeds = [p["outputThroughput"] for r in run["rounds"] for p in r["points"] if p["arm"] == "baseline"]
    assert all(40 < float(speed) < 100 for speed in speeds), speeds


def test_a_size_that_nothing_says_is_asked_for_once(tmp_path: Path) -> None:
    done = measure(tmp_path, manifest("hf://acme/wonder", None))
    assert done.returncode == 1
    assert "give --emulated-size 70B" in done.stderr
    assert "token" not in done.stderr.lower()
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines)) == 1, lines


def test_the_size_of_models_that_are_here_is_read_from_their_configuration(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    server = deployment(manifest("hf://acme/wonder", None)).server
    sentence, variables = emulated.mark(server, tmp_path, None)
    assert "generic 8B model" in sentence
    assert float(variables["PACELINE_EMULATE_SPEED"]) == pytest.approx(2.5, abs=0.1)  # four GPUs; 1 is 100 tokens/s


@pytest.mark.parametrize("config", ["[]", "{"])
def test_a_configuration_that_is_none_is_told_in_a_sentence(tmp_path: Path, config: str) -> None:
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(emulated.EmulatorError, match=r"cannot read .*: It looks like .*is not a valid JSON file\.$"):
        emulated.mark(deployment(manifest("hf://acme/wonder", None)).server, tmp_path, None)


def test_a_custom_head_is_invented_and_a_missing_size_is_the_targets() -> None:
    custom = manifest("hf://acme/wonder")
    custom["spec"]["draft"] = {"algorithm": "Custom", "name": "UNO", "source": "hf://acme/head"}
    custom["spec"]["candidates"] = [{"name": "one", "custom": {}}]
    spec = deployment(custom)
    kinds = emulated.kinds_on_hub(spec.server.target, spec.pools[0].arms)
    assert list(kinds) == ["acme/wonder", "acme/head"]
    assert invented(kinds["acme/head"], 8, "acme/head").at("main") is not None


def test_a_published_model_keeps_its_speeds(tmp_path: Path) -> None:
    config = {"architectures": ["Qwen3NextForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 48}
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_experts": 512}))
    server = deployment(manifest("hf://Qwen/Qwen3-Coder-Next", None)).server
    assert emulated.mark(server, tmp_path, None) == (
        "Emulated with published speeds of hf://Qwen/Qwen3-Coder-Next: no model runs", {}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("hf://RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", Size(total=70, active=70, bytes_each=1)),
        ("hf://Qwen/Qwen3-30B-A3B", Size(total=30, active=3)),
        ("hf://mistralai/Mixtral-8x7B-v0.1", Size(total=56, active=14)),
        ("hf://Qwen/Qwen3-0.6B", Size(total=0.6, active=0.6)),
        ("hf://TheBloke/Llama-2-13B-AWQ", Size(total=13, active=13, bytes_each=0.5)),
        ("hf://openai/gpt-oss-120b", Size(total=120, active=120)),
        ("hf://zai-org/GLM-4.7-Flash", None),
        ("hf://acme/v2B3", None),
        ("hf://acme/smol-135M", Size(total=0.135, active=0.135)),
        ("hf://moonshotai/Kimi-1T-A32B", Size(total=1000, active=32)),
        ("hf://acme/Model-0B", None),
        ("hf://acme/Model-3B-A30B", None),
        ("hf://acme/Model-999999999B", None),
    ],
)
def test_a_name_says_its_size(name: str, size: Size | None) -> None:
    assert size_in_name(name) == size


def test_a_mixture_of_experts_is_sized_by_what_a_token_uses() -> None:
    config = {
        "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4,
        "head_dim": 128, "intermediate_size": 5472, "vocab_size": 151936, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768,
    }  # fmt: skip
    size = size_in_config(config)
    assert size is not None
    assert size.total == pytest.approx(30.5, abs=0.5)
    assert size.active == pytest.approx(3.3, abs=0.5)


def test_more_accelerators_are_faster_and_more_requests_slower_each() -> None:
    dense = Size(total=70, active=70, bytes_each=1)
    four = Accelerator(product="NVIDIA-H100-80GB-HBM3", count=4, tensor_parallel_size=4)
    assert alone(dense, four) == pytest.approx(93, abs=1)
    assert alone(dense, Accelerator(product="NVIDIA-H100-80GB-HBM3", count=8, tensor_parallel_size=8)) > alone(
        dense, four
    )
    assert as_one_of(32) == pytest.approx(0.42, abs=0.01)


@pytest.mark.parametrize("value", ["x", None, [], {}, 0, -1, 10**400, True])
@pytest.mark.parametrize("key", ["hidden_size", "num_attention_heads", "vocab_size", "num_experts", "text_config"])
def test_an_odd_configuration_says_no_size_or_one_above_zero(key: str, value: Any) -> None:
    config = {
        "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 14336,
        "vocab_size": 128256, key: value,
    }  # fmt: skip
    size = size_in_config(config)
    assert size is None or size.active > 0
