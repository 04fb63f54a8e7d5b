"""An algorithm without a word in the API: `draft.name` is vLLM's method, `custom.args` are keys of its speculative
configuration. It is measured, and nothing about it is assumed; we refuse only another experiment.
Sources: `config/speculative.py` of 0.33.0.
"""

from collections.abc import Iterator, Set

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
DEEPEST = 100
"""Brackets of a value: one nested much deeper cannot be parsed."""
LOSSY = ("synthetic_", "fly_")
"""How the keys of a verification begin that lets tokens pass which the target would not have written."""


def parsed_keys(arm: Arm) -> tuple[ParsedFlag, ...]:
    """Each as --speculative-config.KEY=VALUE."""
    return FLAGS.parse(arm.custom.args if arm.custom else (), arm.name, "custom.args")


def keys(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        earlier: set[str] = set()
        for parsed in parsed_keys(arm):
            key = parsed.written.removeprefix(f"{FLAG}.")
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
    if outermost in MANAGED and (outermost != "model" or (arm.draft and arm.draft.model)):
        return f"{outermost} is set by Paceline from the resource; {MANAGED[outermost]}"
    if parsed.value.count("[") + parsed.value.count("{") > DEEPEST:
        return f"{key} has more than {DEEPEST} brackets; write fewer"
    if key.startswith(LOSSY) or (outermost == "rejection_sample_method" and parsed.value != "standard"):
        return f"{key} lets tokens pass that the target would not have written; remove it"
    return ""


MTP = "_mtp"
"""How `MTPModelTypes` end, one a model (config/speculative.py:35); vLLM makes `mtp` of each of them (:1246)."""


def known(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        name = (arm.draft and arm.draft.name) or ""
        if arm.custom and name.lower().endswith(MTP):
            message = f"{name} is vLLM's name of MTP on one model; write algorithm: MTP"
            yield Refusal(arm=arm.name, path="draft.name", message=message)


def stray(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        for parsed in parsed_keys(arm):
            for index, word in parsed.surplus:
                yield parsed.refused(f"{word} belongs to no key; write {FLAG}.KEY=VALUE", index)
