"""An algorithm without a word in the API: `draft.name` is vLLM's method, `custom.args` are keys of its speculative
configuration. It is measured, and nothing about it is assumed; we refuse only another experiment.
Sources: `config/speculative.py` of 0.33.0.
"""

from collections.abc import Iterator
from difflib import get_close_matches

from paceline.engines.adapter import Refusal
from paceline.engines.rules import Configuration
from paceline.engines.vllm.keys import settings

METHODS = (
    "ngram",
    "ngram_gpu",
    "draft_model",
    "suffix",
    "custom_class",
    "eagle",
    "eagle3",
    "extract_hidden_states",
    "mtp",
    "dflash",
    "dspark",
)
"""`SpeculativeMethod` (:74), but for its names of MTP. medusa and mlp_speculator went with 0.33."""
MTP = "_mtp"
"""How `MTPModelTypes` end, one a model (:38); vLLM makes `mtp` of each of them (:1246)."""
OF_A_CLASS = "custom_class"


def known(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        name = (arm.draft and arm.draft.name) or ""
        if not arm.custom:
            continue
        if name.lower().endswith(MTP):
            message = f"{name} is vLLM's name of MTP on one model; write algorithm: MTP"
            yield Refusal(arm=arm.name, path="draft.name", message=message)
        elif configuration.flags.exact and name not in METHODS:
            near = get_close_matches(name.lower(), METHODS, n=1, cutoff=0.7)
            way_out = f"did you mean {near[0]}?" if near else f"it has {', '.join(METHODS)}"
            message = f"{configuration.engine} has no method {name}; {way_out}"
            yield Refusal(arm=arm.name, path="draft.name", message=message)
        elif name == OF_A_CLASS and not settings(arm).get("model") and not (arm.draft and arm.draft.model):
            message = f"{name} names no model; add --speculative-config.model=MODULE:CLASS (:1284)"
            yield Refusal(arm=arm.name, path="custom.args", message=message)
