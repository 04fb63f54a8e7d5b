"""Rules about depths that vLLM chooses. Paths are below `vllm/` of its wheel 0.33.0.

`adaptive` is its adaptive verification: a cost model, profiled at the start, decides how many of the proposed tokens
are verified. `schedule` sets the number of proposed tokens by batch size.
"""

import re
from collections.abc import Iterator

from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration

ADAPTIVE_DEPTH = 7
"""The most tokens that an adaptive arm proposes by default: vLLM has no default for most heads. From its
documentation's example (docs/features/speculative_decoding/adaptive_verification.md)."""
_PIECES = re.compile(r"cudagraph_mode\W+(NONE|PIECEWISE)\b")


def adaptive(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        for obstacle in _obstacles(configuration) if arm.adaptive else ():
            message = f"{obstacle} cannot be combined with adaptive: remove it, or name chains or a schedule"
            yield Refusal(arm=arm.name, path="adaptive", message=message)


def _obstacles(configuration: Configuration) -> Iterator[str]:
    """Settings that would each end the server at its start."""
    for parsed in configuration.shared:
        written, value = parsed.written, parsed.value
        if written in ("--enable-lora", "--enforce-eager", "--enable-return-routed-experts"):
            yield written
        elif parsed.name == "--pipeline-parallel-size" and _above_one(value):
            yield f"{written} {value}"
        elif parsed.name == "--optimization-level" and (value or written.removeprefix("-O")) in ("0", "1"):
            yield f"{written}, which has no full CUDA graphs,"
        elif parsed.name == "--compilation-config" and _PIECES.search(f"{written} {value}"):
            yield f"{written} without full CUDA graphs"


def schedule(configuration: Configuration) -> Iterator[Refusal]:
    spread = [parsed for parsed in configuration.find("--data-parallel-size") if _above_one(parsed.value)]
    for arm in configuration.arms:
        if arm.depth_by_batch_size and spread:
            message = f"{spread[0].written} {spread[0].value} makes the depth static, and only the log says so"
            yield Refusal(arm=arm.name, path="depthByBatchSize", message=f"{message}: remove it, or name chains")


def _above_one(text: str) -> bool:
    return text.isdecimal() and int(text) > 1
