"""Reports where the winner of a gate is not the fastest arm on a workload, which the mean over workloads hides."""

from collections.abc import Iterator

from paceline.core import BASELINE
from paceline.plan.run.evidence import Evidence

NOTED = 0.025
"""An arm is named if it is faster on a workload by more than this fraction."""


def faster_elsewhere(evidence: Evidence) -> str:
    """`code@8 is 6 % faster with adaptive` for each workload on which another arm is faster; "" without a winner, or if
    the winner is within 2.5 % of the fastest arm everywhere. Uses the measured ratios, regardless of the other arm's
    verdict."""
    winner = evidence.verdict.winner
    return ", ".join(_each(evidence, winner)) if winner else ""


def _each(evidence: Evidence, winner: str) -> Iterator[str]:
    for workload, own in evidence.verdict.arms[winner].workloads.items():
        ratios = {
            name: arm.workloads[workload].ratio
            for name, arm in evidence.verdict.arms.items()
            if workload in arm.workloads
        }
        ratios[BASELINE] = 1.0
        best = max(ratios, key=lambda name: ratios[name])
        if ratios[best] > (1 + NOTED) * own.ratio:
            yield f"{workload} is {ratios[best] / own.ratio - 1:.0%} faster with {best}"
