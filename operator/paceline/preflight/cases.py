"""What rules look at and what they say."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from paceline.core import Arm, Draft, Server
from paceline.preflight.facts import ModelFacts

HIDDEN_STATE_READERS = ("EAGLE", "EAGLE3")
"""Algorithms whose head takes the target's hidden states and embeddings."""
OF_THE_TARGET = ("NEXTN", "MTP")
"""Algorithms that may draft with layers of the target itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`rule` found `found` at `path`; `fix` is what a person can change.

    `path` is below a deployment's spec, or below the candidate `arm` where there is one (as in `engines.Refusal`).
    """

    rule: str
    path: str
    found: str
    why: str
    fix: str
    arm: str | None = None
    blocks: bool = True
    """False: worth knowing, not a reason to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a rule's check says, before the rule's name and reason are put to it."""

    path: str
    found: str
    fix: str
    arm: str | None = None
    why: str | None = None
    """In place of the rule's."""
    blocks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A server with all that is to run on it. `target` has no facts where nothing is known."""

    server: Server
    arms: tuple[Arm, ...]
    target: ModelFacts
    heads: Mapping[str, ModelFacts]
    """By source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """A candidate on its server; `head` has no facts where there is none or nothing is known of it."""

    server: Server
    arm: Arm
    draft: Draft
    target: ModelFacts
    head: ModelFacts

    @property
    def name(self) -> str:
        """Of the head, as in the spec."""
        return self.draft.model.source if self.draft.model else self.server.target.source


Case = TypeVar("Case", Pool, Speculation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[Case]):
    """`why` ends what is said of every finding; sources in brackets are of SGLang 0.5.23 unless named."""

    id: str
    why: str
    check: Callable[[Case], Iterator[Said]]

    def findings(self, case: Case) -> Iterator[Finding]:
        for said in self.check(case):
            yield Finding(
                rule=self.id,
                arm=said.arm,
                path=said.path,
                found=said.found,
                why=said.why or self.why,
                fix=said.fix,
                blocks=said.blocks,
            )


def named_heads(arms: Sequence[Arm]) -> set[str]:
    """Sources of the heads that rules look at: what an algorithm that is not known does with its head, nobody knows."""
    return {arm.draft.model.source for arm in arms if arm.draft and arm.draft.model and not arm.custom}


def of_head(case: Speculation, field: str, found: str, fix: str, *, blocks: bool = True) -> Said:
    """Said of a candidate's draft."""
    return Said(arm=case.arm.name, path=f"draft.{field}", found=found, fix=fix, blocks=blocks)


def listed(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
