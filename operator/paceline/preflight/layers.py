"""Rules on the hidden states that an EAGLE3 head reads: can the release take them, and are they the head's own?

What each release takes is in `engines.sglang.captured`, with its sources.
"""

from collections.abc import Iterator, Sequence

from paceline.engines.arguments import UNLISTED
from paceline.engines.sglang.captured import QWEN3_NEXT, Captured, captured
from paceline.engines.sglang.versions import is_newer
from paceline.preflight.cases import Rule, Said, Speculation, listed, of_head

TRAINED_FOR_THEM = "name a head that was trained on layers which can be taken"
FOREIGN = "aux-layers-are-the-heads"
"""The rule whose finding explains a verdict: low acceptance is then expected."""


def aux_layers_are_there(case: Speculation) -> Iterator[Said]:
    found, layers = _taken(case), case.target.num_hidden_layers or 0
    if not found:
        named = case.head.aux_layers or case.head.aux_layers_beside
        if layers and (outside := [layer for layer in named if not 0 <= layer < layers]):
            text = f"{case.name} reads layers {listed(outside)} of a target that has 0 to {layers - 1}"
            yield of_head(case, "source", text, TRAINED_FOR_THEM)
    elif all(one.fails for one in found):
        one, named = found[-1], case.head.aux_layers
        yield Said(
            arm=case.arm.name,
            path="draft.source",
            found=f"{case.name} names layers {listed(named)}, and {_release(case)} takes states before layers "
            f"{listed(one.asked)}" + _not_these(one, layers),
            why=f"what the head reads is of another width then: the server dies {one.dies} ({one.hook.source})",
            fix=_instead(one, named, layers),
            blocks=not is_newer(case.server.engine.version),
        )


def _not_these(one: Captured, layers: int) -> str:
    if one.lost:
        return f", of which a target of {layers} layers has no {listed(one.lost)}"
    return f" and, as they stay marked after its CUDA graphs, before {listed(one.extra)}"


def _instead(one: Captured, named: Sequence[int], layers: int) -> str:
    if one.extra:
        return "take SGLang 0.5.11 or later, or a head that names the layers which the release takes by itself"
    less = [layer - 1 for layer in named]
    if any(layer not in range(layers) for layer in named):
        return TRAINED_FOR_THEM
    return (
        f"{TRAINED_FOR_THEM}; if its own states were taken before layers {listed(named)}, a copy of it whose "
        f"config.json names {less}"
    )


def aux_layers_attend(case: Speculation) -> Iterator[Said]:
    """By either way of counting: outputs, or the layers before which they are taken."""
    named, attention = case.head.aux_layers, case.target.attention_layers
    if case.draft.algorithm != "EAGLE3" or not attention:
        return
    linear = [layer for layer in named if layer not in attention]
    if linear and any(layer + 1 not in attention for layer in named):
        found = f"{case.name} reads layers {listed(linear)} of the target, which have no attention"
        fix = "nothing, if it was trained so"
        yield of_head(case, "source", f"{found} (those with: {listed(attention)})", fix, blocks=False)


def aux_layers_are_the_heads(case: Speculation) -> Iterator[Said]:
    found = _taken(case)
    if found and not any(one.fails for one in found):
        said = (look(case, found) for look in (_beside, _unnamed, _unread, _in_two_ways))
        if text := next(filter(None, said), None):
            yield of_head(case, "source", *text, blocks=False)


Text = tuple[str, str] | None
"""What is found, and what can be done."""


def _beside(case: Speculation, found: Sequence[Captured]) -> Text:
    beside, takes = case.head.aux_layers_beside, found[-1].asked
    if case.head.aux_layers or not beside or takes in (beside, tuple(layer + 1 for layer in beside)):
        return None
    return (
        f"{case.name} names layers {listed(beside)} beside eagle_config, where {_release(case)} does not look: it "
        f"takes states before layers {listed(takes)}",
        "name a copy of it whose config.json names them in eagle_config",
    )


def _unnamed(case: Speculation, found: Sequence[Captured]) -> Text:
    """Of a class for which heads are made with another engine that takes other layers by itself."""
    target, layers = case.target.architectures[0], case.target.num_hidden_layers or 0
    named = case.head.aux_layers or case.head.aux_layers_beside
    if named or target != QWEN3_NEXT or target in case.server.engine.eagle3_targets:
        return None
    (fork,) = captured("0.5.6", target, layers, (), case.target.attention_layers, declared=True)
    return (
        f"{case.name} names no layers: {_release(case)} takes states before layers {listed(found[-1].asked)} then, and "
        f"the fork of 0.5.6 that made the first such heads (github.com/tails-mpt/sglang) before {listed(fork.asked)}",
        f"if it was trained there, name a copy of it whose config.json names {[n - 1 for n in fork.asked]} as "
        "eagle_aux_hidden_state_layer_ids in eagle_config",
    )


def _unread(case: Speculation, found: Sequence[Captured]) -> Text:
    named, takes = case.head.aux_layers, found[-1].asked
    if not named or any(one.named for one in found) or takes == tuple(layer + 1 for layer in named):
        return None
    return (
        f"{case.name} names layers {listed(named)}, and {_release(case)} takes states before layers {listed(takes)} "
        "whatever is named",
        "take a later release",
    )


def _in_two_ways(case: Speculation, found: Sequence[Captured]) -> Text:
    one = found[-1]
    if any(other.graphs == other.asked for other in found):
        return None
    return (
        f"{case.name} names layers {listed(case.head.aux_layers)}: {_release(case)} prefills with states before layers "
        f"{listed(one.asked)}, and verifies in CUDA graphs with states before {listed(one.graphs)}",
        "take SGLang 0.5.11 or later, or add --disable-cuda-graph to spec.engine.args, which slows every arm",
    )


def _taken(case: Speculation) -> tuple[Captured, ...]:
    """What SGLang of this release does with this head; none where that is not known."""
    engine, target, layers = case.server.engine, case.target.architectures[:1], case.target.num_hidden_layers
    if engine.name != "SGLang" or case.draft.algorithm != "EAGLE3":
        return ()
    if not target or not layers or not case.head.architectures:
        return ()
    return captured(
        engine.version,
        target[0],
        layers,
        case.head.aux_layers,
        case.target.attention_layers,
        declared=target[0] in engine.eagle3_targets,
        graphs=all(flag.name != "--disable-cuda-graph" for flag in UNLISTED.parse((*engine.args, *case.arm.args))),
    )


def _release(case: Speculation) -> str:
    return f"SGLang {case.server.engine.version}"


RULES: tuple[Rule[Speculation], ...] = (
    Rule(
        id="aux-layers-are-there",
        why="an EAGLE3 head reads the states of layers that the target must have",
        check=aux_layers_are_there,
    ),
    Rule(
        id="aux-layers-attend",
        why="a layer without attention has the state of the whole text, which the makers of the head of "
        "Qwen3-Coder-Next found to be of no use to one (their article; not measured by us)",
        check=aux_layers_attend,
    ),
    Rule(
        id=FOREIGN,
        why="a head that is given other states than those it was trained on is served all the same, and low acceptance "
        "is expected of it",
        check=aux_layers_are_the_heads,
    ),
)
