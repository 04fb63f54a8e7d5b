"""Whether a target hands out the hidden states that a head reads, where the engine's own list says which do not."""

from collections.abc import Iterator

from paceline.engines import ENGINES
from paceline.preflight.cases import Rule, Said, Speculation

READERS = ("EAGLE3", "DFLASH", "DSPARK")
"""Whose heads read hidden states of several of the target's layers (vLLM 0.33.0, eagle3_utils.py:14)."""


def target_hands_out(case: Speculation) -> Iterator[Said]:
    engine, target = case.server.engine, next(iter(case.target.architectures), "")
    if (adapter := ENGINES.get(engine.name)) is None or case.draft.algorithm not in READERS:
        return
    if target in adapter.hand_out_nothing(case.server) and target not in engine.eagle3_targets:
        yield Said(
            path="engine.version",
            found=f"{engine.name} {engine.version} hands out no hidden states of {target}, and "
            f"{case.draft.algorithm} reads them",
            fix="take an algorithm that reads none (NGRAM, STANDALONE, MTP) or another target, or declare "
            f"spec.engine.eagle3Targets: [{target}] if the image adds it",
        )


RULES: tuple[Rule[Speculation], ...] = (
    Rule(
        id="target-hands-out",
        why="the server loads the weights and ends: Model does not support EAGLE3 interface (vLLM, eagle3_utils.py:28)",
        check=target_hands_out,
    ),
)
