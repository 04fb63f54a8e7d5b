"""Arguments that must be equal on an arm with an engine of its own and on the baseline: what is written for both, and
so is not the change that is measured. All others may differ: they are shown, and counted, from what the servers
resolved."""

from collections.abc import Iterable, Mapping

from paceline.core import BASELINE, Arm, Server, server_of
from paceline.engines import ENGINES


def held_arguments(server: Server, arm: Arm) -> tuple[str, ...] | None:
    """Names of resolved arguments; of `Adapter.common` if the engine is of another type. None for an arm that shares
    the engine, whose arguments are all equal."""
    if arm.engine is None:
        return None
    adapter, base = ENGINES[arm.engine.type], ENGINES[server.engine.type]
    if adapter is not base:
        written = {*_values(arm.engine.args), *_values(server.engine.args)}
        both = adapter.common.keys() & base.common.keys()
        return tuple(sorted(name for name in both if not {adapter.common[name], base.common[name]} & written))
    ours, theirs = (
        _values(adapter.argv(one, of)) for one, of in ((server_of(server, arm), arm), (server, Arm(name=BASELINE)))
    )
    same = (name for name, value in ours.items() if theirs.get(name) == value)
    return tuple(sorted(adapter.resolved_as.get(name, name) for name in same))


def _values(argv: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Flag, as the resolved argument is named → its values."""
    found, name = dict[str, tuple[str, ...]](), ""
    for word in argv:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
            found[name] = (value,) if equals else ()
        elif name:
            found[name] = (*found[name], word)
    return found
