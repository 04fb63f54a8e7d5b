"""One adapter per engine: how an arm becomes a process, and which arguments that process must report.

An engine is a row of functions, not a class to inherit from: `ENGINES[server.engine.type].argv(server, arm)`. A new
engine is a package with an `ADAPTER` and a line of `ENGINES` (docs/engines.md, "Adding an engine").
"""

from collections.abc import Callable, Iterable, Mapping

from paceline.core import BASELINE, Arm, Server, server_of
from paceline.engines import sglang, sglang_jax, vllm
from paceline.engines.adapter import Adapter
from paceline.engines.capabilities import TPU, Capabilities
from paceline.engines.monitor import Counts, Monitor, UnreadableError
from paceline.engines.probe import Histogram, Probe, ProbeError, Scrape, Speculation, Work, json_object
from paceline.engines.refusal import Refusal

ENGINES: Mapping[str, Adapter] = {
    "SGLang": sglang.ADAPTER,
    "SGLangJAX": sglang_jax.ADAPTER,
    "vLLM": vllm.ADAPTER,
}


def engines_with(ability: Callable[[Capabilities], object]) -> tuple[str, ...]:
    """Names of the engines with this capability, in the order of the table."""
    return tuple(name for name, adapter in ENGINES.items() if ability(adapter.capabilities))


def verify_tokens(server: Server, arm: Arm) -> int:
    """`Adapter.verify_tokens` of the arm's engine."""
    return ENGINES[server_of(server, arm).engine.type].verify_tokens(arm)


def fewest_drafts_first(server: Server, arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """The baseline, then the candidates in order of draft tokens: in a tie the gate prefers the earlier arm."""
    return tuple(sorted(arms, key=lambda arm: (arm.name != BASELINE, verify_tokens(server, arm), arm.name)))


__all__ = [
    "ENGINES",
    "TPU",
    "Adapter",
    "Capabilities",
    "Counts",
    "Histogram",
    "Monitor",
    "Probe",
    "ProbeError",
    "Refusal",
    "Scrape",
    "Speculation",
    "UnreadableError",
    "Work",
    "engines_with",
    "fewest_drafts_first",
    "json_object",
    "verify_tokens",
]
