"""One adapter an engine: how an arm becomes a process, and what that process must then say of itself.

An engine is a row of functions, not a class to inherit from: `ENGINES[server.engine.name].argv(server, arm)`.
"""

from collections.abc import Mapping

from paceline.engines import sglang, sglang_jax, vllm
from paceline.engines.adapter import Adapter, Refusal, Scalar
from paceline.engines.probe import Look, Probe, ProbeError, Speculation, Work, json_object

ENGINES: Mapping[str, Adapter] = {"SGLang": sglang.ADAPTER, "SGLangJAX": sglang_jax.ADAPTER, "VLLM": vllm.ADAPTER}

__all__ = [
    "ENGINES",
    "Adapter",
    "Look",
    "Probe",
    "ProbeError",
    "Refusal",
    "Scalar",
    "Speculation",
    "Work",
    "json_object",
]
