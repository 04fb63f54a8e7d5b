"""Servers and arms to put rules to."""

from dataclasses import replace
from typing import Any

from paceline.core import (
    CUSTOM,
    Accelerator,
    Adaptive,
    Arm,
    Cache,
    Custom,
    Depth,
    Draft,
    Engine,
    Model,
    Ngram,
    SecretKey,
    Server,
    Tree,
)
from paceline.engines.release import release

TARGET = Model(source="hf://Qwen/Qwen3-8B", commit="1" * 40)
HEAD = Model(source="hf://thoughtworks/Qwen3-8B-Eagle3", commit="2" * 40)
PINNED = "--attention-backend=flashinfer"
MEMORY = "--mem-fraction-static"
BASE = Arm(name="baseline")


def server(
    *args: str, version: str = "0.5.23", product: str = "NVIDIA-H200", pinned: bool = True, **engine: object
) -> Server:
    """With its memory fraction pinned where a release asks for it, after all other arguments."""
    number = release(version)
    if pinned and number and (0, 4, 7) <= number < (0, 5, 14) and not any(MEMORY in word for word in args):
        args = (*args, f"{MEMORY}=0.85")
    made = Engine(type="SGLang", version=version, image=f"sglang:{version}", args=args)
    return Server(
        engine=replace(made, **engine),  # type: ignore[arg-type]
        target=TARGET,
        served_name="qwen3-8b",
        accelerator=Accelerator(product=product, count=1, tensor_parallel_size=1),
        cache=Cache(claim="models"),
    )


def arm(algorithm: str = "EAGLE3", *args: str, name: str = "one", head: Model | None = HEAD, **shape: object) -> Arm:
    """With a head unless the algorithm takes none."""
    draft = Draft(algorithm=algorithm, model=None if algorithm == "NGRAM" else head)
    return Arm(name=name, draft=draft, args=args, **shape)  # type: ignore[arg-type]


def chain(*args: str, steps: int = 3, algorithm: str = "EAGLE3", name: str = "one") -> Arm:
    return arm(algorithm, *args, name=name, tree=Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1))


def wide(*args: str, algorithm: str = "EAGLE3", name: str = "one") -> Arm:
    return arm(algorithm, *args, name=name, tree=Tree(num_steps=3, top_k=4, num_draft_tokens=8))


def ngram(*args: str, **shape: int) -> Arm:
    return arm("NGRAM", *args, ngram=Ngram(**shape))


def adaptive(*args: str, steps: int | None = None, algorithm: str = "EAGLE3") -> Arm:
    return arm(algorithm, *args, adaptive=Adaptive(num_steps=steps))


def scheduled(*args: str, falling: tuple[tuple[int, int], ...] = ((1, 5), (8, 1), (32, 0)), **more: Any) -> Arm:
    return arm(
        more.pop("algorithm", "EAGLE3"),
        *args,
        depth_by_batch_size=tuple(Depth(from_batch_size=size, num_steps=steps) for size, steps in falling),
        **more,
    )


def custom(*args: str, name: str = "UNO") -> Arm:
    return Arm(name="one", draft=Draft(algorithm=CUSTOM, name=name), custom=Custom(args=args))


def block(algorithm: str, size: int = 8) -> Arm:
    return arm(algorithm, block_size=size)


def secret(key: str) -> SecretKey:
    return SecretKey(name="keys", key=key)
