"""Where the winner of a gate is not the best that was measured: a mean over workloads hides it."""

from collections.abc import Iterator

from paceline.core import BASELINE
from paceline.plan.run.evidence import Evidence

NOTED = 0.025
"""Fraction by which another arm must be faster on a workload to be named."""


def faster_elsewhere(evidence: Evidence) -> str:
    """`code@8 is 6 % faster with adaptive`, for each workload on which another arm is; "" without a winner, and where
    it is within 2.5 % of the best everywhere. By the ratios that were measured, whatever became of the other arm."""
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
