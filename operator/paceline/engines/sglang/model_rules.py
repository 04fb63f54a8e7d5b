"""What SGLang makes of a head and its target, by what their files show (0.5.23, tried or read)."""

from collections.abc import Iterator

from paceline.engines.arguments import flag_value
from paceline.engines.model_rules import HIDDEN_STATE_READERS, ModelFinding, ModelRule, PairFacts, of_head
from paceline.engines.sglang import backends, layer_rules

UNQUANTISED = "--speculative-draft-model-quantization=unquant"
SAMPLES_BY_REJECTION = ("--speculative-use-rejection-sampling", "--speculative-use-block-verification")


def positions_reach(pair: PairFacts) -> Iterator[ModelFinding]:
    ours, theirs = pair.head.max_position_embeddings, pair.target.max_position_embeddings
    if ours and theirs and ours < theirs:
        problem = f"{pair.name} has {ours} positions, the target {theirs}"
        yield of_head(
            pair, "source", problem, "leave it so, or name a shorter --context-length in engine.args", blocks=False
        )


def dtypes_agree(pair: PairFacts) -> Iterator[ModelFinding]:
    ours, theirs, args = pair.head.dtype, pair.target.dtype, pair.server.engine.args
    if pair.draft.algorithm not in HIDDEN_STATE_READERS:
        return
    if ours and theirs and ours != theirs and flag_value(args, "--dtype") in (None, "auto"):
        problem = f"{pair.name} is {ours}, the target {theirs}, and --dtype is not given"
        yield ModelFinding(path="engine.args", problem=problem, fix=f"add --dtype={theirs}")


def quantization_is_not_inherited(pair: PairFacts) -> Iterator[ModelFinding]:
    method = flag_value(pair.server.engine.args, "--quantization")
    if not pair.draft.model or not method or pair.head.quantization is not None:
        return
    if flag_value(pair.arm.args, UNQUANTISED.partition("=")[0]) is None:
        problem = f"--quantization {method} in spec.engine.args, and {pair.name} is not quantised"
        fix = f"add {UNQUANTISED} here where the head should stay as it is"
        yield ModelFinding(arm=pair.arm.name, path="args", problem=problem, fix=fix, blocks=False)


def rejection_sampling_needs_one_vocabulary(pair: PairFacts) -> Iterator[ModelFinding]:
    some, theirs = pair.head.draft_vocab_size, pair.target.vocab_size
    flags = [flag for flag in SAMPLES_BY_REJECTION if flag in pair.arm.args]
    if flags and some and theirs and some < theirs and pair.draft.algorithm in HIDDEN_STATE_READERS:
        problem = f"{flags[0]} with a head that proposes from {some} of {theirs} tokens"
        yield ModelFinding(
            arm=pair.arm.name, path="args", problem=problem, fix=f"remove {flags[0]}, or name another head"
        )


MODEL_RULES: tuple[ModelRule[PairFacts], ...] = (
    *backends.MODEL_RULES,
    ModelRule(
        id="positions-reach",
        why="the engine refuses such a head without SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, which Paceline sets; "
        "beyond the head's positions fewer drafts may be accepted",
        check=positions_reach,
    ),
    ModelRule(
        id="dtypes-agree",
        why="each model takes its own type, and the first draft step multiplies the two: the server dies",
        check=dtypes_agree,
    ),
    ModelRule(
        id="quantization-is-not-inherited",
        why="a head inherits the flag and is quantised while it is loaded, which may cost acceptance",
        check=quantization_is_not_inherited,
        each_candidate=True,
    ),
    ModelRule(
        id="rejection-sampling-needs-one-vocabulary",
        why="rejection sampling compares the two distributions token by token; the engine refuses to start "
        "(eagle_worker_v2.py:260)",
        check=rejection_sampling_needs_one_vocabulary,
        each_candidate=True,
    ),
    *layer_rules.RULES,
)
