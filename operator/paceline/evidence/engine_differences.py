"""In what an arm with an engine of its own differs from the baseline: from the spec what no server can tell (engine,
image, variables), and from what the servers resolved all else."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from paceline.api.round import Round
from paceline.core import Arm, Engine, Server
from paceline.core.manifest import Object
from paceline.core.text import count

_NAMED = 4
"""Differences that a sentence names; the others are counted."""
_NAME = re.compile(r"^[\w.]+(?= is )")


@dataclass(frozen=True, slots=True)
class EngineDifferences:
    """`named`: name of a difference → both values in a sentence; `more`: resolved arguments that no round names."""

    named: Mapping[str, str]
    more: int = 0

    @property
    def sentences(self) -> tuple[str, ...]:
        more = (f"{count(self.more, 'more argument')} that the servers resolved",) if self.more else ()
        return (*self.named.values(), *more)

    def in_words(self, arm: str) -> str:
        """`v0524 differs in image and --chunked-prefill-size`; "" without a difference."""
        names = list(self.named)
        more = max(0, len(names) - _NAMED) + self.more
        listed = names[:_NAMED] + ([f"{more} more"] if more else [])
        *first, last = listed or [""]
        return f"{arm} differs in {' and '.join(filter(None, (', '.join(first), last)))}" if last else ""


def image_in(spec: Object, name: str) -> str:
    """The image of an arm in a run's spec."""
    for arm in spec["arms"]:
        if arm["name"] == name and "image" in arm.get("engine", {}):
            return str(arm["engine"]["image"])
    return str(spec["engine"]["image"])


def engine_differences(server: Server, arm: Arm, rounds: Sequence[Round]) -> EngineDifferences:
    """Empty for an arm that shares the engine. `rounds` with a result."""
    if arm.engine is None:
        return EngineDifferences({})
    last = next((one for record in reversed(rounds) for one in record.replicates if one.arm == arm.name), None)
    resolved = {_flag(name[0]): text for text in (last.differs if last else ()) if (name := _NAME.match(text))}
    more = max(0, (last.differing or 0) - len(last.differs)) if last else 0
    named = {**dict(_of_the_spec(arm.engine, server.engine)), **resolved}
    return EngineDifferences(named, more)


def _of_the_spec(own: Engine, shared: Engine) -> Iterator[tuple[str, str]]:
    if own.type != shared.type:
        yield "engine", f"engine is {own.type} {own.version}, but {shared.type} {shared.version} on the baseline"
    if own.image != shared.image:
        yield "image", f"image is {own.image}, but {shared.image} on the baseline"
    for variable in own.env:
        if variable not in shared.env:
            yield str(variable["name"]), f"{variable['name']} is set otherwise than on the baseline"


def _flag(resolved: str) -> str:
    return resolved if resolved == "version" else f"--{resolved.replace('_', '-')}"
