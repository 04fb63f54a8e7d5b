"""Rules on a draft head and its target: does the one fit the other, and can the engine drive it."""

from collections.abc import Iterator

from paceline.engines import ENGINES
from paceline.engines.arguments import flag_value
from paceline.engines.sglang.versions import KNOWN
from paceline.preflight.cases import HIDDEN_STATE_READERS, OF_THE_TARGET, Rule, Said, Speculation, listed, of_head

TRAINED_FOR_IT = "name a head that was trained for this target"

# The algorithm a head's class is made for (facts of SGLang 0.5.23's model registry).
ALGORITHM_OF = {
    "LlamaForCausalLMEagle3": "EAGLE3",
    "Eagle3LlamaForCausalLM": "EAGLE3",
    "Eagle3DeepseekV2ForCausalLM": "EAGLE3",
    "LlamaForCausalLMEagle": "EAGLE",
    "Qwen2ForCausalLMEagle": "EAGLE",
    "MistralForCausalLMEagle": "EAGLE",
    "MistralLarge3ForCausalLMEagle": "EAGLE",
    "DFlashDraftModel": "DFLASH",
    "DFlash2DraftModel": "DFLASH",
    "DFlashLagunaForCausalLM": "DFLASH",
    "MuseGlimmerAssistantModel": "DFLASH",
    "DSparkDraftModel": "DSPARK",
    "Qwen3DSparkModel": "DSPARK",
    "LingDSparkModel": "DSPARK",
    "DSparkMiniMaxDraftModel": "DSPARK",
    "Lfm2DSparkDraftModel": "DSPARK",
    "DeepseekV4ForCausalLMDSpark": "DSPARK",
}

UNQUANTISED = "--speculative-draft-model-quantization=unquant"
SAMPLES_BY_REJECTION = ("--speculative-use-rejection-sampling", "--speculative-use-block-verification")

MANY = 8
"""Layers; no head has as many."""

# Backends whose multi-step drafts over a latent cache branch; flashmla, flashinfer and trtllm_mla refuse at start
# (flashmla_backend.py:608, flashinfer_mla_backend.py:1196, trtllm_mla_backend.py:1768).
MLA_BRANCHES = ("triton", "fa3")


def target_takes_eagle3(case: Speculation) -> Iterator[Said]:
    engine, architectures = case.server.engine, case.target.architectures
    adapter = ENGINES.get(engine.name)
    if case.draft.algorithm != "EAGLE3" or not architectures or adapter is None:
        return
    known, target = adapter.eagle3_targets(engine.version), architectures[0]
    if known is None or target in known or target in engine.eagle3_targets:
        return
    later = (row.version for row in KNOWN if target in (adapter.eagle3_targets(row.version) or ()))
    first = next(later, None) if engine.name == "SGLang" else None
    seen = f"first seen in {first}: set engine.version and engine.image to it or later" if first else "name another"
    yield Said(
        path="engine.version",
        found=f"{engine.name} {engine.version} has no EAGLE3 hook for {target}",
        fix=f"{seen}, or declare spec.engine.eagle3Targets: [{target}] if the image adds it",
    )


def algorithm_fits_head(case: Speculation) -> Iterator[Said]:
    for architecture in case.head.architectures[:1]:
        made_for = ALGORITHM_OF.get(architecture)
        if made_for and made_for != case.draft.algorithm:
            found = f"{case.draft.algorithm} with a head of class {architecture}"
            fix = f"set the algorithm to {made_for}, or name another head"
            yield of_head(case, "algorithm", found, fix)


def head_is_no_full_model(case: Speculation) -> Iterator[Said]:
    draft, target, engine = case.draft, case.server.target, case.server.engine
    if draft.model is None or draft.algorithm in OF_THE_TARGET:
        return
    layers, made_of = case.head.num_hidden_layers or 0, case.head.architectures[:1]
    served = ENGINES[engine.name].eagle3_targets(engine.version) if engine.name == "SGLang" else None
    is_target = made_of == case.target.architectures[:1] and layers >= MANY
    whole = made_of and made_of[0] not in ALGORITHM_OF and (is_target or made_of[0] in (served or ()))
    if draft.model.source == target.source:
        found = f"{target.source} is to draft for itself"
    elif whole and draft.algorithm != "STANDALONE":
        found = f"{draft.model.source} is a whole {made_of[0]} of {layers} layers, no head for {draft.algorithm}"
    else:
        return
    yield of_head(case, "source", found, "name a draft head; a small model of its own drafts with STANDALONE")


def hidden_sizes_agree(case: Speculation) -> Iterator[Said]:
    made_for, has = case.head.target_hidden_size or case.head.hidden_size, case.target.hidden_size
    if case.draft.algorithm in HIDDEN_STATE_READERS and made_for and has and made_for != has:
        yield of_head(
            case, "source", f"{case.name} reads hidden states of {made_for}, the target's have {has}", TRAINED_FOR_IT
        )


def vocabularies_agree(case: Speculation) -> Iterator[Said]:
    """`vocab_size` of a head is its target's; what it proposes from (`draft_vocab_size`) is a part of that.

    Vocabularies are padded, and an EAGLE head works with its target's embedding: there 1 % is no difference.
    """
    ours, some, theirs = case.head.vocab_size, case.head.draft_vocab_size, case.target.vocab_size
    if not theirs:
        return
    padding = theirs / 100 if case.draft.algorithm in HIDDEN_STATE_READERS else 0
    if ours and abs(ours - theirs) > padding:
        found = f"{case.name} has a vocabulary of {ours}, the target of {theirs}"
    elif some and some > theirs:
        found = f"{case.name} proposes from {some} tokens, the target knows {theirs}"
    else:
        return
    yield of_head(case, "source", found, TRAINED_FOR_IT)


def draft_tokens_are_mapped(case: Speculation) -> Iterator[Said]:
    some, theirs = case.head.draft_vocab_size, case.target.vocab_size
    if case.draft.algorithm == "EAGLE3" and some and theirs and some < theirs and case.head.has_d2t is False:
        found = f"{case.name} proposes from {some} of {theirs} tokens and no file of it has the tensor d2t"
        yield of_head(case, "source", found, "name a head whose safetensors have d2t, or export this one with it")


def weights_are_there(case: Speculation) -> Iterator[Said]:
    if case.head.lacks:
        found = f"{case.name} has no weights named {listed(case.head.lacks)}, which {case.head.architectures[0]} reads"
        yield of_head(case, "source", found, "name a head in SGLang's format, or rename its weights")


def mla_drafts_chains(case: Speculation) -> Iterator[Said]:
    tree, args = case.arm.tree, case.server.engine.args
    if case.target.kv_lora_rank is None or tree is None or tree.top_k == 1 or case.server.engine.name != "SGLang":
        return
    backend = flag_value(args, "--attention-backend") or flag_value(args, "--decode-attention-backend")
    if backend not in MLA_BRANCHES:
        yield Said(
            arm=case.arm.name,
            path="tree.topK",
            found=f"topK {tree.top_k} on a target with latent attention (MLA), backend {backend or 'not chosen'}",
            fix="set topK to 1 and numDraftTokens to numSteps + 1, or add --attention-backend=triton to "
            "spec.engine.args",
        )


def nextn_layers_are_there(case: Speculation) -> Iterator[Said]:
    source = case.draft.model and case.draft.model.source
    its_own = case.draft.algorithm in OF_THE_TARGET and source in (None, case.server.target.source)
    if its_own and case.target.nextn is False:
        found = f"{case.draft.algorithm} without a source, and {case.server.target.source} has no such layers"
        yield of_head(case, "algorithm", found, "name a head in source, or use another algorithm")


def blocks_fit_head(case: Speculation) -> Iterator[Said]:
    head, asked, layers = case.head, case.arm.block_size, case.target.num_hidden_layers
    if case.draft.algorithm == "DSPARK" and head.architectures and not head.markov_rank:
        found = f"{case.name} has markov_rank {head.markov_rank or 'not set'} in its config.json"
        yield of_head(case, "source", found, "name a head whose markov_rank is above 0")
    if case.draft.algorithm == "DFLASH" and asked and head.block_size and asked > head.block_size:
        yield Said(
            arm=case.arm.name,
            path="blockSize",
            found=f"blockSize {asked} with a head that was trained for {head.block_size}",
            fix=f"set it to {head.block_size} or less",
            blocks=False,
        )
    if case.draft.algorithm in ("DFLASH", "DSPARK") and layers and (head.num_target_layers or layers) != layers:
        found = f"{case.name} was trained for a target of {head.num_target_layers} layers, this one has {layers}"
        yield of_head(case, "source", found, TRAINED_FOR_IT, blocks=False)


def positions_reach(case: Speculation) -> Iterator[Said]:
    ours, theirs = case.head.max_position_embeddings, case.target.max_position_embeddings
    if case.server.engine.name == "SGLang" and ours and theirs and ours < theirs:
        found = f"{case.name} has {ours} positions, the target {theirs}"
        yield of_head(
            case, "source", found, "leave it so, or name a shorter --context-length in engine.args", blocks=False
        )


def dtypes_agree(case: Speculation) -> Iterator[Said]:
    ours, theirs, args = case.head.dtype, case.target.dtype, case.server.engine.args
    if case.server.engine.name != "SGLang" or case.draft.algorithm not in HIDDEN_STATE_READERS:
        return
    if ours and theirs and ours != theirs and flag_value(args, "--dtype") in (None, "auto"):
        found = f"{case.name} is {ours}, the target {theirs}, and --dtype is not given"
        yield Said(path="engine.args", found=found, fix=f"add --dtype={theirs}")


def quantization_is_not_inherited(case: Speculation) -> Iterator[Said]:
    asked = flag_value(case.server.engine.args, "--quantization")
    if case.server.engine.name != "SGLang" or not case.draft.model or not asked or case.head.quantization is not None:
        return
    if flag_value(case.arm.args, UNQUANTISED.partition("=")[0]) is None:
        found = f"--quantization {asked} in spec.engine.args, and {case.name} is not quantised"
        fix = f"add {UNQUANTISED} here where the head should stay as it is"
        yield Said(arm=case.arm.name, path="args", found=found, fix=fix, blocks=False)


def rejection_sampling_needs_one_vocabulary(case: Speculation) -> Iterator[Said]:
    some, theirs = case.head.draft_vocab_size, case.target.vocab_size
    asked = [flag for flag in SAMPLES_BY_REJECTION if flag in case.arm.args]
    if asked and some and theirs and some < theirs and case.draft.algorithm in HIDDEN_STATE_READERS:
        found = f"{asked[0]} with a head that proposes from {some} of {theirs} tokens"
        yield Said(arm=case.arm.name, path="args", found=found, fix=f"remove {asked[0]}, or name another head")


RULES: tuple[Rule[Speculation], ...] = (
    Rule(
        id="target-takes-eagle3",
        why="a head of EAGLE3 reads hidden states that the target's class must hand out; without, the server loads the "
        "weights and dies",
        check=target_takes_eagle3,
    ),
    Rule(
        id="algorithm-fits-head",
        why="a head's class is made for one algorithm; the engine does not compare the two: it fails or drafts junk",
        check=algorithm_fits_head,
    ),
    Rule(
        id="head-is-no-full-model",
        why="a draft must be much cheaper than its target, and these algorithms drive heads alone; the engine does not "
        "check (no draft path: the target is its own draft) and dies in the worker",
        check=head_is_no_full_model,
    ),
    Rule(
        id="hidden-sizes-agree",
        why="a head takes the target's hidden states as its input; with another size the server dies at its start",
        check=hidden_sizes_agree,
    ),
    Rule(
        id="vocabularies-agree",
        why="token ids mean other words to the target: nothing would be accepted, or the server dies",
        check=vocabularies_agree,
    ),
    Rule(
        id="draft-tokens-are-mapped",
        why="without it the draft's ids are taken for the target's: the server is healthy and accepts nothing",
        check=draft_tokens_are_mapped,
    ),
    Rule(
        id="weights-are-there",
        why="the engine skips what it has no name for and leaves the rest random: the server is healthy and accepts "
        "nothing",
        check=weights_are_there,
    ),
    Rule(
        id="mla-drafts-chains",
        why="flashinfer, flashmla and trtllm_mla draft only chains over a latent cache and refuse at start",
        check=mla_drafts_chains,
    ),
    Rule(
        id="nextn-layers-are-there",
        why="it drafts with layers that the target's checkpoint must bring",
        check=nextn_layers_are_there,
    ),
    Rule(
        id="blocks-fit-head",
        why="a head of blocks is trained for one size, one target and a rank; DSPARK refuses rank 0 at start, the rest "
        "costs acceptance",
        check=blocks_fit_head,
    ),
    Rule(
        id="positions-reach",
        why="the engine refuses such a head without SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, which Paceline sets; "
        "beyond its positions the head may be accepted less",
        check=positions_reach,
    ),
    Rule(
        id="dtypes-agree",
        why="each takes its own type and the first draft step multiplies one by the other: the server dies",
        check=dtypes_agree,
    ),
    Rule(
        id="quantization-is-not-inherited",
        why="a head inherits the flag and is quantised while it is loaded, which may cost acceptance; Paceline leaves "
        "it so unless the candidate says otherwise",
        check=quantization_is_not_inherited,
    ),
    Rule(
        id="rejection-sampling-needs-one-vocabulary",
        why="it compares the two distributions word by word; the engine refuses to start (eagle_worker_v2.py:260)",
        check=rejection_sampling_needs_one_vocabulary,
    ),
)
