"""From the counters of a pool's servers to a judgement of whether its speculation still pays. Pure: clocks are
arguments, pages are read by the controller.

    `Watched`    what the planner says of a pool: what serves, and what its evidence expects
    `observe`    one more reading of each server → the pool's windows and their judgement    (windows.py, judge.py)
    `Judgement`  what the planner is told: a kind, a sentence with numbers, since when

Why the thresholds are what they are: docs/guard.md.
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
