"""Rules on a draft head and its target: do they fit each other, and does the engine support the head."""

from collections.abc import Iterator
from dataclasses import replace

from paceline.engines import ENGINES
from paceline.engines.model_rules import (
    HIDDEN_STATE_READERS,
    LAYERS_OF_THE_TARGET,
    TRAINED_FOR_IT,
    VOCABULARIES,
    VOCABULARIES_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    listed,
    of_head,
    vocabularies_agree,
)

MTP_CLASSES = {
    "BailingMoeForCausalLMNextN": "bailing_moe_nextn.py:194",
    "DeepseekV3ForCausalLMNextN": "deepseek_nextn.py:248",
    "DeepseekV4ForCausalLMNextN": "deepseek_v4_nextn.py:243",
    "Dots3NoteForCausalLMNextN": "dots3_nextn.py:12",
    "Ernie4_5_MoeForCausalLMMTP": "ernie4_eagle.py:101",
    "ExaoneMoEForCausalLMMTP": "exaone_moe_mtp.py:38",
    "Gemma4AssistantForCausalLM": "gemma4_mtp.py:59",
    "Gemma4UnifiedAssistantForCausalLM": "gemma4_mtp.py:400",
    "GigaChat35ForCausalLMNextN": "gigachat35_mtp.py:134",
    "Glm4MoeForCausalLMNextN": "glm4_moe_nextn.py:120",
    "Glm4MoeLiteForCausalLMNextN": "glm4_moe_lite_nextn.py:136",
    "Glm5NextForConditionalGenerationNextN": "glm5_next_nextn.py:24",
    "GlmMoeDsaForCausalLMNextN": "glm4_moe.py:1288",
    "GlmOcrForConditionalGenerationNextN": "glm_ocr_nextn.py:128",
    "HYV3ForCausalLMNextN": "hunyuan_v3_nextn.py:117",
    "HYV4ForCausalLMNextN": "hunyuan_v4_nextn.py:175",
    "IQuestQ1MTP": "iquest_q1_mtp.py:139",
    "InklingForConditionalGenerationMTP": "inkling.py:1771",
    "LongcatFlashForCausalLMNextN": "longcat_flash_nextn.py:282",
    "MiMoMTP": "mimo_mtp.py:87",
    "MiMoV2MTP": "mimo_v2_nextn.py:236",
    "NemotronHForCausalLMMTP": "nemotron_h_mtp.py:317",
    "Qwen3MoeForCausalLMMTP": "qwen3_moe_mtp.py:38",
    "Qwen3NextForCausalLMMTP": "qwen3_next_mtp.py:40",
    "Qwen3_5ForCausalLMMTP": "qwen3_5_mtp.py:94",
    "Qwen4ExpForCausalLMMTP": "qwen4_exp_mtp.py:27",
    "Step3p5MTP": "step3p5_mtp.py:144",
}
"""Class of MTP layers with their own repository, and of assistants → its file in SGLang 0.5.23 (models/). vLLM 0.33.0
reads an assistant of Gemma 4 as MTP, too, whatever the method says (config/speculative.py)."""
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
    **dict.fromkeys(MTP_CLASSES, "MTP"),
}
"""Class of a head → its algorithm (model registry of SGLang 0.5.23)."""
HEADS_OF = {
    "Qwen2ForCausalLM": "Qwen2ForCausalLMEagle",  # qwen2_eagle.py:151
    "MistralForCausalLM": "MistralForCausalLMEagle",  # mistral_eagle.py:210
}
EAGLE_CLASS, EAGLE3_CLASS = "LlamaForCausalLMEagle", "LlamaForCausalLMEagle3"
"""The first heads declare their target's class; SGLang needs the head's: one of HEADS_OF, or these."""

_MANY = 8
"""A number of layers that no head has."""


def target_takes_eagle3(pair: PairFacts) -> Iterator[ModelFinding]:
    engine, architectures = pair.server.engine, pair.target.architectures
    adapter = ENGINES[engine.type]
    if pair.draft.algorithm != "EAGLE3" or not architectures:
        return
    hooked, target = adapter.eagle3_targets(engine.version), architectures[0]
    if hooked is None or target in hooked or target in engine.eagle3_targets:
        return
    first = adapter.eagle3_since(target)
    way_out = f"first seen in {first}: set engine.version and engine.image to it or later" if first else "name another"
    yield ModelFinding(
        path="engine.version",
        problem=f"{pair.release} has no EAGLE3 hook for {target}",
        fix=f"{way_out}, or declare spec.engine.eagle3Targets: [{target}] if the image adds it",
    )


def algorithm_fits_head(pair: PairFacts) -> Iterator[ModelFinding]:
    for architecture in pair.head.architectures[:1]:
        made_for, chosen = ALGORITHM_OF.get(architecture), pair.draft.algorithm
        if made_for and made_for != ("MTP" if chosen in LAYERS_OF_THE_TARGET else chosen):
            problem = f"{pair.draft.algorithm} with a head of class {architecture}"
            fix = f"set the algorithm to {made_for}, or name another head"
            why = "layers for further tokens and assistants are MTP, whatever an engine calls it"
            yield replace(of_head(pair, "algorithm", problem, fix), why=why if made_for == "MTP" else "")


def head_is_no_full_model(pair: PairFacts) -> Iterator[ModelFinding]:
    draft, target, engine = pair.draft, pair.server.target, pair.server.engine
    if draft.model is None or draft.algorithm in LAYERS_OF_THE_TARGET:
        return
    layers, (made_of, *_) = pair.head.num_hidden_layers or 0, (*pair.head.architectures, "")
    whole_models = ENGINES[engine.type].whole_models(engine.version)
    is_target = made_of in pair.target.architectures[:1] and layers >= _MANY
    whole = made_of and made_of not in ALGORITHM_OF and (is_target or made_of in whole_models)
    alone = draft.algorithm == "STANDALONE"
    fix, why = "name a draft head; a separate small model drafts with STANDALONE", ""
    if draft.model.source == target.source:
        problem = f"{target.source} is to draft for itself"
        if pair.target.nextn_layers or pair.target.has_nextn:
            fix, why = "write algorithm: MTP and no source", "it has layers for that, which the engine drafts with"
    elif whole and ("fc" in pair.head.weight_sizes or (layers == 1 and not alone)):
        problem = f"{draft.model.source} announces the class {made_of}, a whole model's"
        is_newer = draft.algorithm == "EAGLE3"
        named = EAGLE3_CLASS if is_newer else HEADS_OF.get(made_of, EAGLE_CLASS)
        also = "" if draft.algorithm in HIDDEN_STATE_READERS else ", and set the algorithm to EAGLE"
        why = "the engine loads that class and skips what only a head has (SGLang 0.5.23, models/llama.py:779)"
        fix = f"if it is a head, name a copy whose config.json has architectures [{named}]{also}"
    elif whole and not alone:
        problem = f"{draft.model.source} is a whole {made_of} of {layers} layers, not a head for {draft.algorithm}"
    else:
        return
    yield replace(of_head(pair, "source", problem, fix), why=why)


def hidden_sizes_agree(pair: PairFacts) -> Iterator[ModelFinding]:
    made_for, has = pair.head.target_hidden_size or pair.head.hidden_size, pair.target.hidden_size
    other = ALGORITHM_OF.get(next(iter(pair.head.architectures), ""), pair.draft.algorithm) != pair.draft.algorithm
    if pair.draft.algorithm in HIDDEN_STATE_READERS and not other and made_for and has and made_for != has:
        yield of_head(
            pair, "source", f"{pair.name} reads hidden states of {made_for}, the target's have {has}", TRAINED_FOR_IT
        )


def draft_tokens_are_mapped(pair: PairFacts) -> Iterator[ModelFinding]:
    some, theirs = pair.head.draft_vocab_size, pair.target.vocab_size
    if pair.draft.algorithm == "EAGLE3" and some and theirs and some < theirs and pair.head.has_d2t is False:
        problem = f"{pair.name} proposes from {some} of {theirs} tokens, but none of its files has the tensor d2t"
        yield of_head(pair, "source", problem, "name a head whose safetensors have d2t, or export this one with it")


def weights_are_there(pair: PairFacts) -> Iterator[ModelFinding]:
    if pair.head.lacks:
        lacks, reader = listed(pair.head.lacks), pair.head.architectures[0]
        problem = f"{pair.name} has no weights named {lacks}, which {reader} reads"
        yield of_head(pair, "source", problem, "name a head whose weights have these names, or rename its weights")


def blocks_fit_head(pair: PairFacts) -> Iterator[ModelFinding]:
    head, block_size, layers = pair.head, pair.arm.block_size, pair.target.num_hidden_layers
    if pair.draft.algorithm == "DSPARK" and head.architectures and not head.markov_rank:
        problem = f"{pair.name} has markov_rank {head.markov_rank or 'not set'} in its config.json"
        yield of_head(pair, "source", problem, "name a head whose markov_rank is above 0")
    if pair.draft.algorithm == "DFLASH" and block_size and head.block_size and block_size > head.block_size:
        yield ModelFinding(
            arm=pair.arm.name,
            path="blockSize",
            problem=f"blockSize {block_size} with a head that was trained for {head.block_size}",
            fix=f"set it to {head.block_size} or less",
            blocks=False,
        )
    if pair.draft.algorithm in ("DFLASH", "DSPARK") and layers and (head.num_target_layers or layers) != layers:
        problem = f"{pair.name} was trained for a target of {head.num_target_layers} layers, this one has {layers}"
        yield of_head(pair, "source", problem, TRAINED_FOR_IT, blocks=False)


RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(
        id="target-takes-eagle3",
        why="an EAGLE3 head reads hidden states that the target's class must provide; without them the server loads "
        "the weights and dies",
        check=target_takes_eagle3,
    ),
    ModelRule(
        id="algorithm-fits-head",
        why="a head's class is made for one algorithm; the engine does not check this and fails or drafts badly",
        check=algorithm_fits_head,
    ),
    ModelRule(
        id="head-is-no-full-model",
        why="a draft must be much cheaper than its target, and these algorithms drive only heads; the engine "
        "does not check this (without a draft path the target is its own draft) and dies in the worker",
        check=head_is_no_full_model,
    ),
    ModelRule(
        id="hidden-sizes-agree",
        why="a head takes the target's hidden states as its input; with another size the server dies at start",
        check=hidden_sizes_agree,
    ),
    ModelRule(
        id=VOCABULARIES,
        why=VOCABULARIES_WHY,
        check=vocabularies_agree,
    ),
    ModelRule(
        id="draft-tokens-are-mapped",
        why="without it the draft's ids are taken for the target's: the server is healthy and accepts nothing",
        check=draft_tokens_are_mapped,
    ),
    ModelRule(
        id="weights-are-there",
        why="the engine skips weights that it does not know and leaves its own random: the server is healthy "
        "and accepts nothing",
        check=weights_are_there,
    ),
    ModelRule(
        id="blocks-fit-head",
        why="a block head is trained for one block size, one target and one rank; DSPARK refuses rank 0 at start, the "
        "others cost acceptance",
        check=blocks_fit_head,
        each_candidate=True,
    ),
)
