"""Deployments of SGLang and vLLM as `kubectl get deployment -o yaml` prints them, and what is known of each.

Each was created on a real API server and read back, so status, managedFields and defaults are its own. Their shapes
are public ones, read on 24 November 2026:

* sglang-llama: sgl-project/sglang, docker/k8s-sglang-service.yaml
* vllm-mistral: vllm-project/vllm, docs/deployment/k8s.md (NVIDIA GPU)
* vllm-stack-eagle3: vllm-project/production-stack, helm/templates/deployment-vllm-multi.yaml, with a head
* vllm-aibrix: vllm-project/aibrix, samples/heterogeneous/deepseek-coder-7b-l20-deployment.yaml
* sglang-script-eagle3: ours; a shell's script, models on a claim, a port of its own
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paceline.cli.render import rendered_objects
from paceline.engines.arguments import FlagList
from paceline.engines.sglang.arguments import flag_list as sglang_flags
from paceline.engines.vllm.arguments import flag_list as vllm_flags

Manifest = dict[str, Any]
DEPLOYMENTS = Path(__file__).parents[1] / "unit" / "migration" / "deployments"
COMMIT = "0" * 40
HUB = "/models/hub/models--{}/snapshots/" + COMMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`command` is what the Deployment starts, as a person would type it; `model` the path that the rendered server
    reads."""

    name: str
    options: tuple[str, ...] = ()
    flags: FlagList
    command: str
    model: str

    def __str__(self) -> str:
        return self.name

    @property
    def file(self) -> Path:
        return DEPLOYMENTS / f"{self.name}.yaml"

    @property
    def deployment(self) -> Manifest:
        found: Manifest = yaml.safe_load(self.file.read_text())
        return found


SGLANG, VLLM = sglang_flags("0.5.23"), vllm_flags("0.33.0")
CASES = (
    Case(
        name="sglang-llama",
        options=("--engine-version=0.5.23", "--product=NVIDIA-H100-80GB-HBM3", "--cache-size=60Gi"),
        flags=SGLANG,
        command="--model-path meta-llama/Llama-3.1-8B-Instruct --host 0.0.0.0 --port 30000",
        model=HUB.format("meta-llama--Llama-3.1-8B-Instruct"),
    ),
    Case(
        name="vllm-mistral",
        options=("--concurrency=1,8",),
        flags=VLLM,
        command="--model mistralai/Mistral-7B-Instruct-v0.3 --trust-remote-code --enable-chunked-prefill "
        "--max-num-batched-tokens 1024",
        model=HUB.format("mistralai--Mistral-7B-Instruct-v0.3"),
    ),
    Case(
        name="vllm-stack-eagle3",
        flags=VLLM,
        command="--model Qwen/Qwen3-Coder-30B-A3B-Instruct --host 0.0.0.0 --port 8000 --enable-auto-tool-choice "
        "--tool-call-parser qwen3_coder --no-enable-prefix-caching --max-model-len 32768 --tensor-parallel-size 2 "
        "--max-num-seqs 64 --gpu-memory-utilization 0.9 --served-model-name qwen3-coder-30b --speculative-config "
        """'{"method": "eagle3", "model": "yuhuili/Eagle3-Qwen3-30B-A3B", "num_speculative_tokens": 4}'""",
        model=HUB.format("Qwen--Qwen3-Coder-30B-A3B-Instruct"),
    ),
    Case(
        name="vllm-aibrix",
        options=("--target=hf://deepseek-ai/deepseek-coder-6.7b-instruct", "--api-key-secret=clients/key"),
        flags=VLLM,
        command="--host 0.0.0.0 --port 8000 --uvicorn-log-level warning --model /models/deepseek-coder-6.7b-instruct "
        "--served-model-name deepseek-coder-7b --trust-remote-code --max-model-len 15000 --api-key sk-not-a-real-one",
        model=HUB.format("deepseek-ai--deepseek-coder-6.7b-instruct"),
    ),
    Case(
        name="sglang-script-eagle3",
        flags=SGLANG,
        command="--model-path /models/qwen/Qwen3-Coder-Next --served-model-name qwen3-coder-next --tp-size 4 "
        "--port 8080 --host 0.0.0.0 --mem-fraction-static 0.8 --attention-backend triton --chunked-prefill-size 8192 "
        "--chat-template /models/templates/coder.jinja --speculative-algorithm EAGLE3 --speculative-draft-model-path "
        "/models/heads/Qwen3-Coder-Next-Eagle3 --speculative-num-steps 3 --speculative-eagle-topk 4 "
        "--speculative-num-draft-tokens 8 --enable-metrics --random-seed 42 --api-key $(API_KEY)",
        model="/models/qwen/Qwen3-Coder-Next",
    ),
)


def served(manifest: Manifest, arm: str | None = None) -> Manifest:
    """The pod template of the servers that the resource's pool would have."""
    (found,) = (one for one in rendered_objects(manifest, arm=arm) if one["kind"] == "Deployment")
    template: Manifest = found["spec"]["template"]
    return template


def container(template: Manifest) -> Manifest:
    """The engine's."""
    (found,) = (one for one in template["spec"]["containers"] if one["name"] == "server")
    return dict(found)


def arguments(flags: FlagList, words: Sequence[str] | str) -> Mapping[str, tuple[str, ...]]:
    """Flag by its first name → its values: order and spelling do not count. A model that stands alone is --model."""
    listed = shlex.split(words) if isinstance(words, str) else list(words)
    found: dict[str, tuple[str, ...]] = {}
    for parsed in flags.parse(listed):
        if not parsed.written:
            (found["--model"],) = [(word,) for word in parsed.values]
            continue
        assert parsed.name not in found, f"{parsed.written} stands twice"
        found[parsed.name] = parsed.values
    return found


def started(case: Case, template: Manifest) -> Mapping[str, tuple[str, ...]]:
    command = container(template)["command"]
    start = next(i for i, word in enumerate(command) if word in ("sglang.launch_server", "serve"))
    return arguments(case.flags, command[start + 1 :])
