"""What the arguments of a server ask for, against its accelerators and heads."""

from dataclasses import replace

import pytest
from tests.support.example import server

from paceline.core import Server
from paceline.engines import ENGINES

VERSIONS = {"SGLang": "0.5.23", "vLLM": "0.33.0", "SGLangJAX": "0.1.0rc0"}


def spread(engine: str, *args: str, tp: int = 8, version: str = "", count: int = 8, nodes: int = 1) -> Server:
    one = server()
    return replace(
        one,
        engine=replace(one.engine, type=engine, version=version or VERSIONS[engine], args=args, env=()),
        accelerator=replace(one.accelerator, count=count, nodes=nodes, tensor_parallel_size=tp),
    )


def said(on: Server) -> list[str]:
    return [f"{refusal.path}: {refusal.message}" for refusal in ENGINES[on.engine.type].parallel(on)]


RIGHT = [
    spread("SGLang", "--dp-size=2", tp=4),
    spread("SGLang", "--pp-size=2", "--dp-size=2", tp=2),
    spread("SGLang", "--attn-dp-size=8"),
    spread("SGLang", "--dp-size=8", "--enable-dp-attention", version="0.5.6"),  # lmsys' own DeepSeek recipe
    spread("SGLang", "--dp-size=8", "--enable-dp-attention"),
    spread("SGLang", "--attn-dp-size=2", "--attn-cp-size=4"),
    spread("SGLang", "--dp-size=2", tp=8, count=8, nodes=2),
    spread("vLLM", "--data-parallel-size=8", "--enable-expert-parallel", tp=1),  # vLLM's recipe of DeepSeek-V3.1
    spread("vLLM", "--pipeline-parallel-size=2", tp=4),
    spread("vLLM", "-dcp", "2"),
    spread("SGLangJAX", "--dp-size=2"),
]
WRONG = [
    (spread("SGLang", "--dp-size=2"), "--dp-size=2 x tensorParallelSize 8 takes 16 accelerators, but a server has 8"),
    (
        spread("SGLang", "--dp-size", "2", "--pp-size=2", tp=4),
        "--dp-size=2 x --pp-size=2 x tensorParallelSize 4 takes",
    ),
    (spread("SGLang", "--attn-dp-size=3"), "tensorParallelSize 8 must be divisible by --attn-dp-size=3"),
    (
        spread("SGLang", "--attn-dp-size=4", "--attn-cp-size=4"),
        "tensorParallelSize 8 must be divisible by --attn-dp-size=4 x --attn-cp-size=4",
    ),
    (spread("SGLang", "--data-parallel-size=3", "--enable-dp-attention", version="0.5.6"), "must be divisible by"),
    (spread("vLLM", "-dp=2"), "-dp=2 x tensorParallelSize 8 takes 16 accelerators, but a server has 8"),
    (spread("vLLM", "--prefill_context_parallel_size=2"), "takes 16 accelerators"),
    (spread("vLLM", "--decode-context-parallel-size=3"), "tensorParallelSize 8 must be divisible by"),
    (spread("SGLangJAX", "--dp-size=3"), "tensorParallelSize 8 must be divisible by --dp-size=3"),
]


@pytest.mark.parametrize("on", RIGHT, ids=lambda on: f"{on.engine.type} {' '.join(on.engine.args)}")
def test_what_fits(on: Server) -> None:
    assert said(on) == []


@pytest.mark.parametrize(("on", "message"), WRONG, ids=lambda one: " ".join(getattr(one, "engine", one).args)
                         if isinstance(one, Server) else "")  # fmt: skip
def test_what_does_not(on: Server, message: str) -> None:
    (refusal,) = said(on)
    assert refusal.startswith("engine.args[0]: ")
    assert message in refusal


@pytest.mark.parametrize(
    ("on", "groups"),
    [
        (spread("SGLang", "--attn-dp-size=4", "--attn-cp-size=2"), 8),
        (spread("SGLang", "--dp-size=8", "--enable-dp-attention", version="0.5.6"), 8),
        (spread("SGLang", "--dp-size=2", tp=4), 1),
        (spread("vLLM", "-dcp=2"), 1),
        (spread("SGLangJAX", "--dp-size=2"), 2),
    ],
)
def test_each_group_of_attention_has_all_heads(on: Server, groups: int) -> None:
    assert ENGINES[on.engine.type].attention_groups(on) == groups
