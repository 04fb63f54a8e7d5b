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
LOSSY = ("synthetic_", "fly_")
"""Keys begin so that belong to a verification which lets other tokens pass than the target would have written."""


def keys(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        seen: set[str] = set()
        for one in flags.given(arm.custom.args if arm.custom else ()):
            at = f"custom.args[{one.index}]"
            key = one.written.removeprefix(f"{OPTION}.")
            if "$(" in (one.value or ""):
                yield arm.name, at, f"{one.written}={one.value}: $(VAR) is not filled in; write the value"
            elif key == one.written or not key:
                yield arm.name, at, f"{one.written} is no key of it; write {OPTION}.KEY=VALUE"
            elif one.value is None:
                yield arm.name, at, f"{one.written} has no value; write {one.written}=VALUE"
            elif key in seen:
                yield arm.name, at, f"{key} is given twice; keep one"
            elif key in OWNED and (key != "model" or (arm.draft and arm.draft.model)):
                yield arm.name, at, f"{key} is set by Paceline from the resource; {OWNED[key]}"
            elif key.startswith(LOSSY) or (key == "rejection_sample_method" and one.value != "standard"):
                yield arm.name, at, f"{key} lets tokens pass that the target would not have written; remove it"
            seen.add(key)


def stray(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        for index, word in flags.stray(arm.custom.args if arm.custom else ()):
            yield arm.name, f"custom.args[{index}]", f"{word} belongs to no key; write {OPTION}.KEY=VALUE"
