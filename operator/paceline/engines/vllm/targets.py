"""Targets that draft heads cannot read, and what requests no longer get once vLLM speculates."""

import json
from functools import cache
from importlib import resources

from paceline.core import Arm, Server
from paceline.engines.vllm import flags


def hand_out_nothing(server: Server) -> frozenset[str]:
    """Architectures whose class has no interface for hidden states. Of another version, or of the implementation by
    Transformers (which has it, model_executor/models/transformers/base.py), nothing is said."""
    other = flags.value(server.engine.args, "--model-impl") not in (None, "auto", "vllm")
    return frozenset() if other or server.engine.version != flags.VERSION else _listed()


def loses(arm: Arm) -> str:
    return (
        "vLLM answers a request with min_p or logit_bias with 400 once it speculates (sampling_params.py:1193)"
        if arm.draft
        else ""
    )


@cache
def _listed() -> frozenset[str]:
    """By dev/vllm/extract_hooks.py."""
    text = resources.files("paceline.engines").joinpath(f"data/vllm-{flags.VERSION}-targets.json").read_text()
    return frozenset(json.loads(text)["handOutNoHiddenStates"])
