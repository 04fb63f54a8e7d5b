"""Whether a measured run may be evidence in a cluster, and how it gets there. Pure."""

import math
from datetime import datetime

import yaml

from paceline import api
from paceline.api.round import rounds_of
from paceline.core.manifest import Object
from paceline.plan.objects import brings_rounds
from paceline.plan.run.imported import UnfitError, brought

NAMEABLE = 2
"""Arms of a gate about one tree, which a pool can name; about a schedule it asks at other loads than the pool's."""


def applying(file: str, run: Object, now: datetime, *, searched: bool = False) -> tuple[str, ...]:
    """Lines for a person; none for a run that brings no rounds along. `searched`: what it compares with the baseline
    was found by a search before it, which the operator does not know; so it is evidence of a pool that names it."""
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
    """How a pool asks the question that this run has answered."""
    found = {key: value for key, value in run["spec"]["arms"][1].items() if value != []}
    # The spec's head need not be the winner's. A commit is resolved anew there.
    head = found["draft"]
    fields = ("algorithm", "name", "source", "revision")
    found["draft"] = {key: head[key] for key in fields if key in head and head[key] != "main"}
    candidates = yaml.dump([found], default_flow_style=True, sort_keys=False, width=math.inf).strip()
    return f" with `candidates: {candidates}` in place of search"
