"""Rules on the target's hidden states that an EAGLE3 head reads."""

from collections.abc import Iterator

from paceline.engines.model_rules import (
    AUX_LAYERS,
    AUX_LAYERS_WHY,
    UNNAMED_LAYERS,
    UNNAMED_LAYERS_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    layers_outside,
    listed,
    of_head,
    usual_layers,
)


def aux_layers_attend(pair: PairFacts) -> Iterator[ModelFinding]:
    """Checks both ways of counting: layers whose outputs are taken, and layers before which states are taken."""
    named, attention = pair.head.aux_layers, pair.target.attention_layers
    if pair.draft.algorithm != "EAGLE3" or not attention:
        return
    linear = [layer for layer in named if layer not in attention]
    if linear and any(layer + 1 not in attention for layer in named):
        problem = (
            f"{pair.name} reads layers of the target that have no attention: {listed(linear)} (those with: "
            f"{listed(attention)})"
        )
        yield of_head(pair, "source", problem, "no change is needed if it was trained on these layers", blocks=False)


RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(id=AUX_LAYERS, why=AUX_LAYERS_WHY, check=layers_outside),
    ModelRule(id=UNNAMED_LAYERS, why=UNNAMED_LAYERS_WHY, check=usual_layers),
    ModelRule(
        id="aux-layers-attend",
        why="a layer without attention has the state of the whole text, which the makers of the head of "
        "Qwen3-Coder-Next found useless to a head (their article; not measured by us)",
        check=aux_layers_attend,
    ),
)
