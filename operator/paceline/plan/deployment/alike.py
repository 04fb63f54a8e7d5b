"""A server keeps its revision if another load does not change its arguments.

The largest concurrency is part of a revision's hash. It changes the arguments only above an engine's least number of
running requests (`FEWEST_RUNNING_REQUESTS`). Below that the servers need no restart, and a promoted arm stays
(decision 0032).
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from paceline.core import Arm, Server
from paceline.engines import ENGINES
from paceline.plan.objects import Object
from paceline.render import revision_of

LOAD = "maxConcurrency"
"""Field of a run's spec; absent if it is the largest concurrency of its workloads."""


def same_argv(server: Server, arm: Arm, load: int) -> bool:
    """Whether the arm's arguments are the same at another largest concurrency."""
    argv = ENGINES[server.engine.type].argv
    return argv(replace(server, max_concurrency=load), arm) == argv(server, arm)


def revision_among(
    server: Server, arm: Arm, remembered: Iterable[str], kept: Collection[str], loads: Collection[int]
) -> str:
    """The arm's own revision, or that of the same arguments at another of these loads if it is remembered or kept. The
    order: remembered, its own if kept, kept, its own."""
    own = revision_of(server, arm)
    order = [*remembered, *([own] if own in kept else []), *sorted(kept), own]
    at_other_loads = {
        revision_of(replace(server, max_concurrency=load), arm)
        for load in loads
        if load != server.max_concurrency and same_argv(server, arm, load)
    }
    return next(revision for revision in order if revision == own or revision in at_other_loads)


def loads_of(runs: Iterable[Object]) -> frozenset[int]:
    """The largest concurrency that each of these BenchmarkRuns was made for."""
    specs = [run["spec"] for run in runs]
    return frozenset(spec.get(LOAD) or max(load["concurrency"] for load in spec["workloads"]) for spec in specs)
