"""Types of preflight's rules, which compare the models' files with what an engine reads.

They are in this package because engines have rules of their own (`Adapter.model_rules`); the shared rules are in
`paceline.preflight`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from paceline.core import Arm, Draft, ModelFacts, Server

HIDDEN_STATE_READERS = ("EAGLE", "EAGLE3")
"""Algorithms whose head reads the target's hidden states and embeddings."""
LAYERS_OF_THE_TARGET = ("NEXTN", "MTP")
"""Algorithms that may draft with the target's own layers."""
TRAINED_FOR_IT = "name a head that was trained for this target"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFinding:
    """A `problem` at `path`, and a `fix` that the user can make.

    `path` is below a deployment's spec, or below the candidate `arm` if there is one (as in `engines.Refusal`). A check
    leaves out `rule`, and `why` unless it has a better reason than the rule's.
    """

    rule: str = ""
    path: str
    problem: str
    why: str = ""
    fix: str
    arm: str | None = None
    blocks: bool = True
    """False for a note, which does not stop anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """A server with the models of all its arms. `target` is empty if nothing is known."""

    server: Server
    arms: tuple[Arm, ...]
    target: ModelFacts
    heads: Mapping[str, ModelFacts]
    """Source of a head → its facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFacts:
    """A candidate's head and its target; `head` is empty without a head, or if nothing is known of it."""

    server: Server
    arm: Arm
    draft: Draft
    target: ModelFacts
    head: ModelFacts

    @property
    def name(self) -> str:
        """The head's source, as in the spec."""
        return self.draft.model.source if self.draft.model else self.server.target.source

    @property
    def release(self) -> str:
        """Engine and version, for messages."""
        return f"{self.server.engine.type} {self.server.engine.version}"


_Subject = TypeVar("_Subject", PoolFacts, PairFacts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRule(Generic[_Subject]):
    """`why` ends the message of each finding; its sources in brackets are of SGLang 0.5.23 unless named.

    An engine's rule replaces the shared rule with the same `id`.
    """

    id: str
    why: str
    check: Callable[[_Subject], Iterator[ModelFinding]]
    each_candidate: bool = False
    """Whether the rule depends on a candidate's shape and arguments. Other rules depend only on the head, which
    candidates share, and check each head once."""

    def findings(self, subject: _Subject) -> Iterator[ModelFinding]:
        return (replace(each, rule=self.id, why=each.why or self.why) for each in self.check(subject))


def of_head(pair: PairFacts, field: str, problem: str, fix: str, *, blocks: bool = True) -> ModelFinding:
    """A finding on a field of the candidate's draft."""
    return ModelFinding(arm=pair.arm.name, path=f"draft.{field}", problem=problem, fix=fix, blocks=blocks)


def listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def layers_outside(pair: PairFacts) -> Iterator[ModelFinding]:
    """Layers named by a head that its target does not have."""
    named, layers = pair.head.aux_layers or pair.head.aux_layers_beside, pair.target.num_hidden_layers or 0
    if layers and (outside := [layer for layer in named if not 0 <= layer < layers]):
        problem = (
            f"{pair.name} reads layers that its target does not have: {listed(outside)} (it has 0 to {layers - 1})"
        )
        yield of_head(pair, "source", problem, TRAINED_FOR_LAYERS)


def layers_unnamed(pair: PairFacts, takes: Sequence[int]) -> Iterator[ModelFinding]:
    head = pair.head
    if pair.draft.algorithm == "EAGLE3" and head.architectures and not (head.aux_layers or head.aux_layers_beside):
        problem = f"{pair.name} names no layers, so {pair.release} takes states before layers {listed(takes)}"
        fix = "if it was trained on others, name a copy of it whose config.json names them in eagle_config"
        yield of_head(pair, "source", problem, fix, blocks=False)


def usual_layers(pair: PairFacts) -> Iterator[ModelFinding]:
    """Layers of vLLM 0.33.0 and most classes of SGLang."""
    if layers := pair.target.num_hidden_layers:
        yield from layers_unnamed(pair, (2, layers // 2, layers - 3))


UNNAMED_LAYERS = "aux-layers-are-named"
UNNAMED_LAYERS_WHY = "a head that was trained on other layers is served, but few of its drafts are accepted"
USUAL_STATES = 3
"""Hidden states that an EAGLE3 head reads if its config.json does not give the number (SGLang 0.5.23,
llama_eagle3.py:161; vLLM 0.33.0, llama_eagle3.py:221)."""


def aux_states(head: ModelFacts) -> int:
    """Number of hidden states for which the engine sizes the head's input."""
    return head.num_aux_hidden_states or len(head.aux_layers) or USUAL_STATES


def reads_states(pair: PairFacts, states: int) -> Iterator[ModelFinding]:
    """Checks the columns of fc: an EAGLE3 head reads `states` hidden states of the target, an EAGLE head an embedding
    and one."""
    columns, head = pair.head.weight_sizes.get("fc"), pair.head
    of_one = (head.target_hidden_size if pair.draft.algorithm == "EAGLE3" else None) or head.hidden_size
    many = {"EAGLE3": states, "EAGLE": 2}.get(pair.draft.algorithm)
    if columns and many and of_one and columns != many * of_one:
        problem = (
            f"fc of {pair.name} reads {columns} numbers ({columns / of_one:g} states of {of_one}), but "
            f"{pair.release} makes room for {many} states"
        )
        yield of_head(pair, "source", problem, "name a head that this release can load")


AUX_STATES = "aux-states-are-read"
AUX_STATES_WHY = "the engine dies when it loads another size, or lacks states at the first request"


def vocabularies_agree(pair: PairFacts) -> Iterator[ModelFinding]:
    """`vocab_size` of a head must be its target's; it proposes from a part of it (`draft_vocab_size`).

    Vocabularies are padded, and an EAGLE head uses its target's embedding: for it a difference of 1 % is ignored.
    """
    ours, some, theirs = pair.head.vocab_size, pair.head.draft_vocab_size, pair.target.vocab_size
    if not theirs:
        return
    padding = theirs / 100 if pair.draft.algorithm in HIDDEN_STATE_READERS else 0
    if ours and abs(ours - theirs) > padding:
        problem = f"{pair.name} has a vocabulary of {ours}, the target has {theirs}"
    elif some and some > theirs:
        problem = f"{pair.name} proposes from {some} tokens, the target knows {theirs}"
    else:
        return
    yield of_head(pair, "source", problem, TRAINED_FOR_IT)


VOCABULARIES = "vocabularies-agree"
VOCABULARIES_WHY = "to the target the same token ids are other text: it accepts nothing, or the server dies"
TRAINED_FOR_LAYERS = "name a head that was trained on layers the engine can read"
AUX_LAYERS = "aux-layers-are-there"
AUX_LAYERS_WHY = "an EAGLE3 head reads the states of layers that the target must have"
FOREIGN_LAYERS = "aux-layers-are-the-heads"
"""The rule whose finding explains a verdict: it predicts low acceptance."""
SPECULATOR_IS_READ = "speculator-is-read"
SPECULATOR_IS_READ_WHY = (
    "the server exits at start: the head's config.json has no model_type that transformers knows (read, never run)"
)
EXPORTED = "DFlashLagunaForCausalLM"
"""The only export of the speculators format that SGLang 0.5.23 has a class for (models/dflash.py:1057)."""
