"""Judges from the counters of a pool's servers whether its speculation still pays. Pure: clocks are arguments, and the
controller reads the counters.

    `Watched`    the planner's input for a pool: what serves, and what its evidence expects
    `observe`    add one reading of each server to the pool's windows, and judge them    (windows.py, judge.py)
    `Judgement`  the result for the planner: a kind, a sentence with numbers, since when

docs/guard.md explains the thresholds.
"""

from paceline.watch.model import Expected, Judgement, JudgementKind, Watched, WindowNumbers
from paceline.watch.observe import PoolWatch, Process, observe, period_seconds

__all__ = [
    "Expected",
    "Judgement",
    "JudgementKind",
    "PoolWatch",
    "Process",
    "Watched",
    "WindowNumbers",
    "observe",
    "period_seconds",
]
