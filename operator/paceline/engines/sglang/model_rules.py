"""How SGLang reads a head and its target, judged by their files (0.5.23, tried or read)."""

from collections.abc import Iterator

from paceline.engines.arguments import UNLISTED, flag_value
from paceline.engines.model_rules import (
    HIDDEN_STATE_READERS,
    LAYERS_OF_THE_TARGET,
    ModelFinding,
    ModelRule,
    PairFacts,
    of_head,
)
from paceline.engines.release import release
from paceline.engines.sglang import backends, layer_rules
from paceline.engines.sglang.candidate import YES, variable
from paceline.engines.sglang.flags_by_release import drafts_since, is_in
from paceline.engines.sglang.variables import LONGER
from paceline.engines.sglang.versions import is_newer

UNQUANTISED = "--speculative-draft-model-quantization=unquant"
SAMPLES_BY_REJECTION = ("--speculative-use-rejection-sampling", "--speculative-use-block-verification")
STRATEGY, NO_BUFFER = "--mamba-scheduler-strategy", [["0.5.9", "0.5.13.post1"]]
ASSISTANTS = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")
ASSISTANTS_SINCE = (0, 5, 12)
"""The first release with models/gemma4_mtp.py."""


def positions_reach(pair: PairFacts) -> Iterator[ModelFinding]:
    ours, theirs = pair.head.max_position_embeddings, pair.target.max_position_embeddings
    context = flag_value(pair.server.engine.args, "--context-length") or ""
    theirs = int(context) if context.isdecimal() else theirs
    if not (ours and theirs and ours < theirs):
        return
    problem, shorter = f"{pair.name} has {ours} positions, the target {theirs}", "set a shorter --context-length"
    entry = variable(pair.server, LONGER)
    if entry and "value" in entry and str(entry["value"]).lower() not in YES:
        problem = f"{problem}, and {entry['name']} is {entry['value']!r}"
        yield ModelFinding(path="engine.env", problem=problem, fix=f"remove the variable, or {shorter} in engine.args")
    else:
        yield of_head(pair, "source", problem, f"leave it, or {shorter} in engine.args", blocks=False)


def assistant_is_frozen(pair: PairFacts) -> Iterator[ModelFinding]:
    """SGLang replaces MTP with FROZEN_KV_MTP for such a draft (speculative_hook.py:109)."""
    made_of, release_, arm = next(iter(pair.head.architectures), ""), release(pair.server.engine.version), pair.arm
    if made_of not in ASSISTANTS or pair.draft.algorithm not in LAYERS_OF_THE_TARGET:
        return
    args, moving = pair.server.engine.args, arm.moving_depth
    backend = flag_value(arm.args, backends.OF_THE_DRAFT) or next(
        filter(None, (flag_value(args, flag) for flag in ("--decode-attention-backend", "--attention-backend"))), ""
    )
    if release_ and release_ < ASSISTANTS_SINCE:
        problem = f"{pair.release} does not draft with {made_of}"
        yield ModelFinding(path="engine.version", problem=problem, fix="take 0.5.12 or later")
    if arm.tree and arm.tree.top_k > 1 and backend not in ("", "triton", "trtllm_mha"):
        problem = f"topK {arm.tree.top_k} with a draft of class {made_of} on {backend}"
        fix = "write 1, or --attention-backend=triton in spec.engine.args"
        yield ModelFinding(arm=arm.name, path="tree.topK", problem=problem, fix=fix)
    if moving:
        problem, fix = f"a draft of class {made_of} has one depth", "name a tree"
        yield ModelFinding(arm=arm.name, path=moving, problem=problem, fix=fix)
    for flag in (flag for flag in SAMPLES_BY_REJECTION if flag in arm.args):
        problem = f"{flag} with a draft of class {made_of}"
        yield ModelFinding(arm=arm.name, path="args", problem=problem, fix="remove it")
    for flag in {"--enable-lora", "--lora-paths"} & {parsed.name for parsed in UNLISTED.parse(args)}:
        problem = f"{flag} with a draft of class {made_of}"
        yield ModelFinding(path="engine.args", problem=problem, fix="remove it, or take another algorithm")


def own_layers_are_drafted(pair: PairFacts) -> Iterator[ModelFinding]:
    version, made_of = pair.server.engine.version, next(iter(pair.target.architectures), "")
    by_itself = pair.draft.model is None or pair.draft.model.source == pair.server.target.source
    if pair.draft.algorithm not in LAYERS_OF_THE_TARGET or not by_itself or is_newer(version):
        return
    if first := drafts_since(made_of, version):
        problem = f"{pair.release} does not draft with layers of a {made_of}"
        yield of_head(pair, "algorithm", problem, f"take {first} or later, or another algorithm")


def hybrids_need_a_strategy(pair: PairFacts) -> Iterator[ModelFinding]:
    """Hybrids with gated delta networks keep states in the radix cache; these releases speculate only with another
    strategy, or without that cache."""
    args, version = pair.server.engine.args, pair.server.engine.version
    if pair.target.state_bytes is None or is_newer(version) or not is_in(version, NO_BUFFER):
        return
    if "--disable-radix-cache" not in args and flag_value(args, STRATEGY) != "extra_buffer":
        problem = f"{pair.release} does not speculate with {pair.server.target.source} and the default radix cache"
        yield ModelFinding(
            path="engine.args", problem=problem, fix=f"add {STRATEGY}=extra_buffer, or --disable-radix-cache"
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
        problem = f"--quantization {method} in spec.engine.args, but {pair.name} is not quantised"
        fix = f"add {UNQUANTISED} here if the head should stay as it is"
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
        id="assistant-is-frozen",
        why="such a draft reads the target's cache and has none of its own, which some options rule out: the "
        "server refuses to start, or keeps one depth (frozen_kv_mtp_worker_v2.py:259, "
        "speculative_hook.py:1210, lora_hook.py:240, adaptive_spec_params.py:65)",
        check=assistant_is_frozen,
        each_candidate=True,
    ),
    ModelRule(
        id="own-layers-are-drafted",
        why="it loads the whole target again as the draft, but has no memory for it (configs/model_config.py, "
        "_config_draft_model; sglang#20809)",
        check=own_layers_are_drafted,
    ),
    ModelRule(
        id="hybrids-need-a-strategy",
        why="the server exits: not compatible with radix cache when using no_buffer (server_args.py:2206 of "
        "0.5.10, :2568 of 0.5.12); 0.5.9 turns the cache off for such arms alone (:1764), so they could not "
        "be compared",
        check=hybrids_need_a_strategy,
    ),
    ModelRule(
        id="dtypes-agree",
        why="each model keeps its own type, and the first draft step multiplies the two: the server dies",
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
