"""An algorithm that has no word here: `draft.name` is vLLM's method, `custom.args` are keys of its speculative
configuration. It is measured, and nothing about it is assumed; refused is only what would make another question of it.
Sources: `config/speculative.py` of 0.33.0.
"""

from collections.abc import Iterator

from paceline.core import Arm, Server
from paceline.engines.vllm import flags

Found = tuple[str | None, str, str]

OPTION = "--speculative-config"
OWNED = {
    "method": "write draft.name",
    "model": "write draft.source",
    "revision": "write draft.revision",
    "code_revision": "write draft.revision",
}
DEEPEST = 100
"""Brackets of a value: one nested much deeper cannot be read."""
LOSSY = ("synthetic_", "fly_")
"""Keys begin so that belong to a verification which lets other tokens pass than the target would have written."""


def keys(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        seen: set[str] = set()
        for one in flags.given(arm.custom.args if arm.custom else ()):
            at = f"custom.args[{one.index}]"
            key = one.written.removeprefix(f"{OPTION}.")
            outermost = key.partition(".")[0]
            if "$(" in (one.value or ""):
                yield arm.name, at, f"{one.written}={one.value}: $(VAR) is not filled in; write the value"
            elif key == one.written or "" in key.split("."):
                yield arm.name, at, f"{one.written} is no key of it; write {OPTION}.KEY=VALUE"
            elif one.value is None:
                yield arm.name, at, f"{one.written} has no value; write {one.written}=VALUE"
            elif key in seen:
                yield arm.name, at, f"{key} is given twice; keep one"
            elif other := next((other for other in seen if f"{key}.".startswith(f"{other}.")), ""):
                yield arm.name, at, f"{key} is within {other}, which has a value already; keep one of the two"
            elif other := next((other for other in seen if other.startswith(f"{key}.")), ""):
                yield arm.name, at, f"{key} would take the place of {other}; keep one of the two"
            elif outermost in OWNED and (outermost != "model" or (arm.draft and arm.draft.model)):
                yield arm.name, at, f"{outermost} is set by Paceline from the resource; {OWNED[outermost]}"
            elif one.value.count("[") + one.value.count("{") > DEEPEST:
                yield arm.name, at, f"{key} has more than {DEEPEST} brackets; write fewer"
            elif key.startswith(LOSSY) or (outermost == "rejection_sample_method" and one.value != "standard"):
                yield arm.name, at, f"{key} lets tokens pass that the target would not have written; remove it"
            seen.add(key)


MTP = "_mtp"
"""How `MTPModelTypes` end, one a model (config/speculative.py:35); vLLM makes `mtp` of each of them (:1246)."""


def known(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """What is known of MTP would not be checked, nor what it is told of its depth."""
    for arm in arms:
        name = (arm.draft and arm.draft.name) or ""
        if arm.custom and name.lower().endswith(MTP):
            yield arm.name, "draft.name", f"{name} is what vLLM calls MTP on one model; write algorithm: MTP"


def stray(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        for index, word in flags.stray(arm.custom.args if arm.custom else ()):
            yield arm.name, f"custom.args[{index}]", f"{word} belongs to no key; write {OPTION}.KEY=VALUE"
