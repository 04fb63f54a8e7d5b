"""A server keeps its revision where another load changes nothing of it.

The largest concurrency is part of a revision's hash, and of the arguments only where it is more than an engine's least
number of requests (`FEWEST_RUNNING_REQUESTS`) has room for. Below that the servers that there are need no restart, and
what was earned stays (0032).
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from paceline.core import Arm, Server
from paceline.engines import ENGINES
from paceline.render import revision_of

MOST = 4096
"""The largest concurrency that a pool may name (api/pool.py); one above a limit of `engine.args` is refused."""


def same_argv(server: Server, arm: Arm, load: int) -> bool:
    """The arm's arguments are the same at another largest concurrency."""
    argv = ENGINES[server.engine.name].argv
    return argv(replace(server, largest_concurrency=load), arm) == argv(server, arm)


def revision_among(server: Server, arm: Arm, remembered: Iterable[str], kept: Collection[str]) -> str:
    """The arm's own revision; or one of the same arguments at another load, if it is remembered or kept: those that
    are remembered first, in their order."""
    own = revision_of(server, arm)
    order = [*remembered, *([own] if own in kept else []), *sorted(kept), own]
    others = set(order) - {own}
    same = {own, *(others & set(_at_other_loads(server, arm)))} if others else {own}
    return next(revision for revision in order if revision in same)


def _at_other_loads(server: Server, arm: Arm) -> Iterator[str]:
    """Who has room for two loads has it for all between them."""
    load, limit = server.largest_concurrency, ENGINES[server.engine.name].bounds(server).get("requests")
    most = min(MOST, limit.most) if limit else MOST
    for loads in (range(load - 1, 0, -1), range(load + 1, most + 1)):
        for other in loads:
            if not same_argv(server, arm, other):
                break
            yield revision_of(replace(server, largest_concurrency=other), arm)
