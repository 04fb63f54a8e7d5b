"""What the rounds so far show of each candidate, before the gate looks. For a person who watches; nothing is decided by
it. Pure."""

from collections.abc import Mapping

from paceline import gate
from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core import Bounds, Purpose, RunSpec
from paceline.evidence.round_status import answers, measurements
from paceline.plan.objects import Object


def so_far(spec: RunSpec, run: Object) -> Mapping[str, Bounds]:
    """Candidate → its mean speed with the bounds that it would have if the gate looked now in place of its next look;
    none before two rounds, and none for a Sweep or a Search."""
    if spec.purpose is not Purpose.GATE:
        return {}
    records = from_status(BenchmarkRunStatus, run.get("status")).rounds or ()
    arms = gate.so_far(
        spec.gate,
        [arm.name for arm in spec.arms],
        {workload.name: workload.weight for workload in spec.workloads},
        tuple(measurements(records)),
        tuple(answers(records)),
        [workload.name for workload in spec.workloads if workload.rate],
    )
    means = ((name, arm.mean or arm.rated) for name, arm in arms.items())
    return {name: mean for name, mean in means if mean is not None}


def wanted(spec: RunSpec) -> float:
    """The ratio that the lower bound of a candidate's mean must exceed."""
    return 1 + spec.gate.minimum_improvement
