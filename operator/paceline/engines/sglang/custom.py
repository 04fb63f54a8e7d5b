"""An algorithm that has no word here: `draft.name` is what SGLang calls it, built in (UNO) or registered by a plugin of
the image, and `custom.args` are its own flags. It is measured, and nothing about it is assumed; refused is only what
would make another question of it. Sources: 0.5.23, `speculative/spec_registry.py`, `fields/spec.py`.
"""

import json
from collections.abc import Iterator, Mapping

from paceline.core import Arm
from paceline.engines.adapter import Refusal, Scalar
from paceline.engines.sglang.case import Case, Rule, Written
from paceline.engines.sglang.flags import Given, flags, given
from paceline.engines.sglang.owned import LOSSY, SPECULATIVE
from paceline.engines.sglang.probe import PROMOTED

OWN_WORDS = {
    "--speculative-algorithm": "write draft.name",
    "--speculative-draft-model-path": "write draft.source",
    "--speculative-draft-model": "write draft.source",
    "--speculative-draft-model-revision": "write draft.revision",
}
BUILT_IN = ("--uno-",)
"""How flags of SGLang's own begin that belong to one algorithm and are not called speculative (0.5.23)."""
DEEPEST = 100
"""Brackets of a value: one nested much deeper cannot be read."""
SECRETIVE = ("key", "token", "secret", "password")
"""Text of an argument with such a name is not told by a round (`evidence.pick`)."""


def algorithm(arm: Arm) -> str:
    """Registered names are in capitals."""
    assert arm.draft
    assert arm.draft.name
    return arm.draft.name.upper()


def expected(version: str, arm: Arm) -> Mapping[str, Scalar]:
    """That the flags which were named took effect: a resolved argument is called as its flag's first name. What is no
    number, word or switch is not compared."""
    name = algorithm(arm)
    told: dict[str, Scalar] = {"speculative_algorithm": PROMOTED.get(name, name)}
    for one in _given(arm):
        flag, value = flags(version).get(one.name), _read(one)
        argument = (flag.name if flag else one.name).removeprefix("--").replace("-", "_")
        secretive = isinstance(value, str) and any(word in argument for word in SECRETIVE)
        if isinstance(value, str | int | float | bool) and not secretive and (flag is None or flag.kind != "size"):
            told[argument] = value
    return told


MOVES = {"UNO": ("enable_lora_overlap_loading", "lora_strict_loading")}
"""Algorithm → what it sets besides (arg_groups/speculative_hook.py:584 of 0.5.23)."""


def moved(arms: tuple[Arm, ...]) -> tuple[str, ...]:
    """Resolved arguments that their own flags set (`_others`), or they themselves, and so no other arm has."""
    names = dict.fromkeys(algorithm(arm) for arm in arms if arm.custom)
    own = (f"{name.lower().replace('-', '_')}_*" for name in names)
    return (*own, *(one for name in names for one in MOVES.get(name, ())))


def _read(one: Given) -> object:
    """A switch is true; text that is no JSON stays text."""
    if not one.values:
        return True
    try:
        return json.loads(one.values[0]) if len(one.values) == 1 else list(one.values)
    except ValueError:
        return one.values[0]


def _given(arm: Arm) -> tuple[Given, ...]:
    return tuple(given(arm.custom.args if arm.custom else ()))


def _others(case: Case) -> Iterator[Refusal]:
    for arm, one in _written(case):
        own = f"--{algorithm(arm).lower().replace('_', '-')}-"
        if not one.given.name:
            yield one.refused(f"{one.given.values[0]} belongs to no flag; write --flag=value")
        elif any("$(" in word for word in (one.given.name, *one.given.values)):
            yield one.refused(f"{one.given.name}: $(VAR) is not filled in; write the value")
        elif one.name in LOSSY:
            yield one.refused(f"{one.name} lets tokens pass that the target would not have written; remove it")
        elif sum(word.count("[") + word.count("{") for word in one.given.values) > DEEPEST:
            yield one.refused(f"{one.given.name} has more than {DEEPEST} brackets; write fewer")
        elif meant := _short_for(one, case):
            yield one.refused(f"{one.given.name} is short for {' or '.join(meant[:3])}; write the flag in full")
        elif way_out := OWN_WORDS.get(one.name):
            yield one.refused(f"{one.given.name} is set by Paceline from the resource; {way_out}")
        elif _everybodys(one):
            yield one.refused(
                f"{one.given.name} is the server's and no flag of {algorithm(arm)}; move it to spec.engine.args, where "
                "it is the same on all arms"
            )
        elif not one.given.name.startswith((SPECULATIVE, own)):
            yield one.refused(
                f"{one.given.name} is no flag of {algorithm(arm)}: those begin with {SPECULATIVE} or {own}; move it to "
                "spec.engine.args, where it is the same on all arms"
            )


def _twice(case: Case) -> Iterator[Refusal]:
    seen = {(arm.name, one.name) for arm in case.arms for one in (*case.shared, *case.own(arm))}
    for arm, one in _written(case):
        if (arm.name, one.name) in seen:
            yield one.refused(f"{one.given.name} is given twice; keep one")
        seen.add((arm.name, one.name))


def _short_for(one: Written, case: Case) -> list[str]:
    """The release's own flags that argparse would take it for, unless it is one itself."""
    return [] if one.flag else sorted(name for name in case.flags if name.startswith(one.given.name))


def _everybodys(one: Written) -> bool:
    """A flag of the release that is no algorithm's, though one may be called like its first word (`load`, `max`)."""
    return one.flag is not None and not one.name.startswith((SPECULATIVE, *BUILT_IN))


def _written(case: Case) -> Iterator[tuple[Arm, Written]]:
    for arm in case.arms:
        for one in _given(arm):
            yield (
                arm,
                Written(arm=arm.name, path=f"custom.args[{one.index}]", given=one, flag=case.flags.get(one.name)),
            )


RULES = (
    Rule(
        id="custom-others",
        broken=_others,
        reason="arms would differ in more than the speculation, or what is accepted would not be the target's",
        source="ours; fields/spec.py",
    ),
    Rule(id="custom-twice", broken=_twice, reason="the last of two flags wins", source="argparse"),
)
