"""What a depth that vLLM chooses for itself does not go with. Paths are below `vllm/` of its wheel 0.33.0.

`adaptive` is its adaptive verification: how many of the proposed tokens are verified goes by a cost model that is
profiled at the start. `schedule` gives the number of proposed tokens by batch size.
"""

import re
from collections.abc import Iterator, Mapping

from paceline.core import Arm, Server
from paceline.engines.vllm import flags

Found = tuple[str | None, str, str]
"""As in `rules`: the arm or None, the path below it, what to say."""

OWN_WIDTH = 7
"""The most tokens an adaptive arm proposes where the resource does not say: vLLM itself has no default for most heads.
Of its own documentation's example (docs/features/speculative_decoding/adaptive_verification.md)."""
RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
PIECES = re.compile(r"cudagraph_mode\W+(NONE|PIECEWISE)\b")


def adaptive(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        if arm.adaptive:
            for what in _in_the_way(server):
                yield arm.name, "adaptive", f"{what} does not go with adaptive: remove it, or name chains or a schedule"


def _in_the_way(server: Server) -> Iterator[str]:
    """Each ends the server at its start."""
    for one in flags.given(server.engine.args):
        value = one.value or ""
        if one.written in ("--enable-lora", "--enforce-eager", "--enable-return-routed-experts"):
            yield one.written
        elif one.name == "--pipeline-parallel-size" and _above_one(value):
            yield f"{one.written} {value}"
        elif one.name == "--optimization-level" and (value or one.written.removeprefix("-O")) in ("0", "1"):
            yield f"{one.written}, which has no full CUDA graphs,"
        elif one.name == "--compilation-config" and PIECES.search(f"{one.written} {value}"):
            yield f"{one.written} without full CUDA graphs"
    if _first_runner(server.engine.env):
        yield f"{RUNNER}=0"


def schedule(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """vLLM would warn and go on with a depth that does not change: another experiment."""
    spread = [
        one
        for one in flags.given(server.engine.args)
        if one.name == "--data-parallel-size" and _above_one(one.value or "")
    ]
    for arm in arms:
        if arm.schedule and spread:
            message = f"{spread[0].written} {spread[0].value} makes the depth static, and only the log says so"
            yield arm.name, "schedule", f"{message}: remove it, or name chains"
        if arm.schedule and arm.draft and arm.draft.algorithm == "DSPARK" and _first_runner(server.engine.env):
            yield arm.name, "schedule", f"{RUNNER}=0 has no DSPARK with a schedule: remove it"


def _first_runner(env: tuple[Mapping[str, object], ...]) -> bool:
    return any(variable["name"] == RUNNER and variable.get("value") == "0" for variable in env)


def _above_one(text: str) -> bool:
    return text.isdecimal() and int(text) > 1
