"""Servers and arms of sglang-jax on a TPU."""

from dataclasses import replace
from typing import Any

from paceline.core import Accelerator, Arm, Cache, Draft, Engine, Model, Server, Tree
from paceline.engines import ENGINES

JAX = ENGINES["SGLangJAX"]


TARGET = f"/models/hub/models--Qwen--Qwen3-8B/snapshots/{'1' * 40}"


HEAD = f"/models/hub/models--thoughtworks--Qwen3-8B-Eagle3/snapshots/{'2' * 40}"


BASELINE = Arm(name="baseline")


def server(*args: str, version: str = "0.1.0", env: tuple[dict[str, Any], ...] = (), **accelerator: Any) -> Server:
    """With pages of 64 tokens behind the arguments, unless they say how many."""
    args = args if any(one.startswith("--page-size") for one in args) else (*args, "--page-size=64")
    tpu = Accelerator(
        product="tpu-v6e-slice",
        product_label="cloud.google.com/gke-tpu-accelerator",
        resource_name="google.com/tpu",
        topology="2x2",
        count=4,
        tensor_parallel_size=4,
    )
    return Server(
        engine=Engine(
            type="SGLangJAX", version=version, image="lmsysorg/sglang-jax:v0.1.0", args=args, env=env
        ),
        target=Model(source="hf://Qwen/Qwen3-8B", commit="1" * 40),
        served_name="qwen3-8b",
        accelerator=replace(tpu, **accelerator),
        cache=Cache(claim="models"),
    )  # fmt: skip


def arm(algorithm: str = "EAGLE3", *args: str, **shape: Any) -> Arm:
    head = Model(source="hf://thoughtworks/Qwen3-8B-Eagle3", commit="2" * 40)
    shape = shape or {"tree": Tree(num_steps=3, top_k=1, num_draft_tokens=4)}
    return Arm(name="chain", draft=Draft(algorithm=algorithm, model=head), args=args, **shape)
