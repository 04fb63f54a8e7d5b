"""In what an arm with an engine of its own differs from the baseline: from the spec what no server can tell (engine,
image, variables), and from what the servers resolved all else."""

import re
from collections.abc import Mapping, Sequence

from paceline.api.round import Round
from paceline.core import Arm, Server
from paceline.core.text import count

_NAMED = 4
"""Differences that a sentence names; the others are counted."""
_NAME = re.compile(r"^[\w.]+(?= is )")


def engine_differences(server: Server, arm: Arm, rounds: Sequence[Round]) -> Mapping[str, str]:
    """Name of each difference → both values in a sentence; empty for an arm that shares the engine. `rounds` with a
    result."""
    if arm.engine is None:
        return {}
    own, shared = arm.engine, server.engine
    found = dict[str, str]()
    if own.type != shared.type:
        found["engine"] = f"engine is {own.type} {own.version}, but {shared.type} {shared.version} on the baseline"
    if own.image != shared.image:
        found["image"] = f"image is {own.image}, but {shared.image} on the baseline"
    before = {str(one["name"]): one for one in shared.env}
    for variable in own.env:
        if before.get(name := str(variable["name"])) != variable:
            found[name] = f"{name} is set for it, or set otherwise than on the baseline"
    last = next((one for record in reversed(rounds) for one in record.replicates if one.arm == arm.name), None)
    for text in last.differs if last else ():
        if name_of := _NAME.match(text):
            resolved = name_of[0]
            found["version" if resolved == "version" else f"--{resolved.replace('_', '-')}"] = text
    if last and (more := (last.differing or 0) - len(last.differs)) > 0:
        found[f"{count(more, 'more argument')}"] = f"{count(more, 'more argument')} that the servers resolved"
    return found


def in_words(arm: str, names: Sequence[str]) -> str:
    """`v0524 differs in image and --chunked-prefill-size`."""
    more = len(names) - _NAMED
    listed = [*names[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    return f"{arm} differs in {', '.join(listed[:-1])}{' and ' if listed[1:] else ''}{listed[-1]}"
