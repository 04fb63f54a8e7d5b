"""Rules on the hidden states for an EAGLE3 head: can the release take them, and are they the head's own?

`hidden_states` lists what each release takes, with sources.
"""

from collections.abc import Iterator, Sequence

from paceline.core.text import count
from paceline.engines.arguments import UNLISTED
from paceline.engines.model_rules import (
    AUX_LAYERS,
    AUX_LAYERS_WHY,
    FOREIGN_LAYERS,
    TRAINED_FOR_LAYERS,
    UNNAMED_LAYERS,
    UNNAMED_LAYERS_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    layers_outside,
    layers_unnamed,
    listed,
    of_head,
)
from paceline.engines.sglang.hidden_states import QWEN3_NEXT, Captured, captured
from paceline.engines.sglang.versions import is_newer


def aux_layers_are_there(pair: PairFacts) -> Iterator[ModelFinding]:
    states, layers = _captured(pair), pair.target.num_hidden_layers or 0
    if not states:
        yield from layers_outside(pair)
    elif all(each.fails for each in states):
        state, named = states[-1], pair.head.aux_layers
        yield ModelFinding(
            arm=pair.arm.name,
            path="draft.source",
            problem=f"{pair.name} names layers {listed(named)}, and {pair.release} takes states before layers "
            f"{listed(state.asked)}" + _not_these(state, layers),
            why=f"the head then reads another width: the server dies {state.dies} ({state.hook.source})",
            fix=_instead(state, named, layers),
            blocks=not is_newer(pair.server.engine.version),
        )


def _not_these(state: Captured, layers: int) -> str:
    if state.lost:
        return f", of which a target of {count(layers, 'layer')} has no {listed(state.lost)}"
    return f" and, left over from its CUDA graphs, before {listed(state.extra)}"


def _instead(state: Captured, named: Sequence[int], layers: int) -> str:
    if state.extra:
        return "take SGLang 0.5.11 or later, or a head that names the layers that the release takes by default"
    less = [layer - 1 for layer in named]
    if any(layer not in range(layers) for layer in named):
        return TRAINED_FOR_LAYERS
    return (
        f"{TRAINED_FOR_LAYERS}; if its own states were taken before layers {listed(named)}, a copy of it whose "
        f"config.json names {less}"
    )


def aux_layers_are_the_heads(pair: PairFacts) -> Iterator[ModelFinding]:
    states = _captured(pair)
    if states and not any(each.fails for each in states):
        texts = (check(pair, states) for check in (_beside, _unnamed, _unread, _in_two_ways))
        if text := next(filter(None, texts), None):
            yield of_head(pair, "source", *text, blocks=False)


def aux_layers_are_named(pair: PairFacts) -> Iterator[ModelFinding]:
    states = _captured(pair)
    if states and pair.target.architectures[0] != QWEN3_NEXT:  # see `_unnamed`
        yield from layers_unnamed(pair, states[-1].asked)


Sentence = tuple[str, str] | None
"""A problem and its fix."""


def _beside(pair: PairFacts, states: Sequence[Captured]) -> Sentence:
    beside, takes = pair.head.aux_layers_beside, states[-1].asked
    if pair.head.aux_layers or not beside or takes in (beside, tuple(layer + 1 for layer in beside)):
        return None
    return (
        f"{pair.name} names layers {listed(beside)} outside eagle_config, where {pair.release} does not look: it "
        f"takes states before layers {listed(takes)}",
        "name a copy of it whose config.json names them in eagle_config",
    )


def _unnamed(pair: PairFacts, states: Sequence[Captured]) -> Sentence:
    """The head names no layers, and the first heads for this class were trained on a fork that takes other layers by
    default."""
    target, layers = pair.target.architectures[0], pair.target.num_hidden_layers or 0
    named = pair.head.aux_layers or pair.head.aux_layers_beside
    if named or target != QWEN3_NEXT or target in pair.server.engine.eagle3_targets:
        return None
    (fork,) = captured("0.5.6", target, layers, (), pair.target.attention_layers, declared=True)
    return (
        f"{pair.name} names no layers, so {pair.release} takes states before layers {listed(states[-1].asked)}, but "
        f"the fork of 0.5.6 that made the first such heads (github.com/tails-mpt/sglang) took them before "
        f"{listed(fork.asked)}",
        f"if it was trained there, name a copy of it whose config.json names {[n - 1 for n in fork.asked]} as "
        "eagle_aux_hidden_state_layer_ids in eagle_config",
    )


def _unread(pair: PairFacts, states: Sequence[Captured]) -> Sentence:
    named, takes = pair.head.aux_layers, states[-1].asked
    if not named or any(each.named for each in states) or takes == tuple(layer + 1 for layer in named):
        return None
    return (
        f"{pair.name} names layers {listed(named)}, and {pair.release} takes states before layers {listed(takes)} "
        "whatever is named",
        "take a later release",
    )


def _in_two_ways(pair: PairFacts, states: Sequence[Captured]) -> Sentence:
    state = states[-1]
    if any(each.graphs == each.asked for each in states):
        return None
    return (
        f"{pair.name} names layers {listed(pair.head.aux_layers)}: {pair.release} prefills with states before "
        f"layers {listed(state.asked)}, but verifies in CUDA graphs with states before {listed(state.graphs)}",
        "take SGLang 0.5.11 or later, or add --disable-cuda-graph to spec.engine.args, which slows every arm",
    )


def _captured(pair: PairFacts) -> tuple[Captured, ...]:
    """The states that this release gives to this head; empty if unknown."""
    engine, target, layers = pair.server.engine, pair.target.architectures[:1], pair.target.num_hidden_layers
    if pair.draft.algorithm != "EAGLE3" or not target or not layers or not pair.head.architectures:
        return ()
    return captured(
        engine.version,
        target[0],
        layers,
        pair.head.aux_layers,
        pair.target.attention_layers,
        declared=target[0] in engine.eagle3_targets,
        graphs=all(flag.name != "--disable-cuda-graph" for flag in UNLISTED.parse((*engine.args, *pair.arm.args))),
    )


RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(id=AUX_LAYERS, why=AUX_LAYERS_WHY, check=aux_layers_are_there),
    ModelRule(id=UNNAMED_LAYERS, why=UNNAMED_LAYERS_WHY, check=aux_layers_are_named),
    ModelRule(
        id=FOREIGN_LAYERS,
        why="such a head is served, but reads states that it was not trained on, so low acceptance is expected",
        check=aux_layers_are_the_heads,
    ),
)
