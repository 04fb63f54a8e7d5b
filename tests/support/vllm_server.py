"""A server of vLLM and arms, as the builders get them after a prefetch."""

from dataclasses import replace
from typing import Any

from paceline.core import BASELINE, Accelerator, Arm, Cache, Draft, Engine, Model, Server, Tree

TARGET = Model(source="hf://Qwen/Qwen3-Coder-30B-A3B-Instruct", commit="1" * 40)
HEAD = Model(source="hf://yuhuili/Eagle3-Qwen3-30B-A3B", commit="2" * 40)
SERVER = Server(
    engine=Engine(type="vLLM", version="0.33.0", image="vllm/vllm-openai:v0.33.0", args=("--max-model-len=32768",)),
    target=TARGET,
    served_name="qwen3-coder-30b",
    accelerator=Accelerator(product="NVIDIA-GB10", count=1, tensor_parallel_size=1),
    cache=Cache(claim="models"),
    max_concurrency=8,
)
BASE = Arm(name=BASELINE)


def server(*args: str, **engine: Any) -> Server:
    return replace(SERVER, engine=replace(SERVER.engine, args=args or SERVER.engine.args, **engine))


def chain(steps: int, *args: str, algorithm: str = "EAGLE3", model: Model | None = HEAD) -> Arm:
    """So many tokens proposed a step."""
    tree = Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1)
    return Arm(name="four", draft=Draft(algorithm=algorithm, model=model), tree=tree, args=args)
