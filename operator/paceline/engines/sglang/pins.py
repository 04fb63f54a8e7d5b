"""Rules about values that SGLang chooses by whether it speculates: they have to be said, and so be equal on all arms.

Which they are in which release is read out of its wheel (`moves`). A branching tree's attention backend is in `shapes`.
"""

import re
from collections.abc import Iterator

from paceline.core import Arm
from paceline.engines.adapter import Refusal
from paceline.engines.sglang import moves
from paceline.engines.sglang.case import RUNS_AS, Candidate, Case, Rule
from paceline.engines.sglang.shapes import BACKENDS_PINNED_BY

PINNED_BY = "--mem-fraction-static"
LIKE = (
    (re.compile(r"\bG?B[23]00\b"), "B200"),
    (re.compile(r"\bH200\b|\bGH200\b"), "H200"),
    (re.compile(r"\bH[0-9]{2,3}\b"), "H100"),
)
"""Products → the GPU of their kind that the wheels were asked about."""


def _memory(case: Case) -> Iterator[Refusal]:
    read = moves.of(case.version)
    if read is None or any(one.name == PINNED_BY for one in case.shared):
        return
    moved = read.moved_by(moves.MEMORY)
    arm = next((arm for arm in case.arms if arm.draft and _kind(arm) in moved), None)
    if arm is None or arm.draft is None:
        return
    shown = read.memory["H200"]
    yield Refusal(
        path="engine.args",
        message=f"{case.engine} keeps another share of the memory where it speculates (on four H200 "
        f"mem_fraction_static is {shown['baseline']:.3f}, and {shown[_kind(arm)]:.3f} with {arm.draft.algorithm}, "
        f"which {arm.name} has), and arms must be equal; add {PINNED_BY}=0.85, or what leaves room for the draft",
    )


def _kind(arm: Arm) -> str:
    """The arm of the wheels' table that it is like. An algorithm of its own is taken for EAGLE3: before 0.5.14 all but
    NGRAM get what that gets, or more."""
    assert arm.draft
    if arm.custom:
        return "EAGLE3"
    return RUNS_AS.get(arm.draft.algorithm, arm.draft.algorithm)


def _backend(case: Case) -> Iterator[Refusal]:
    read = moves.of(case.version)
    gpu = next((like for product, like in LIKE if product.search(case.server.accelerator.product)), None)
    pasted = {one.name for one in case.shared}
    if read is None or gpu is None or any(pasted.issuperset(flags) for flags in BACKENDS_PINNED_BY):
        return
    for one in case.candidates:
        if one.branching == 1 and gpu in read.moved_by(moves.BACKEND).get(_as_asked(one), ()):
            yield Refusal(
                path="engine.args",
                message=f"candidate {one.arm.name} ({one.algorithm}): on {case.server.accelerator.product} "
                f"{case.engine} takes another attention backend where it speculates, for some targets at least, and "
                "arms must be equal; add --attention-backend=triton, or another one that can draft",
            )
            return


def _as_asked(one: Candidate) -> str:
    return moves.ADAPTIVE if one.arm.adaptive and one.in_eagle_family else one.runs_as


RULES = (
    Rule(
        id="memory-moves",
        broken=_memory,
        reason="the default mem_fraction_static depends on the algorithm, so no candidate would be evidence",
        source="server_args.py:846-853 of 0.5.6, and the like from 0.4.7 to 0.5.13.post1: data/sglang-moves.json",
    ),
    Rule(
        id="backend-moves",
        broken=_backend,
        reason="the default backend on Blackwell depends on whether it speculates, so no candidate would be evidence",
        source="server_args.py:1542 of 0.5.7, attention_hook.py of 0.5.23: data/sglang-moves.json",
    ),
)
