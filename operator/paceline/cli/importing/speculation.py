"""The configuration that the Deployment speculates with: a candidate, to be measured against the same without it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from paceline.cli.importing.note import Note, UnansweredError
from paceline.core import ALGORITHMS, CUSTOM
from paceline.engines import ENGINES
from paceline.engines.arguments import ParsedFlag
from paceline.engines.model_rules import LAYERS_OF_THE_TARGET
from paceline.engines.sglang.flags import ngram
from paceline.engines.vllm.rules import METHODS

Place = Callable[[str], str]
"""A model as the arguments name it → its source."""
NAME = "current"
Said = Mapping[str, ParsedFlag]
BLOCKS = ("--speculative-dflash-block-size", "--speculative-dspark-block-size")
BLOCKED, BLOCK = ("DFLASH", "DSPARK"), 8
"""Algorithms that propose a block, and its size where none is given."""
STEPS, TOP_K, TOKENS = "--speculative-num-steps", "--speculative-eagle-topk", "--speculative-num-draft-tokens"
ALGORITHM, DRAFT = "--speculative-algorithm", "--speculative-draft-model-path"
REVISION, ADAPTIVE = "--speculative-draft-model-revision", "--speculative-adaptive"
BY_ITSELF = "the target drafts with layers of its own"
NAMED_SO = re.compile(r"nextn|[-_]mtp\b|[-_]assistant\b", re.IGNORECASE)
"""How repositories of such layers, and of assistants, are called."""
CHAINS = {"three": 3, "five": 5}
"""Candidates of a head → their depths."""
GUESSED = {"numSteps": 3, "topK": 1, "numDraftTokens": 4}
SHORT_CUTS = {
    "--spec-method": "method",
    "--spec-model": "model",
    "--spec-tokens": "num_speculative_tokens",
    "--speculative-model": "model",
}
"""vLLM's flags for a key of its speculative configuration (engine/arg_utils.py:2109 of 0.33.0, :447 of 0.6.6)."""
VLLM_METHODS = {method: algorithm for algorithm, method in METHODS.items() if algorithm != "NEXTN"}
VLLM_TAKES = ("method", "model", "revision", "num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max",
              "enable_adaptive_verification")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """The draft and a candidate of the resource; None without either."""

    draft: Mapping[str, Any] | None = None
    candidates: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()


def speculation(engine: str, version: str, flags: Sequence[ParsedFlag], place: Place, target: str) -> Speculation:
    """`target` as the Deployment names it."""
    found = _of_vllm(flags, place) if engine == "vLLM" else _of_sglang(engine, version, flags, place, target)
    if found.draft is None:
        return found
    text = f"is the candidate {NAME}: the baseline is measured and served without it until it is shown to be faster"
    at = " ".join([ALGORITHM, _of(flags, ALGORITHM)]) if engine != "vLLM" else "--speculative-config"
    return Speculation(draft=found.draft, candidates=found.candidates, notes=(Note(path=at, text=text), *found.notes))


def proposed(engine: str, head: str, algorithm: str) -> Speculation:
    """For a Deployment without speculation: a resource needs something to compare. Chains, which go with every
    attention backend. Raises UnansweredError where there is nothing without a head."""
    if head:
        chains = {name: {"numSteps": steps, "topK": 1, "numDraftTokens": steps + 1} for name, steps in CHAINS.items()}
        candidates = tuple({"name": name, "tree": shape} for name, shape in chains.items())
        text = "the chains are a beginning: docs/searching.md finds what is faster"
        return Speculation(
            draft={"algorithm": algorithm, "source": head},
            candidates=candidates,
            notes=(Note(path="candidates", text=text),),
        )
    able = ENGINES[engine].capabilities
    if "NGRAM" not in able.algorithms:
        raise UnansweredError(f"a candidate is needed, and {engine} has none without a head; name one with --head")
    text = "the Deployment does not speculate, and a candidate is needed. NGRAM takes drafts from the text itself "
    text += "and needs no head; --head hf://OWNER/NAME names one for your model"
    candidate = {"name": "ngram", "ngram": {"numDraftTokens": 8, **({"breadth": 1} if able.ngram_breadth else {})}}
    return Speculation(
        draft={"algorithm": "NGRAM"}, candidates=(candidate,), notes=(Note(path="candidates", text=text),)
    )


def _of_sglang(engine: str, version: str, flags: Sequence[ParsedFlag], place: Place, target: str) -> Speculation:
    said = {parsed.name: parsed for parsed in flags}
    algorithm = _of(flags, ALGORITHM)
    if algorithm.upper() in ("", "NONE"):
        left = tuple(Note(path=_text(one), text=f"is left out: there is no {ALGORITHM}") for one in flags)
        return Speculation(notes=left)
    name = ENGINES[engine].capabilities.aliases.get(algorithm.upper(), algorithm.upper())
    path = _of(flags, DRAFT)
    mtp = _mtp(name, path, target) if engine == "SGLang" else ""
    own_layers, name = mtp == BY_ITSELF, "MTP" if mtp else name
    known = name in ALGORITHMS and name != CUSTOM
    draft: dict[str, Any] = {"algorithm": name} if known else {"algorithm": CUSTOM, "name": algorithm}
    if path and not own_layers:
        draft["source"] = place(path)
    if (revision := _of(flags, REVISION)) and not own_layers:
        draft["revision"] = revision
    fields, held, notes = _shape_of(name, version, said) if known else ({}, (), [])
    if mtp:
        notes.append(Note(path=f"{ALGORITHM} {algorithm}", text=f"is MTP: {mtp}"))
    rest = [word for flag in said if flag not in (ALGORITHM, DRAFT, REVISION, *held) for word in _words(said[flag])]
    own = ({"args": rest} if rest else {}) if known else {"custom": {"args": rest}}
    return Speculation(draft=draft, candidates=({"name": NAME, **fields, **own},), notes=tuple(notes))


def _mtp(name: str, path: str, target: str) -> str:
    """Why it is MTP; "" if it is not. SGLang drafts with layers of the target where EAGLE or NEXTN names no other model
    (0.5.23, speculative_hook.py:1120)."""
    if name in ("EAGLE", *LAYERS_OF_THE_TARGET) and path in ("", target):
        return BY_ITSELF
    return "by the draft's name" if name == "EAGLE" and NAMED_SO.search(path) else ""


def _shape_of(name: str, version: str, said: Said) -> tuple[Mapping[str, Any], Sequence[str], list[Note]]:
    """Fields of the candidate, the flags that they hold, and what of it is a guess or changed."""
    block = next((flag for flag in BLOCKS if flag in said), "")
    if name == "NGRAM":
        flags = ngram(version)
        fields = {to_camel(field): _number(said, flag) for field, flag in flags.items() if flag in said}
        return {"ngram": fields}, tuple(flags.values()), []
    if ADAPTIVE in said:
        first = {"numSteps": _number(said, STEPS)} if STEPS in said else {}
        return {"adaptive": first}, (ADAPTIVE, STEPS, TOP_K, TOKENS), []
    if block or name in BLOCKED:
        tokens = _number(said, block or TOKENS, BLOCK)
        guessed = [] if block or TOKENS in said else [_guess(f"blockSize {tokens}")]
        return {"blockSize": tokens}, (block, STEPS, TOP_K, TOKENS), guessed
    steps, top = _number(said, STEPS, GUESSED["numSteps"]), _number(said, TOP_K, GUESSED["topK"])
    tree = {"numSteps": steps, "topK": top, "numDraftTokens": _number(said, TOKENS, (steps + 1) * min(top, 2))}
    whole = {STEPS, TOP_K} <= set(said) and (TOKENS in said or top == 1)
    notes = [] if whole else [_guess(str(tree))]
    if top == 1 and tree["numDraftTokens"] != steps + 1:
        text = f"is numDraftTokens {steps + 1} here: a chain (topK 1) has numSteps + 1, which SGLang makes of it, too"
        notes.append(Note(path=_text(said[TOKENS]), text=text))
        tree["numDraftTokens"] = steps + 1
    return {"tree": tree}, (STEPS, TOP_K, TOKENS), notes


def _number(said: Said, flag: str, otherwise: int = 0) -> int:
    text = said[flag].value if flag in said else str(otherwise)
    if not text.isdecimal():
        raise UnansweredError(f"{flag} {text}: is no number: write it out in the Deployment's arguments")
    return int(text)


def _guess(what: str) -> Note:
    text = f"{what} is a guess: what the running server has taken is in its /server_info (speculative_num_steps and its"
    return Note(path="candidates", text=f"{text} neighbours)")


def _of_vllm(flags: Sequence[ParsedFlag], place: Place) -> Speculation:
    settings: dict[str, Any] = {}
    notes: list[Note] = []
    for parsed in flags:
        key = SHORT_CUTS.get(parsed.name) or parsed.written.partition(".")[2].replace("-", "_")
        if parsed.name in SHORT_CUTS or (parsed.name == "--speculative-config" and key):
            settings[key] = _as_json(parsed.value)
        elif parsed.name == "--speculative-config" and isinstance(read := _as_json(parsed.value), dict):
            settings |= read
        else:
            notes.append(Note(path=_text(parsed), text="is no --speculative-config of JSON, and is left out"))
    if not settings:
        return Speculation(notes=tuple(notes))
    method, tokens = _method(settings, notes), settings.get("num_speculative_tokens")
    algorithm = "MTP" if method.endswith("_mtp") else VLLM_METHODS.get(method, "")
    draft: dict[str, Any] = {"algorithm": algorithm} if algorithm else {"algorithm": CUSTOM, "name": method}
    if (model := settings.get("model")) and algorithm != "NGRAM":
        draft["source"] = place(str(model))
    if revision := settings.get("revision"):
        draft["revision"] = revision
    if not algorithm:
        mine = {key: value for key, value in settings.items() if key not in ("method", "model", "revision")}
        args = [f"--speculative-config.{key}={_as_text(value)}" for key, value in mine.items()]
        return Speculation(draft=draft, candidates=({"name": NAME, "custom": {"args": args}},), notes=tuple(notes))
    if tokens is not None and not isinstance(tokens, int):
        raise UnansweredError(
            f"num_speculative_tokens {tokens}: is no number: write it out in the Deployment's arguments"
        )
    if tokens is None and algorithm != "NGRAM":
        tokens = GUESSED["numSteps"]
        notes.append(Note(path="candidates", text=f"num_speculative_tokens is not given; {tokens} is a guess"))
    own = [f"--speculative-config.{key}={_as_text(settings[key])}" for key in settings if key not in VLLM_TAKES]
    candidate = {"name": NAME, **_shape(algorithm, settings, tokens), **({"args": own} if own else {})}
    return Speculation(draft=draft, candidates=(candidate,), notes=tuple(notes))


def _method(settings: Mapping[str, Any], notes: list[Note]) -> str:
    """vLLM guesses it from the head's name."""
    if said := settings.get("method"):
        return str(said)
    name = str(settings.get("model", "")).lower()
    found = next(
        (each for each in ("eagle3", "eagle", "dflash", "dspark", "mtp", "ngram") if each in name), "draft_model"
    )
    notes.append(
        Note(path="--speculative-config.method", text=f"is not given; {found} is a guess, by the model's name")
    )
    return found


def _shape(algorithm: str, settings: Mapping[str, Any], tokens: int | None) -> Mapping[str, Any]:
    if algorithm == "NGRAM":
        fields = {"minMatch": settings.get("prompt_lookup_min"), "maxMatch": settings.get("prompt_lookup_max")}
        fields["numDraftTokens"] = None if tokens is None else tokens + 1
        return {"ngram": {name: value for name, value in fields.items() if value is not None}}
    assert tokens is not None
    if settings.get("enable_adaptive_verification"):
        return {"adaptive": {"numSteps": tokens}}
    if algorithm in BLOCKED:
        return {"blockSize": tokens + (algorithm == "DFLASH")}
    return {"tree": {"numSteps": tokens, "topK": 1, "numDraftTokens": tokens + 1}}


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of(flags: Sequence[ParsedFlag], name: str) -> str:
    return next((parsed.value for parsed in flags if parsed.name == name), "")


def _words(parsed: ParsedFlag) -> list[str]:
    return [f"{parsed.written}={parsed.values[0]}"] if parsed.glued else [parsed.written, *parsed.values]


def _text(parsed: ParsedFlag) -> str:
    return " ".join(_words(parsed))
