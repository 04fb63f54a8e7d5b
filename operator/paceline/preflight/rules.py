"""Facts of a target and its draft heads → what would go wrong, before any GPU is taken.

Every rule says nothing where a fact is missing. What the engine does in each case: SGLang 0.5.23, tried or read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Arm, Draft, Model, Server
from paceline.preflight.facts import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`rule` found `found` at `path` (below a deployment's spec); `fix` is what a person can change."""

    rule: str
    path: str
    found: str
    why: str
    fix: str
    blocks: bool = True
    """False: worth knowing, not a reason to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One of a pool's draft heads with the target it is to draft for; `path` is the first arm that names it."""

    path: str
    algorithm: str
    source: str
    draft: ModelFacts
    target: ModelFacts


# The algorithm a head's class is made for. The engine does not compare the two: with the wrong flag it dies at the
# first draft step, or serves with random weights in place of those it did not find.
ALGORITHM_OF = {
    "LlamaForCausalLMEagle3": "EAGLE3",
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
EAGLE = {"EAGLE", "EAGLE3"}


def findings(server: Server, arms: Sequence[Arm], facts: Mapping[str, ModelFacts]) -> tuple[Finding, ...]:
    """All findings about a pool's arms on this server; `facts` by source, as a fetch reports them."""
    found = [finding for rule in SERVER_RULES for finding in rule(server, facts)]
    pairs = tuple(_pairs(server.target, arms, facts))
    return (*found, *(finding for rule in PAIR_RULES for pair in pairs for finding in rule(pair)))


def _pairs(target: Model, arms: Sequence[Arm], facts: Mapping[str, ModelFacts]) -> Iterator[Pair]:
    """Each head once, though many arms may share it."""
    seen: set[Draft] = set()
    for arm in arms:
        draft = arm.draft
        if draft is None or draft.model is None or draft in seen:
            continue
        seen.add(draft)
        if draft.model.source in facts and target.source in facts:
            yield Pair(
                path=f"candidates[{arm.name}].draft",
                algorithm=draft.algorithm,
                source=draft.model.source,
                draft=facts[draft.model.source],
                target=facts[target.source],
            )


def heads_divide(server: Server, facts: Mapping[str, ModelFacts]) -> Iterator[Finding]:
    """Every GPU takes the same number of attention heads; key-value heads are split or repeated evenly."""
    target, size = facts.get(server.target.source), server.accelerator.tensor_parallel_size
    if target is None:
        return
    heads, keys = target.num_attention_heads, target.num_key_value_heads
    if heads and heads % size:
        found = f"{heads} attention heads on {size} GPUs"
    elif keys and keys % size and size % keys:
        found = f"{keys} key-value heads on {size} GPUs"
    else:
        return
    yield Finding(
        rule="tensor-parallel-divides-heads",
        path="accelerator.tensorParallelSize",
        found=found,
        why="the engine splits the heads evenly over the GPUs and refuses to start otherwise",
        fix=f"set it to a divisor of {heads or keys}",
    )


def algorithm_fits_head(pair: Pair) -> Iterator[Finding]:
    """The head's class is made for the algorithm that drives it."""
    for architecture in pair.draft.architectures[:1]:
        made_for = ALGORITHM_OF.get(architecture)
        if made_for and made_for != pair.algorithm:
            yield Finding(
                rule="algorithm-fits-head",
                path=f"{pair.path}.algorithm",
                found=f"{pair.algorithm} with a head of class {architecture}",
                why=f"that class is driven by {made_for}; the engine does not compare the two: it fails or drafts junk",
                fix=f"set the algorithm to {made_for}, or name another head",
            )


def hidden_sizes_agree(pair: Pair) -> Iterator[Finding]:
    """An EAGLE head reads the target's hidden states."""
    made_for = pair.draft.target_hidden_size or pair.draft.hidden_size
    if pair.algorithm in EAGLE and made_for and pair.target.hidden_size and made_for != pair.target.hidden_size:
        yield Finding(
            rule="hidden-sizes-agree",
            path=f"{pair.path}.source",
            found=f"{pair.source} reads hidden states of {made_for}, the target's have {pair.target.hidden_size}",
            why="a head takes the target's hidden states as its input; with another size the server dies at its start",
            fix="name a head that was trained for this target",
        )


def vocabularies_agree(pair: Pair) -> Iterator[Finding]:
    """`vocab_size` of a head is its target's; what it proposes from (`draft_vocab_size`) is a part of that.

    Vocabularies are padded, and an EAGLE head works with its target's embedding: there 1 % is no difference.
    """
    ours, some, theirs = pair.draft.vocab_size, pair.draft.draft_vocab_size, pair.target.vocab_size
    if not theirs:
        return
    padding = theirs / 100 if pair.algorithm in EAGLE else 0
    if ours and abs(ours - theirs) > padding:
        found = f"{pair.source} has a vocabulary of {ours}, the target of {theirs}"
    elif some and some > theirs:
        found = f"{pair.source} proposes from {some} tokens, the target knows {theirs}"
    else:
        return
    yield Finding(
        rule="vocabularies-agree",
        path=f"{pair.path}.source",
        found=found,
        why="token ids mean other words to the target: nothing would be accepted, or the server dies",
        fix="name a head that was trained for this target",
    )


def positions_reach(pair: Pair) -> Iterator[Finding]:
    """A head with fewer positions than the target's context: common, and Paceline sets the engine's override."""
    ours, theirs = pair.draft.max_position_embeddings, pair.target.max_position_embeddings
    if ours and theirs and ours < theirs:
        yield Finding(
            rule="positions-reach",
            path=f"{pair.path}.source",
            found=f"{pair.source} has {ours} positions, the target {theirs}",
            why="the engine refuses such a head without SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, which Paceline "
            f"sets; beyond {ours} tokens the head may be accepted less",
            fix="nothing, or a shorter --context-length",
            blocks=False,
        )


ServerRule = Callable[[Server, Mapping[str, ModelFacts]], Iterator[Finding]]
PairRule = Callable[[Pair], Iterator[Finding]]

SERVER_RULES: tuple[ServerRule, ...] = (heads_divide,)
PAIR_RULES: tuple[PairRule, ...] = (algorithm_fits_head, hidden_sizes_agree, vocabularies_agree, positions_reach)
