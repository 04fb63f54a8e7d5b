"""Rules that compare a head's files with its config.json.

The loaders of both engines assert sizes of embeddings and copy every other tensor into one of the declared size, so a
difference ends the server after the weights were read (SGLang 0.5.23, `layers/vocab_parallel_embedding.py:440`).
"""

from collections.abc import Iterator

from paceline.core import ModelFacts
from paceline.core.text import count
from paceline.engines.model_rules import (
    AUX_STATES,
    AUX_STATES_WHY,
    HIDDEN_STATE_READERS,
    LAYERS_OF_THE_TARGET,
    ModelFinding,
    ModelRule,
    PairFacts,
    aux_states,
    of_head,
    reads_states,
)

EXPORT = "name a head whose files and config.json agree, or export this one again"


def rows_are_announced(pair: PairFacts) -> Iterator[ModelFinding]:
    """Compares the rows of the output layer, the embedding and the map of draft tokens. Embeddings of whole models may
    be padded."""
    if pair.draft.algorithm not in HIDDEN_STATE_READERS:
        return
    some, all_ = pair.head.draft_vocab_size, pair.head.vocab_size
    for module, field, announced in (
        ("lm_head", "draft_vocab_size", some),
        ("d2t", "draft_vocab_size", some),
        ("embed_tokens", "vocab_size", all_),
    ):
        rows = pair.head.weight_sizes.get(module)
        if rows and announced and rows != announced:
            problem = f"{module} of {pair.name} has {rows} rows, but its config.json announces {field} {announced}"
            yield of_head(pair, "source", problem, EXPORT)


def two_states_are_read(pair: PairFacts) -> Iterator[ModelFinding]:
    """An MTP layer reads the last token's embedding and state."""
    columns, hidden = pair.head.weight_sizes.get("eh_proj"), pair.head.hidden_size
    if pair.draft.model and columns and hidden and columns != 2 * hidden:
        problem = f"eh_proj of {pair.name} reads {columns} numbers, but 2 x its hidden_size are {2 * hidden}"
        yield of_head(pair, "source", problem, EXPORT)


def scales_are_announced(pair: PairFacts) -> Iterator[ModelFinding]:
    if pair.draft.model and pair.head.quantized_weights and pair.head.quantization is None:
        problem = f"{pair.name} has quantised weights, but its config.json has no quantization_config"
        yield of_head(pair, "source", problem, EXPORT)


def has_a_class(pair: PairFacts) -> Iterator[ModelFinding]:
    if pair.draft.model and pair.head != ModelFacts() and not pair.head.architectures:
        problem = f"config.json of {pair.name} names no class"
        yield of_head(pair, "source", problem, "name a head whose config.json has architectures")


def layers_are_in_the_files(pair: PairFacts) -> Iterator[ModelFinding]:
    """If the tensors' names are known they decide: quantisers drop layers that config.json still declares."""
    target, source = pair.target, pair.server.target.source
    if pair.draft.algorithm not in LAYERS_OF_THE_TARGET:
        return
    if pair.draft.model is not None and pair.draft.model.source != source:
        return
    announced, there = target.nextn_layers, target.has_nextn
    if announced and there is False:
        problem = (
            f"config.json of {source} announces {count(announced, 'layer')} for further tokens, but none of its "
            "files has one"
        )
        fix = "name a checkpoint that kept them, or a head in source, or use another algorithm"
    elif there is False or (there is None and announced == 0):
        problem = f"{pair.draft.algorithm} drafts with layers for further tokens, but {source} has none"
        fix = "name a head in source, or use another algorithm"
    else:
        return
    yield of_head(pair, "algorithm", problem, fix)


RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(
        id=AUX_STATES,
        why=AUX_STATES_WHY,
        check=lambda pair: reads_states(pair, aux_states(pair.head)),
    ),
    ModelRule(
        id="rows-are-announced",
        why="the engine makes room for what config.json announces and dies when it loads another size",
        check=rows_are_announced,
    ),
    ModelRule(
        id="two-states-are-read",
        why="such a layer takes an embedding and a state side by side; the engine dies when it loads another "
        "size (deepseek_nextn.py:94)",
        check=two_states_are_read,
    ),
    ModelRule(
        id="scales-are-announced",
        why="the engine reads packed or scaled numbers as they stand and skips the scales: it dies, or accepts nothing",
        check=scales_are_announced,
    ),
    ModelRule(
        id="has-a-class",
        why="the engine takes the class of a model from there and exits with a Python error",
        check=has_a_class,
    ),
    ModelRule(
        id="nextn-layers-are-there",
        why="the algorithm drafts with layers that the target's checkpoint must have; if they are missing they "
        "stay random, and nothing is accepted",
        check=layers_are_in_the_files,
    ),
)
