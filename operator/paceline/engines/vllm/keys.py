"""Keys of vLLM's speculative configuration that a candidate brings: `custom.args` of an algorithm without a word in the
API, and `args` of any other, each as --speculative-config.KEY=VALUE. They are rendered into the one JSON argument.
Sources: `config/speculative.py` of 0.33.0.
"""

import json
from collections.abc import Iterator, Mapping, Set
from typing import Any

from paceline.core import Arm
from paceline.engines.adapter import Refusal
from paceline.engines.arguments import ParsedFlag
from paceline.engines.rules import Configuration, variables
from paceline.engines.vllm.arguments import FLAGS

FLAG = "--speculative-config"
MANAGED = {
    "method": "write draft.name",
    "model": "write draft.source",
    "revision": "write draft.revision",
    "code_revision": "write draft.revision",
}
OF_THE_SHAPE = {
    "method": "write draft.algorithm",
    "model": "write draft.source",
    "num_speculative_tokens": "write the candidate's shape",
    "prompt_lookup_min": "write ngram",
    "prompt_lookup_max": "write ngram",
    "num_speculative_tokens_per_batch_size": "write a schedule",
    "enable_adaptive_verification": "write adaptive",
}
"""Keys that have fields where the algorithm is known. All others may stand in a candidate's args: attention_backend,
draft_tensor_parallel_size, kv_cache_dtype, quantization, moe_backend, draft_sample_method and the like."""
DEEPEST = 100
"""Brackets of a value: one nested much deeper cannot be parsed."""
LOSSY = ("synthetic_", "fly_")
"""How the keys of a verification begin that lets tokens pass which the target would not have written."""
HARMLESS = ("standard", "block")
"""Values of rejection_sample_method (:562) that keep the target's distribution: token by token, and by block (Sun et
al., arXiv 2403.10444). `synthetic` and `fly` do not."""


def parsed_keys(arm: Arm) -> tuple[ParsedFlag, ...]:
    if arm.custom:
        return FLAGS.parse(arm.custom.args, arm.name, "custom.args")
    return tuple(parsed for parsed in FLAGS.parse(arm.args, arm.name, "args") if parsed.name == FLAG)


def other_words(arm: Arm) -> tuple[str, ...]:
    """What else stands in a candidate's args."""
    ours = {index for parsed in parsed_keys(arm) if not arm.custom
            for index in range(parsed.index, parsed.index + 1 + len(parsed.values) - parsed.glued)}  # fmt: skip
    return tuple(word for index, word in enumerate(arm.args) if index not in ours)


def settings(arm: Arm) -> dict[str, Any]:
    """As vLLM reads them: JSON where it is some, else text; dots lead further in. Of two that exclude each other, which
    `faults` refuses, the first."""
    found: dict[str, Any] = {}
    for parsed in parsed_keys(arm):
        *outer, last = parsed.written.split(".")[1:] or [""]
        inner = found
        for key in outer:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner
        if isinstance(inner, dict):
            inner[last] = _read(parsed.value)
    return found


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def faults(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find(FLAG):
        yield parsed.refused(f"{parsed.written} is a candidate's own; move it to the args of the candidates")
    for arm in configuration.arms:
        earlier: set[str] = set()
        for parsed in parsed_keys(arm):
            key = parsed.written.replace("_config", "-config", 1).removeprefix(f"{FLAG}.")
            if parsed.written and (fault := _fault(parsed, key, earlier, arm)):
                yield parsed.refused(fault)
            earlier.add(key)


def _fault(parsed: ParsedFlag, key: str, earlier: Set[str], arm: Arm) -> str:
    outermost = key.partition(".")[0]
    if any(variables(parsed)):
        return f"{parsed.written}={parsed.value}: $(VAR) is not filled in; write the value"
    if key == parsed.written or "" in key.split("."):
        return f"{parsed.written} is not a key of it; write {FLAG}.KEY=VALUE"
    if not parsed.values:
        return f"{parsed.written} has no value; write {parsed.written}=VALUE"
    if key in earlier:
        return f"{key} is given twice; keep one"
    if outer := next((other for other in earlier if key.startswith(f"{other}.")), ""):
        return f"{key} is within {outer}, which has a value already; keep one of the two"
    if inner := next((other for other in earlier if other.startswith(f"{key}.")), ""):
        return f"{key} would take the place of {inner}; keep one of the two"
    if way_out := _managed(outermost, arm):
        return f"{outermost} is set by Paceline from the resource; {way_out}"
    if parsed.value.count("[") + parsed.value.count("{") > DEEPEST:
        return f"{key} has more than {DEEPEST} brackets; write fewer"
    if key.startswith(LOSSY) or (outermost == "rejection_sample_method" and parsed.value not in HARMLESS):
        return f"{key} lets tokens pass that the target would not have written; remove it"
    return ""


def _managed(key: str, arm: Arm) -> str:
    managed: Mapping[str, str] = MANAGED if arm.custom else {**MANAGED, **OF_THE_SHAPE}
    own_model = key == "model" and arm.custom and not (arm.draft and arm.draft.model)
    return "" if own_model else managed.get(key, "")


def stray(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        for parsed in parsed_keys(arm) if arm.custom else ():
            for index, word in parsed.surplus:
                yield parsed.refused(f"{word} belongs to no key; write {FLAG}.KEY=VALUE", index)
