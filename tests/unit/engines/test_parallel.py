"""What the arguments of a server ask for, against its accelerators and heads."""

from dataclasses import replace

import pytest
from tests.support.example import server
from tests.support.messages import Says

from paceline.core import Server
from paceline.engines import ENGINES, Refusal

VERSIONS = {"SGLang": "0.5.23", "vLLM": "0.33.0", "SGLangJAX": "0.1.0rc0"}


def spread(engine: str, *args: str, tp: int = 8, version: str = "", count: int = 8, nodes: int = 1) -> Server:
    one = server()
    return replace(
        one,
        engine=replace(one.engine, type=engine, version=version or VERSIONS[engine], args=args, env=()),
        accelerator=replace(one.accelerator, count=count, nodes=nodes, tensor_parallel_size=tp),
    )


def refusals(on: Server) -> tuple[Refusal, ...]:
    return tuple(ENGINES[on.engine.type].parallel(on))


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
    spread("SGLang", "--dp-size=2"),
    spread("SGLang", "--dp-size", "2", "--pp-size=2", tp=4),
    spread("SGLang", "--attn-dp-size=3"),
    spread("SGLang", "--attn-dp-size=4", "--attn-cp-size=4"),
    spread("SGLang", "--data-parallel-size=3", "--enable-dp-attention", version="0.5.6"),
    spread("vLLM", "-dp=2"),
    spread("vLLM", "--prefill_context_parallel_size=2"),
    spread("vLLM", "--decode-context-parallel-size=3"),
    spread("SGLangJAX", "--dp-size=3"),
]


def words(on: Server) -> str:
    return f"{on.engine.type} {' '.join(on.engine.args)}"


@pytest.mark.parametrize("on", RIGHT, ids=words)
def test_what_fits(on: Server) -> None:
    assert refusals(on) == ()


@pytest.mark.parametrize("on", WRONG, ids=words)
def test_what_does_not(on: Server, says: Says) -> None:
    (refusal,) = refusals(on)
    assert refusal.path == "engine.args[0]"
    says(refusal.message)


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
