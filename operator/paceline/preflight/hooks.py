"""Checks that a target provides the hidden states that a head reads, by the engine's list of those without."""

from collections.abc import Iterator

from paceline.engines import ENGINES
from paceline.engines.model_rules import ModelFinding, ModelRule, PairFacts

_READERS = ("EAGLE3", "DFLASH", "DSPARK")
"""Algorithms whose heads read hidden states of several target layers (vLLM 0.33.0, eagle3_utils.py:14)."""


def target_hands_out(pair: PairFacts) -> Iterator[ModelFinding]:
    engine, target = pair.server.engine, next(iter(pair.target.architectures), "")
    silent = ENGINES[engine.type].without_hidden_states(pair.server)
    if pair.draft.algorithm in _READERS and target in silent and target not in engine.eagle3_targets:
        yield ModelFinding(
            path="engine.version",
            problem=f"{pair.release} provides no hidden states of {target}, but {pair.draft.algorithm} reads them",
            fix="take an algorithm that reads none (NGRAM, STANDALONE, MTP) or another target, or declare "
            f"spec.engine.eagle3Targets: [{target}] if the image adds it",
        )


RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(
        id="target-hands-out",
        why="the server loads the weights and exits: Model does not support EAGLE3 interface (vLLM, "
        "eagle3_utils.py:28)",
        check=target_hands_out,
    ),
)
