"""Converts `--speculative-…` flags to a candidate, for the engines with such flags."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from paceline.core import ALGORITHMS, CUSTOM
from paceline.engines.arguments import ParsedFlag
from paceline.engines.importing import (
    BLOCKED,
    CURRENT,
    GUESSED_STEPS,
    Note,
    SourceOf,
    Speculating,
    UnansweredError,
    text_of,
    value_of,
    words_of,
)
from paceline.engines.model_rules import LAYERS_OF_THE_TARGET

Said = Mapping[str, ParsedFlag]
BLOCKS = ("--speculative-dflash-block-size", "--speculative-dspark-block-size")
_BLOCK = 8
"""Default block size."""
STEPS, TOP_K, TOKENS = "--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"
ALGORITHM, DRAFT = "--speculative-algorithm", "--speculative-draft-model-path"
REVISION, ADAPTIVE = "--speculative-draft-model-revision", "--speculative-adaptive"
BY_ITSELF = "the target drafts with layers of its own"
NAMED_SO = re.compile(r"nextn|[-_]mtp\b|[-_]assistant\b", re.IGNORECASE)
"""Typical repository names of such layers, and of assistants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculative:
    """One engine's speculative flags."""

    aliases: Mapping[str, str]
    """Other names of algorithms → the API's."""
    ngram: Callable[[str], Mapping[str, str]]
    """Engine version → field of a candidate's `ngram` → its flag."""
    layers: bool
    """Whether the engine drafts with the target's layers if EAGLE or NEXTN names no other model."""

    def speculating(self, version: str, flags: Sequence[ParsedFlag], place: SourceOf, target: str) -> Speculating:
        said = {parsed.name: parsed for parsed in flags}
        algorithm = value_of(flags, ALGORITHM)
        if algorithm.upper() in ("", "NONE"):
            left = tuple(Note(path=text_of(one), text=f"is left out: there is no {ALGORITHM}") for one in flags)
            return Speculating(notes=left)
        name = self.aliases.get(algorithm.upper(), algorithm.upper())
        path = value_of(flags, DRAFT)
        mtp = _mtp(name, path, target) if self.layers else ""
        own_layers, name = mtp == BY_ITSELF, "MTP" if mtp else name
        known = name in ALGORITHMS and name != CUSTOM
        draft: dict[str, Any] = {"algorithm": name} if known else {"algorithm": CUSTOM, "name": algorithm}
        if path and not own_layers:
            draft["source"] = place(path)
        if (revision := value_of(flags, REVISION)) and not own_layers:
            draft["revision"] = revision
        fields, held, notes = _shape_of(name, self.ngram(version), said) if known else ({}, (), [])
        if mtp:
            notes.append(Note(path=f"{ALGORITHM} {algorithm}", text=f"is MTP: {mtp}"))
        own = (ALGORITHM, DRAFT, REVISION, *held)
        rest = [word for flag in said if flag not in own for word in words_of(said[flag])]
        args = ({"args": rest} if rest else {}) if known else {"custom": {"args": rest}}
        candidate = {"name": CURRENT, **fields, **args}
        said_so = f"{ALGORITHM} {algorithm}"
        return Speculating(said=said_so, draft=draft, candidates=(candidate,), notes=tuple(notes))


def _mtp(name: str, path: str, target: str) -> str:
    """Why it is MTP; "" if it is not."""
    if name in ("EAGLE", *LAYERS_OF_THE_TARGET) and path in ("", target):
        return BY_ITSELF
    return "by the draft's name" if name == "EAGLE" and NAMED_SO.search(path) else ""


def _shape_of(name: str, ngram: Mapping[str, str], said: Said) -> tuple[Mapping[str, Any], Sequence[str], list[Note]]:
    """The candidate's fields, the flags that they replace, and notes on guesses and changes."""
    block = next((flag for flag in BLOCKS if flag in said), "")
    if name == "NGRAM":
        fields = {to_camel(field): _number(said, flag) for field, flag in ngram.items() if flag in said}
        return {"ngram": fields}, tuple(ngram.values()), []
    if ADAPTIVE in said:
        first = {"numSteps": _number(said, STEPS)} if STEPS in said else {}
        return {"adaptive": first}, (ADAPTIVE, STEPS, TOP_K, TOKENS), []
    if block or name in BLOCKED:
        tokens = _number(said, block or TOKENS, _BLOCK)
        guessed = [] if block or TOKENS in said else [_guess(f"blockSize {tokens}")]
        return {"blockSize": tokens}, (block, STEPS, TOP_K, TOKENS), guessed
    steps, top = _number(said, STEPS, GUESSED_STEPS), _number(said, TOP_K, 1)
    tree = {"numSteps": steps, "topK": top, "numDraftTokens": _number(said, TOKENS, (steps + 1) * min(top, 2))}
    whole = {STEPS, TOP_K} <= set(said) and (TOKENS in said or top == 1)
    notes = [] if whole else [_guess(", ".join(f"{field} {value}" for field, value in tree.items()))]
    if top == 1 and tree["numDraftTokens"] != steps + 1:
        text = f"becomes numDraftTokens {steps + 1}: a chain (topK 1) has numSteps + 1, as the engine sets it, too"
        notes.append(Note(path=text_of(said[TOKENS]), text=text))
        tree["numDraftTokens"] = steps + 1
    return {"tree": tree}, (STEPS, TOP_K, TOKENS), notes


def _number(said: Said, flag: str, otherwise: int = 0) -> int:
    text = said[flag].value if flag in said else str(otherwise)
    if not text.isdecimal():
        raise UnansweredError(f"{flag} {text} is not a number; write the number into the Deployment's arguments")
    return int(text)


def _guess(what: str) -> Note:
    text = f"{what}: a guess; the running server shows its own in /server_info (speculative_num_steps and its"
    return Note(path="candidates", text=f"{text} neighbours)")
