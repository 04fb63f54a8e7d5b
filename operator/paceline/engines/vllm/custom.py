"""An algorithm without a name in the API: `draft.name` is vLLM's method, `custom.args` are keys of its speculative
configuration. It is measured without assumptions; we refuse only changes that make it another experiment. Sources:
`config/speculative.py` of 0.33.0."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from paceline.core import Arm
from paceline.engines.arguments import read_data
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration
from paceline.engines.vllm.arguments import LISTED_VERSION
from paceline.engines.vllm.keys import FLAG, settings

_METHODS = tuple(read_data(__package__, f"flags-{LISTED_VERSION}.json")["speculativeMethods"])
"""`SpeculativeMethod` (:74). 0.33 removed medusa and mlp_speculator."""
MTP = "_mtp"
"""Suffix of `MTPModelTypes`, one per model (:38); vLLM maps each to `mtp` (:1246)."""
_NEEDS: Mapping[str, Mapping[str, str]] = {
    "custom_class": {"model": "MODULE.CLASS", "num_speculative_tokens": "N"},
    "extract_hidden_states": {"num_speculative_tokens": "N"},
    "ngram_gpu": {"num_speculative_tokens": "N"},
}
"""Method → the keys without which vLLM exits at start (:1289, :1948), with their values. Other methods take the
number of tokens from a head, or have a default."""


def known(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        name = (arm.draft and arm.draft.name) or ""
        if not arm.custom:
            continue
        if name.lower().endswith(MTP):
            message = f"{name} is vLLM's name for MTP on one model; write algorithm: MTP"
            yield Refusal(arm=arm.name, path="draft.name", message=message)
        elif configuration.flags.exact and name not in _METHODS:
            others = [method for method in _METHODS if not method.endswith(MTP)]
            near = get_close_matches(name.lower(), others, n=1, cutoff=0.7)
            way_out = f"did you mean {near[0]}?" if near else f"it has {', '.join(others)}"
            message = f"{configuration.engine} has no method {name}; {way_out}"
            yield Refusal(arm=arm.name, path="draft.name", message=message)
        else:
            yield from _incomplete(arm, name) if configuration.flags.exact else ()


def _incomplete(arm: Arm, name: str) -> Iterator[Refusal]:
    has = settings(arm).keys() | ({"model"} if arm.draft and arm.draft.model else set())
    for key, value in _NEEDS.get(name, {}).items():
        if key not in has:
            message = f"{name} needs {FLAG}.{key}={value}, too"
            yield Refusal(arm=arm.name, path="custom.args", message=message)
