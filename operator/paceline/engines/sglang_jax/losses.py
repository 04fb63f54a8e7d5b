"""What requests lose once sglang-jax speculates, and what else they need (0.1.0rc0, below `sgl_jax/srt/`)."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Arm, Workload
from paceline.engines.refusal import Refusal


def loses(arm: Arm) -> str:
    if arm.draft is None:
        return ""
    if arm.draft.algorithm == "DFLASH":
        return (
            "sglang-jax under DFLASH refuses a request with logprobs, a grammar, a penalty or any sampling but "
            "greedy (managers/scheduler.py:173)"
        )
    return (
        "sglang-jax silently ignores grammars (JSON schemas, regular expressions) and penalties of a request once "
        "it speculates (speculative/overlap_utils.py:35)"
    )


def refuses(arm: Arm, load: Workload) -> Iterator[Refusal]:
    """What the server refuses or ignores is written in managers/scheduler.py:173 and
    speculative/overlap_utils.py:35."""
    if arm.draft is None:
        return
    algorithm, dataset = arm.draft.algorithm, load.dataset
    blocks, way = algorithm == "DFLASH", f"remove it, or candidate {arm.name}"
    if dataset.response_format:
        does = "refuses requests with a response format" if blocks else "silently ignores a response format"
        yield Refusal(path="responseFormat", message=f"sglang-jax {does} once it speculates ({algorithm}); {way}")
    if blocks and dataset.temperature != 0:
        message = f'sglang-jax answers greedy requests only under DFLASH; write "0", or remove candidate {arm.name}'
        yield Refusal(path="temperature", message=message)


def tools_need(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Without a parser the server answers 500 to requests with tools (function_call/function_call_parser.py:45)."""
    return ("--tool-call-parser",) if body.get("tools") and body.get("tool_choice") != "none" else ()
