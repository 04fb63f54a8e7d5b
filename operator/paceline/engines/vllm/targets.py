"""Targets that draft heads cannot read, features that requests lose once vLLM speculates, and requirements of tools."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from paceline.core import Arm, Server
from paceline.engines.arguments import flag_value, read_data
from paceline.engines.vllm.arguments import FLAGS, LISTED_VERSION


def without_hidden_states(server: Server) -> frozenset[str]:
    """Architectures whose class has no interface for hidden states. Empty for another version, and for the
    implementation by Transformers, which has the interface (model_executor/models/transformers/base.py)."""
    other = flag_value(server.engine.args, "--model-impl", FLAGS) not in (None, "auto", "vllm")
    return frozenset() if other or server.engine.version != LISTED_VERSION else _listed()


def loses(arm: Arm) -> str:
    return (
        "vLLM answers 400 to a request with min_p or logit_bias once it speculates (sampling_params.py:1193)"
        if arm.draft
        else ""
    )


def tools_need(body: Mapping[str, Any]) -> tuple[str, ...]:
    """With tools but no tool choice the model may choose, if a flag allows it (renderers/online_renderer.py:278)."""
    chooses = body.get("tools") and body.get("tool_choice") in (None, "auto")
    return ("--enable-auto-tool-choice", "--tool-call-parser") if chooses else ()


@cache
def _listed() -> frozenset[str]:
    """The architectures that dev/vllm/extract_hooks.py found."""
    return frozenset(read_data(__package__, f"targets-{LISTED_VERSION}.json")["handOutNoHiddenStates"])
