"""Rules about the workloads' LoRA adapters: a server refuses requests for adapters that it has not loaded."""

import json
from collections.abc import Iterator, Mapping, Sequence

from paceline.core import Server, Workload
from paceline.engines.adapter import Adapter
from paceline.engines.refusal import Refusal

LOADED_BY: Mapping[str, str] = {"SGLang": "--lora-paths", "vLLM": "--lora-modules"}
"""Engine → the flag that loads adapters as NAME=PATH."""
SWITCH = "--enable-lora"
"""SGLang sets it if there are paths (`arg_groups/lora_hook.py`); vLLM requires it (`engine/arg_utils.py`)."""
RULE = "adapter-loaded"


def refusals(adapter: Adapter, server: Server, workloads: Sequence[Workload]) -> Iterator[Refusal]:
    """At most one refusal, for the first workload whose adapter is not loaded."""
    args, engine = server.engine.args, server.engine
    for load in workloads:
        named = load.dataset.adapter
        if not named:
            continue
        flag = LOADED_BY.get(engine.type, "")
        if adapter.probe(engine.version).adapter is None:
            why = (
                f"Paceline does not know how requests to {engine.type} {engine.version} name an adapter: leave "
                "adapter out"
            )
        elif named not in loaded(args, flag):
            why = f"requests of {load.name} name the adapter {named}: load it, with {flag} {named}=PATH in engine.args"
        elif engine.type == "vLLM" and SWITCH not in args:
            why = f"requests of {load.name} name the adapter {named}: add {SWITCH} to {flag} in engine.args"
        else:
            continue
        yield Refusal(rule=RULE, path="engine.args", message=why)
        return


def loaded(args: Sequence[str], flag: str) -> tuple[str, ...]:
    """The adapters' names, from NAME=PATH, JSON, or a bare path."""
    names, inside = list[str](), False
    for word in args:
        if word.startswith("--"):
            name, _, glued = word.partition("=")
            inside = name == flag
            word = glued
        if inside and word:
            names.append(_name(word))
    return tuple(names)


def _name(word: str) -> str:
    if word.startswith("{"):
        try:
            said = json.loads(word)
            return str(said.get("lora_name") or said.get("name") or "")
        except (ValueError, AttributeError):
            return ""
    return word.partition("=")[0]
