"""Whether a measured run may be evidence in a cluster, and how to apply it. Pure."""

import math
from datetime import datetime

import yaml

from paceline import api
from paceline.api.round import rounds_of
from paceline.core.manifest import Object
from paceline.plan.objects import brings_rounds
from paceline.plan.run.imported import UnfitError, brought

NAMEABLE = 2
"""Arms of a gate about one tree, which a pool can ask for; a gate about a schedule uses other loads than the pool's."""


def applying(file: str, run: Object, now: datetime, *, searched: bool = False) -> tuple[str, ...]:
    """Lines for a person; none for a run without rounds. `searched`: a search before this run found its candidate, and
    the operator does not know that search; so the run is evidence for a pool that names the candidate."""
    if not brings_rounds(run):
        return ()
    spec = api.run(run)
    assert spec.measured
    try:
        brought(spec, spec.measured, rounds_of(run), now)
    except UnfitError as error:
        return (f"no evidence for a cluster: {error}",)
    if searched and len(spec.arms) > NAMEABLE:
        return ("no evidence for a cluster: a pool compares a schedule only after a search of its own",)
    where = f"before its pool is measured there{_as_candidate(run) if searched else ''}, where the"
    return (f"kubectl apply -f {file}  evidence in a cluster, {where} administrator allows it (evidence.imported)",)


def _as_candidate(run: Object) -> str:
    """The spec with which a pool asks the question that this run answered."""
    found = {key: value for key, value in run["spec"]["arms"][1].items() if value != []}
    # The spec's head may differ from the winner's. The cluster resolves the commit again.
    head = found["draft"]
    fields = ("algorithm", "name", "source", "revision")
    found["draft"] = {key: head[key] for key in fields if key in head and head[key] != "main"}
    candidates = yaml.dump([found], default_flow_style=True, sort_keys=False, width=math.inf).strip()
    return f" with `candidates: {candidates}` in place of search"
