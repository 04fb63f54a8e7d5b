"""How vLLM reads a head, judged by its files (0.33.0; paths below `vllm/`)."""

from collections.abc import Iterator

from paceline.engines.arguments import flag_value
from paceline.engines.bounds import parse_number
from paceline.engines.model_rules import (
    AUX_STATES,
    AUX_STATES_WHY,
    EXPORTED,
    LAYERS_OF_THE_TARGET,
    SPECULATOR_IS_READ,
    SPECULATOR_IS_READ_WHY,
    USUAL_STATES,
    VOCABULARIES,
    VOCABULARIES_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    aux_states,
    listed,
    of_head,
    reads_states,
    vocabularies_agree,
)
from paceline.engines.vllm.arguments import FLAGS, LISTED_VERSION
from paceline.engines.vllm.capabilities import CAPABILITIES
from paceline.engines.vllm.keys import settings
from paceline.engines.vllm.rules import draft_tokens
from paceline.engines.vllm.runner import TO_THE_FIRST, is_first

PARALLEL = "peagle"
"""Type of a speculator that drafts in parallel, which only the first runner supports (config/vllm.py:3072)."""
NO_READER = "vLLM has no reader for it (transformers_utils/configs/speculators/algos.py)"


def _speculator_is_read(pair: PairFacts) -> Iterator[ModelFinding]:
    """Other releases may read other types."""
    type_ = pair.head.speculators
    if type_ is None or EXPORTED in pair.head.architectures or type_ in CAPABILITIES.speculators:
        return
    problem, fix = (
        f"{pair.name} is a speculator of type {type_}",
        f"name one of type {listed(CAPABILITIES.speculators)}",
    )
    if type_ == PARALLEL and is_first(pair.server):
        return
    if type_ == PARALLEL:
        problem, fix = f"{problem}, which vLLM's second model runner does not drive", TO_THE_FIRST
    else:
        problem = f"{problem}: {NO_READER}"
    yield of_head(pair, "source", problem, fix, blocks=pair.server.engine.version == LISTED_VERSION)


def aux_states_are_read(pair: PairFacts) -> Iterator[ModelFinding]:
    """vLLM does not pass on the number from a head in the speculators format (algos.py: update_eagle3)."""
    return reads_states(pair, USUAL_STATES if pair.head.speculators else aux_states(pair.head))


def vocabularies_may_differ(pair: PairFacts) -> Iterator[ModelFinding]:
    """If the candidate says so, tokens are translated, which only the first runner supports (`runner`)."""
    if not settings(pair.arm).get("use_heterogeneous_vocab"):
        yield from vocabularies_agree(pair)


def context_stays(pair: PairFacts) -> Iterator[ModelFinding]:
    """Concerns only a small independent model: a head's positions are raised to the target's
    (config/speculative.py:2151)."""
    given = parse_number(flag_value(pair.server.engine.args, "--max-model-len", FLAGS) or "")
    ours, theirs = pair.head.max_position_embeddings, given or pair.target.max_position_embeddings
    if pair.draft.algorithm == "STANDALONE" and ours and theirs and ours < theirs and not is_first(pair.server):
        yield ModelFinding(
            path="engine.args",
            problem=f"{pair.name} has {ours} positions, the servers {theirs}",
            fix=f"write --max-model-len={ours}, for all arms",
        )


def layers_divide(pair: PairFacts) -> Iterator[ModelFinding]:
    layers, tokens = pair.target.nextn_layers or 0, draft_tokens(pair.arm)
    shape = "tree" if pair.arm.tree else "adaptive"
    if (
        pair.draft.algorithm in LAYERS_OF_THE_TARGET
        and pair.draft.model is None
        and tokens > layers > 1
        and tokens % layers
    ):
        yield ModelFinding(
            arm=pair.arm.name,
            path="depthByBatchSize" if pair.arm.depth_by_batch_size else f"{shape}.numSteps",
            problem=f"{tokens} tokens from a target with {layers} layers for further tokens",
            fix=f"take a multiple of {layers}",
        )


MODEL_RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(id=SPECULATOR_IS_READ, why=SPECULATOR_IS_READ_WHY, check=_speculator_is_read),
    ModelRule(id=AUX_STATES, why=AUX_STATES_WHY, check=aux_states_are_read),
    ModelRule(id=VOCABULARIES, why=VOCABULARIES_WHY, check=vocabularies_may_differ, each_candidate=True),
    ModelRule(
        id="context-stays",
        why="the second model runner lowers the candidate's context to its draft's, and long requests get 400 once it "
        "is promoted (config/vllm.py: _limit_max_model_len_to_draft)",
        check=context_stays,
    ),
    ModelRule(
        id="layers-divide-tokens",
        why="vLLM exits at start: num_speculative_tokens must be divisible by n_predict (config/speculative.py)",
        check=layers_divide,
        each_candidate=True,
    ),
)
