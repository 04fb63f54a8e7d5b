"""What the rounds so far show of each candidate, before the gate looks. For a person who watches; nothing is decided by
it. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core import Bounds, RunSpec
from paceline.plan.objects import Object
from paceline.plan.run.evidence import Evidence

FEWEST = 2
"""Rounds of which an interval can be made."""


def so_far(spec: RunSpec, run: Object) -> Mapping[str, Bounds]:
    """Candidate → its mean speed with the bounds that it would have if the gate looked now in place of its next look;
    none before two rounds, and none for a Sweep or a Search."""
    evidence = Evidence(spec=spec, records=from_status(BenchmarkRunStatus, run.get("status")).rounds or ())
    measured, looks = len(evidence.results), spec.gate.decide_after_rounds
    if evidence.sweep or evidence.searches or measured < FEWEST:
        return {}
    now = evidence
    if measured not in looks and (later := [look for look in looks if look > measured]):
        earlier = tuple(measured if look == later[0] else look for look in looks)
        now = Evidence(
            spec=replace(spec, gate=replace(spec.gate, decide_after_rounds=earlier)), records=evidence.records
        )
    means = ((name, arm.mean or arm.rated) for name, arm in now.verdict.arms.items())
    return {name: mean for name, mean in means if mean is not None}


def wanted(spec: RunSpec) -> float:
    """The ratio that the lower bound of a candidate's mean must exceed."""
    return 1 + spec.gate.minimum_improvement
