"""A schedule of depths as SGLang reads it: the table of its adaptive speculation, in a file.

For each batch size the table has depths, from which SGLang chooses by acceptance
(`speculative/adaptive_spec_params.py`). With one depth per entry, only the batch size decides. The file's name depends
on its content, so the arguments identify the table.
"""

import json
from collections.abc import Iterator, Mapping

from paceline.core import Arm
from paceline.core.canonical import digest
from paceline.core.names import FILES
from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import candidates

_FLAG = "--speculative-adaptive-config"
BY_BATCH_SIZE = (0, 5, 13)
"""The first release whose table has depths by batch size; earlier ones have one list of depths for all batches."""
RESTS = (0, 5, 14)
"""The first release that accepts a depth of 0; earlier ones need at least 1."""


def files(arm: Arm) -> Mapping[str, str]:
    if not arm.depth_by_batch_size:
        return {}
    table = {str(depth.from_batch_size): {"candidate_steps": [depth.num_steps]} for depth in arm.depth_by_batch_size}
    return {f"{FILES}/schedule-{digest(table)}.json": json.dumps(table)}


def argv(arm: Arm) -> Iterator[str]:
    """SGLang starts with a depth of the table, by default the middle one. That depth gets CUDA graphs of every batch
    size, the others of their own."""
    (path,) = files(arm)
    yield from ("--speculative-adaptive", "--speculative-eagle-topk", "1")
    yield from ("--speculative-num-steps", str(arm.deepest), _FLAG, path)


def _release(configuration: Configuration) -> Iterator[Refusal]:
    number = release(configuration.version) or BY_BATCH_SIZE
    for candidate in candidates(configuration):
        if candidate.arm.depth_by_batch_size and number < BY_BATCH_SIZE:
            message = f"{configuration.engine} has no depth by batch size; take 0.5.13, or name a tree"
            yield candidate.refused("depthByBatchSize", message)
        for i, depth in enumerate(candidate.arm.depth_by_batch_size):
            if BY_BATCH_SIZE <= number < RESTS and depth.num_steps == 0:
                message = f"{configuration.engine} has no depth 0; take 0.5.14, or write 1"
                yield candidate.refused(f"depthByBatchSize[{i}].numSteps", message)


def _second_file(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration):
        if candidate.arm.depth_by_batch_size and (parsed := candidate.flags.get(_FLAG)):
            yield parsed.refused(f"{_FLAG} is written from depthByBatchSize; remove it, or take adaptive instead")


RULES = (
    EngineRule(
        id="schedule-version",
        check=_release,
        reason="0.5.11 and 0.5.12 read no batch sizes and serve with depths of their own; 0.5.13 exits with ValueError",
        source="adaptive_spec_params.py of the wheels of 0.5.11, 0.5.12, 0.5.13 and 0.5.14",
    ),
    EngineRule(id="schedule-twice", check=_second_file, reason="the last of two flags wins", source="argparse"),
)
