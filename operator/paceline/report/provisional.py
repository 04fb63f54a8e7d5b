"""A run under way before its gate's first look: the bounds that a look would give now, marked as provisional."""

from collections.abc import Iterator
from dataclasses import replace

from paceline import core, gate
from paceline.api.run_status import BenchmarkRunStatus, Result
from paceline.evidence.round_status import answers, measurements
from paceline.gate.findings import Finding
from paceline.report import read
from paceline.report.model import MEANS, Manifest

PROVISIONAL = "provisional"
"""In place of the outcome of a candidate that waits for the first look."""


def with_estimates(spec: Manifest, rule: core.Gate, status: BenchmarkRunStatus) -> BenchmarkRunStatus:
    """The status of a run without a verdict, with results for the candidates that have too few rounds for a look."""
    waiting = {one.arm for one in status.arm_verdicts or () if one.reason.startswith(Finding.TOO_FEW_ROUNDS)}
    if status.verdict or not waiting:
        return status
    measured = tuple(measurements(status.rounds or ()))
    found = gate.so_far(
        rule,
        [arm["name"] for arm in spec["arms"]],
        {read.workload(one): float(one.get("weight", 1)) for one in spec["workloads"]},
        measured,
        tuple(answers(status.rounds or ())),
        read.rated(spec),
    )
    why = until_the_first_look(rule, len({one.round for one in measured}))
    return replace(
        status,
        results=(*(status.results or ()), *(row for arm in found if arm in waiting for row in _rows(arm, found[arm]))),
        arm_verdicts=tuple(
            replace(one, outcome=PROVISIONAL, reason="; ".join(filter(None, (why, one.reason.partition("; ")[2]))))
            if one.arm in waiting
            else one
            for one in status.arm_verdicts or ()
        ),
    )


def until_the_first_look(rule: core.Gate, rounds: int) -> str:
    """`rounds`: measured so far. Empty once there were enough for a look."""
    first = rule.decide_after_rounds[0]
    return f"{rounds} of {first} rounds; no decision before round {first}" if rounds < first else ""


def _rows(arm: str, verdict: core.ArmVerdict) -> Iterator[Result]:
    means = zip(MEANS, (verdict.mean, verdict.rated), strict=True)
    for workload, bounds in (*means, *verdict.workloads.items()):
        if bounds is not None:
            yield Result(arm=arm, workload=workload, ratio=bounds.ratio, lower=bounds.lower, upper=bounds.upper)
