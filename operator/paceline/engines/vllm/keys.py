"""A candidate's keys of vLLM's speculative configuration: `custom.args` of an algorithm without a name in the API, and
`args` of any other, each as --speculative-config.KEY=VALUE. They are rendered into the one JSON argument. Sources:
`config/speculative.py` of 0.33.0, whose keys and types dev/vllm/extract_flags.py reads; the real vLLM's answers to some
fifty configurations are in tests/contract/captures/vllm/speculation.jsonl."""

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from paceline.core import Arm
from paceline.engines.arguments import ParsedFlag, flag_of, read_data
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, fault_of, variables
from paceline.engines.vllm.arguments import FLAGS, LISTED_VERSION

FLAG = "--speculative-config"
_MANAGED = {
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
    "num_speculative_tokens_per_batch_size": "write depthByBatchSize",
    "enable_adaptive_verification": "write adaptive",
}
"""Keys for which the resource has fields if the algorithm is known. A candidate's args may have all others:
attention_backend, draft_tensor_parallel_size, kv_cache_dtype, quantization, moe_backend, draft_sample_method and the
like."""
_SPLIT = "draft_tensor_parallel_size"
_RENAMED = {"tensor_parallel_size": _SPLIT}
"""Keys that vLLM refuses, and the key to use instead (:1942)."""
METHODS_OF: Mapping[str, tuple[str, ...]] = {
    "use_heterogeneous_vocab": ("draft_model",),  # :1997
    "draft_lm_head_quantization": ("eagle", "eagle3", "mtp"),  # :1957
    "dspark_draft_topk": ("dspark",),  # :1641
    "index_share_for_mtp_iteration": ("mtp",),  # :1707
    "xpress_topc": ("dflash",),  # :1621
}
"""Key → the methods that accept it."""
_KNOWN = {
    row["names"][0]: flag_of(row) for row in read_data(__package__, f"flags-{LISTED_VERSION}.json")["speculativeKeys"]
}
_DEEPEST = 100
"""Maximum nesting of brackets in a value: the parser fails at much deeper ones."""
_LOSSY = ("synthetic_", "fly_")
"""Prefixes of keys for verification methods that accept tokens which the target would not have written."""
HARMLESS = ("standard", "block")
"""Values of rejection_sample_method (:562) that keep the target's distribution: by token, and by block (Sun et al.,
arXiv 2403.10444). `synthetic` and `fly` do not."""


def parsed_keys(arm: Arm) -> tuple[ParsedFlag, ...]:
    if arm.custom:
        return FLAGS.parse(arm.custom.args, arm.name, "custom.args")
    return tuple(parsed for parsed in FLAGS.parse(arm.args, arm.name, "args") if parsed.name == FLAG)


def other_words(arm: Arm) -> tuple[str, ...]:
    """The remaining words of a candidate's args."""
    ours = {index for parsed in parsed_keys(arm) if not arm.custom
            for index in range(parsed.index, parsed.index + 1 + len(parsed.values) - parsed.glued)}  # fmt: skip
    return tuple(word for index, word in enumerate(arm.args) if index not in ours)


def settings(arm: Arm) -> dict[str, Any]:
    """Parsed like vLLM: JSON if valid (a truth value in any case), else text; dots separate nested keys, and a dash is
    an underscore (engine/arg_utils.py:2125). Of two exclusive ones, which `faults` refuses, the first."""
    found: dict[str, Any] = {}
    for parsed in parsed_keys(arm):
        *outer, last = _key(parsed).split(".")
        inner = found
        for key in outer:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner
        if isinstance(inner, dict):
            inner[last] = _read(parsed.value)
    return found


def _key(parsed: ParsedFlag) -> str:
    outermost, dot, inner = parsed.written.partition(".")[2].partition(".") if parsed.name == FLAG else ("", "", "")
    return outermost.replace("-", "_") + dot + inner


def _read(text: str) -> Any:
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text


def faults(configuration: Configuration, methods: Mapping[str, str | None]) -> Iterator[Refusal]:
    """`methods`: arm → vLLM's name of its method."""
    for parsed in configuration.find(FLAG):
        yield parsed.refused(f"{parsed.written} belongs to candidates; move it to the candidates' args")
    for arm in configuration.arms:
        earlier: set[str] = set()
        for parsed in parsed_keys(arm):
            key, method = _key(parsed), methods[arm.name] or ""
            fault = parsed.written and (
                _fault(parsed, key, earlier, arm) or _fault_beside(parsed, key, method, configuration)
            )
            if fault:
                yield parsed.refused(fault)
            earlier.add(key)


def _fault(parsed: ParsedFlag, key: str, earlier: Set[str], arm: Arm) -> str:
    outermost = key.partition(".")[0]
    if any(variables(parsed)):
        return f"{parsed.written}={parsed.value}: $(VAR) is not filled in; write the value"
    if "" in key.split("."):
        return f"{parsed.written} is not a key of {FLAG}; write {FLAG}.KEY=VALUE"
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
    if parsed.value.count("[") + parsed.value.count("{") > _DEEPEST:
        return f"{key} has more than {_DEEPEST} brackets; write fewer"
    if key.startswith(_LOSSY) or (outermost == "rejection_sample_method" and parsed.value not in HARMLESS):
        return f"{key} accepts tokens that the target would not have written; remove it"
    return ""


def _fault_beside(parsed: ParsedFlag, key: str, method: str, configuration: Configuration) -> str:
    """The fault of the value, alone or with the method and the server. Other releases may have other keys and words."""
    outermost, exact = key.partition(".")[0], configuration.flags.exact
    size = configuration.server.accelerator.tensor_parallel_size
    if key in _RENAMED:
        return f"{key} is not a key of a draft; write {_RENAMED[key]}"
    if key == _SPLIT and parsed.value not in ("None", "1", str(size)):
        return f"{key} must be 1 or the servers' own {size}; got {parsed.value}"
    if outermost not in _KNOWN:
        near = get_close_matches(outermost, _KNOWN, n=1)
        way_out = f"did you mean {near[0]}?" if near else "remove it"
        return f"vLLM {LISTED_VERSION} has no key {outermost}; {way_out}" if exact else ""
    if exact and method not in METHODS_OF.get(key, (method,)) and _read(parsed.value):
        return f"{key} is for vLLM's {' and '.join(METHODS_OF[key])}, not {method}; remove it"
    one = replace(parsed, values=parsed.values[:1])
    fault = fault_of(one, _KNOWN[outermost], exact) if key == outermost else ""
    return f"{key} {fault}" if fault else ""


def _managed(key: str, arm: Arm) -> str:
    managed: Mapping[str, str] = _MANAGED if arm.custom else {**_MANAGED, **OF_THE_SHAPE}
    own_model = key == "model" and arm.custom and not (arm.draft and arm.draft.model)
    return "" if own_model else managed.get(key, "")


def stray(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        for parsed in parsed_keys(arm) if arm.custom else ():
            for index, word in parsed.surplus:
                yield parsed.refused(f"{word} belongs to no key; write {FLAG}.KEY=VALUE", index)
