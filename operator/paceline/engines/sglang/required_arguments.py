"""Rules about values that SGLang sets differently under speculation: users must set them, equally on all arms.

`moved_arguments` lists them by release, from the wheels. A branching tree's attention backend is in `tree_rules`.
"""

import re
from collections.abc import Iterator

from paceline.core import Arm
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang import moved_arguments
from paceline.engines.sglang.backends import PINNED_BY as BACKENDS_PINNED_BY
from paceline.engines.sglang.candidate import RUNS_AS, Candidate, candidates

_PINNED_BY = "--mem-fraction-static"
LIKE = (
    (re.compile(r"\bG?B[23]00\b"), "B200"),
    (re.compile(r"\bH200\b|\bGH200\b"), "H200"),
    (re.compile(r"\bH[0-9]{2,3}\b"), "H100"),
)
"""Products → the similar GPU for which the wheels were run."""


def _memory(configuration: Configuration) -> Iterator[Refusal]:
    moving = moved_arguments.moves_of(configuration.version)
    if moving is None or any(configuration.find(_PINNED_BY)):
        return
    moved = moving.moved_by(moved_arguments.MEMORY)
    arm = next((arm for arm in configuration.arms if arm.draft and _kind(arm) in moved), None)
    if arm is None or arm.draft is None:
        return
    shares = moving.memory["H200"]
    yield Refusal(
        path="engine.args",
        message=f"{configuration.engine} reserves another share of the memory when speculating (on four H200 "
        f"mem_fraction_static is {shares['baseline']:.3f}, and {shares[_kind(arm)]:.3f} with "
        f"{arm.draft.algorithm}, which {arm.name} has), but arms must be equal; add {_PINNED_BY}=0.85, "
        "or a share with room for the draft",
    )


def _kind(arm: Arm) -> str:
    """The similar arm in the wheels' table. A custom algorithm counts as EAGLE3: before 0.5.14 all but NGRAM get its
    share, or more."""
    assert arm.draft
    if arm.custom:
        return "EAGLE3"
    return RUNS_AS.get(arm.draft.algorithm, arm.draft.algorithm)


def _backend(configuration: Configuration) -> Iterator[Refusal]:
    moving = moved_arguments.moves_of(configuration.version)
    product = configuration.server.accelerator.product
    gpu = next((like for pattern, like in LIKE if pattern.search(product)), None)
    given = {parsed.name for parsed in configuration.shared}
    if moving is None or gpu is None or any(given.issuperset(flags) for flags in BACKENDS_PINNED_BY):
        return
    for candidate in candidates(configuration):
        if candidate.branching == 1 and gpu in moving.moved_by(moved_arguments.BACKEND).get(_row(candidate), ()):
            yield Refusal(
                path="engine.args",
                message=f"candidate {candidate.arm.name} ({candidate.algorithm}): on {product} "
                f"{configuration.engine} switches the attention backend when speculating, at least for "
                "some targets, and arms must be equal; add --attention-backend=triton, or another one "
                "that can draft",
            )
            return


def _row(candidate: Candidate) -> str:
    """The arm of the wheels' table."""
    moving = candidate.arm.moving_depth and candidate.in_eagle_family
    return moved_arguments.ADAPTIVE if moving else candidate.runs_as


RULES = (
    EngineRule(
        id="memory-moves",
        check=_memory,
        reason="the default mem_fraction_static depends on the algorithm, so no candidate would give evidence",
        source="server_args.py:846-853 of 0.5.6, and the like from 0.4.7 to 0.5.13.post1: data/moves.json",
    ),
    EngineRule(
        id="backend-moves",
        check=_backend,
        reason="the default backend on Blackwell depends on whether it speculates, so no candidate would give evidence",
        source="server_args.py:1542 of 0.5.7, attention_hook.py of 0.5.23: data/moves.json",
    ),
)
