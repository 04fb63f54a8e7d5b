"""How vLLM is started, and how its speculative configuration becomes a candidate."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.core import CUSTOM
from paceline.engines.arguments import ParsedFlag
from paceline.engines.importing import (
    BLOCKED,
    CURRENT,
    GUESSED_STEPS,
    Importing,
    Note,
    SourceOf,
    Speculating,
    UnansweredError,
    text_of,
)
from paceline.engines.vllm.arguments import flag_list
from paceline.engines.vllm.rules import METHODS

CONFIG = "--speculative-config"
SHORT_CUTS = {
    "--spec-method": "method",
    "--spec-model": "model",
    "--spec-tokens": "num_speculative_tokens",
    "--speculative-model": "model",
}
"""Flags for keys of the speculative configuration (engine/arg_utils.py:2109 of 0.33.0, :447 of 0.6.6)."""
_ALGORITHMS = {method: algorithm for algorithm, method in METHODS.items() if algorithm != "NEXTN"}
_TAKEN = ("method", "model", "revision", "num_speculative_tokens", "prompt_lookup_min", "prompt_lookup_max",
          "enable_adaptive_verification")  # fmt: skip


def speculating(_version: str, flags: Sequence[ParsedFlag], place: SourceOf, _target: str) -> Speculating:
    settings: dict[str, Any] = {}
    notes: list[Note] = []
    for parsed in flags:
        key = SHORT_CUTS.get(parsed.name) or parsed.written.partition(".")[2].replace("-", "_")
        if parsed.name in SHORT_CUTS or (parsed.name == CONFIG and key):
            settings[key] = _as_json(parsed.value)
        elif parsed.name == CONFIG and isinstance(read := _as_json(parsed.value), dict):
            settings |= read
        else:
            notes.append(Note(path=text_of(parsed), text="is a --speculative-config that is not JSON, and is left out"))
    if not settings:
        return Speculating(notes=tuple(notes))
    method, tokens = _method(settings, notes), settings.get("num_speculative_tokens")
    algorithm = "MTP" if method.endswith("_mtp") else _ALGORITHMS.get(method, "")
    draft: dict[str, Any] = {"algorithm": algorithm} if algorithm else {"algorithm": CUSTOM, "name": method}
    if (model := settings.get("model")) and algorithm != "NGRAM":
        draft["source"] = place(str(model))
    if revision := settings.get("revision"):
        draft["revision"] = revision
    if not algorithm:
        mine = {key: value for key, value in settings.items() if key not in ("method", "model", "revision")}
        args = [f"{CONFIG}.{key}={_as_text(value)}" for key, value in mine.items()]
        return Speculating(
            said=CONFIG, draft=draft, candidates=({"name": CURRENT, "custom": {"args": args}},), notes=tuple(notes)
        )
    if tokens is not None and not isinstance(tokens, int):
        raise UnansweredError(
            f"num_speculative_tokens {tokens} is not a number; write the number into the Deployment's arguments"
        )
    if tokens is None and algorithm != "NGRAM":
        tokens = GUESSED_STEPS
        notes.append(Note(path="candidates", text=f"num_speculative_tokens is not set; {tokens} is a guess"))
    own = [f"{CONFIG}.{key}={_as_text(settings[key])}" for key in settings if key not in _TAKEN]
    candidate = {"name": CURRENT, **_shape(algorithm, settings, tokens), **({"args": own} if own else {})}
    return Speculating(said=CONFIG, draft=draft, candidates=(candidate,), notes=tuple(notes))


def _method(settings: Mapping[str, Any], notes: list[Note]) -> str:
    """The method, by default guessed from the head's name like vLLM."""
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


IMPORTING = Importing(
    modules=("vllm.entrypoints.openai.api_server",),
    programs=(("vllm", "serve"),),
    entry_point="vllm-openai",
    title="vllm",
    repositories=("vllm", "vllm-openai"),
    flags=flag_list,
    bare_model=True,
    key_variable="VLLM_API_KEY",
    other_hub="VLLM_USE_MODELSCOPE",
    removed=frozenset({"vllm-owned", "vllm-unknown", "vllm-shortened", "vllm-blind", "vllm-quiet", "vllm-key"}),
    speculating=speculating,
)
