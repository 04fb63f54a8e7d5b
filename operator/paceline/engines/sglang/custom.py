"""An algorithm without a name in the API: `draft.name` is SGLang's name of it, built in (UNO) or registered by a plugin
of the image, and `custom.args` are its own flags. It is measured without assumptions; we refuse only changes that make
it another experiment. Sources: 0.5.23, `speculative/spec_registry.py`, `fields/spec.py`."""

import json
from collections.abc import Iterator, Mapping

from paceline.core import Arm
from paceline.core.manifest import Scalar
from paceline.engines.arguments import FlagList, ParsedFlag
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, EngineRule, variables
from paceline.engines.sglang.arguments import LOSSY, SPECULATIVE, flag_list
from paceline.engines.sglang.probe import PROMOTED

OWN_WORDS = {
    "--speculative-algorithm": "write draft.name",
    "--speculative-draft-model-path": "write draft.source",
    "--speculative-draft-model": "write draft.source",
    "--speculative-draft-model-revision": "write draft.revision",
}
BUILT_IN = ("--uno-",)
"""Prefixes of SGLang's own flags that belong to one algorithm and do not begin with "speculative" (0.5.23)."""
_DEEPEST = 100
"""Maximum nesting of brackets in a value: the parser fails at much deeper ones."""
SECRETIVE = ("key", "token", "secret", "password")
"""A round hides the text of arguments with such names (`evidence.arguments.pick`)."""


def algorithm(arm: Arm) -> str:
    """Registered names are upper-case."""
    assert arm.draft
    assert arm.draft.name
    return arm.draft.name.upper()


def expected(version: str, arm: Arm) -> Mapping[str, Scalar]:
    """Evidence that its flags took effect: the resolved argument has the flag's first name. Only numbers, words and
    switches are compared."""
    name, flags = algorithm(arm), flag_list(version)
    arguments: dict[str, Scalar] = {"speculative_algorithm": PROMOTED.get(name, name)}
    for parsed in _parsed(arm, flags):
        argument, value = parsed.name.removeprefix("--").replace("-", "_"), _value(parsed)
        secretive = isinstance(value, str) and any(word in argument for word in SECRETIVE)
        is_size = parsed.flag is not None and parsed.flag.kind == "size"
        if isinstance(value, str | int | float | bool) and not secretive and not is_size:
            arguments[argument] = value
    return arguments


MOVES = {"UNO": ("enable_lora_overlap_loading", "lora_strict_loading")}
"""Algorithm → further arguments that it sets (arg_groups/speculative_hook.py:584 of 0.5.23)."""


def moved(arms: tuple[Arm, ...]) -> tuple[str, ...]:
    """Resolved arguments that custom algorithms set, by their own flags (`_foreign`) or by themselves."""
    names = dict.fromkeys(algorithm(arm) for arm in arms if arm.custom)
    own = (f"{name.lower().replace('-', '_')}_*" for name in names)
    return (*own, *(argument for name in names for argument in MOVES.get(name, ())))


def _value(parsed: ParsedFlag) -> object:
    """A switch is true; text that is not JSON remains text."""
    if not parsed.values:
        return True
    try:
        return json.loads(parsed.value) if len(parsed.values) == 1 else list(parsed.values)
    except ValueError:
        return parsed.value


def _foreign(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        for parsed in _parsed(arm, configuration.flags):
            if fault := _fault(parsed, arm, configuration.flags):
                yield parsed.refused(fault)


def _fault(parsed: ParsedFlag, arm: Arm, flags: FlagList) -> str:
    name, written = algorithm(arm), parsed.written
    own = f"--{name.lower().replace('_', '-')}-"
    if not written:
        return f"{parsed.value} belongs to no flag; write --flag=VALUE"
    if any(variables(parsed)):
        return f"{written}: $(VAR) is not filled in; write the value"
    if parsed.name in LOSSY:
        return f"{parsed.name}: {LOSSY[parsed.name]}; remove it"
    if sum(word.count("[") + word.count("{") for word in parsed.values) > _DEEPEST:
        return f"{written} has more than {_DEEPEST} brackets; write fewer"
    if not parsed.flag and (meant := flags.short_for(written)):
        return f"{written} is short for {' or '.join(meant[:3])}; write it in full"
    if way_out := OWN_WORDS.get(parsed.name):
        return f"{written} is set by Paceline from the resource; {way_out}"
    elsewhere = "move it to spec.engine.args, where it is the same on all arms"
    # A server's flag may begin with the algorithm's first word (`load`, `max`).
    if parsed.flag and not parsed.name.startswith((SPECULATIVE, *BUILT_IN)):
        return f"{written} is a flag of the server and not of {name}; {elsewhere}"
    if not written.startswith((SPECULATIVE, own)):
        return f"{written} is not a flag of {name}: those begin with {SPECULATIVE} or {own}; {elsewhere}"
    return ""


def _twice(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        names = {parsed.name for parsed in (*configuration.shared, *configuration.own(arm))}
        for parsed in _parsed(arm, configuration.flags):
            if parsed.name in names:
                yield parsed.refused(f"{parsed.written} is given twice; keep one")
            names.add(parsed.name)


def _parsed(arm: Arm, flags: FlagList) -> tuple[ParsedFlag, ...]:
    return flags.parse(arm.custom.args if arm.custom else (), arm.name, "custom.args")


RULES = (
    EngineRule(
        id="custom-others",
        check=_foreign,
        reason="arms would differ in more than the speculation, or what is accepted would not be the target's",
        source="ours; fields/spec.py",
    ),
    EngineRule(id="custom-twice", check=_twice, reason="the last of two flags wins", source="argparse"),
)
