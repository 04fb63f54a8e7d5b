"""Finds one tree of a grid for a gate, at a fraction of the grid's points and server starts. Pure.

    `proceed`    what to measure next, given what has been measured; at the end, what was found   (steps.py)
    `Question`   the options, the workloads, the limits                                    (question.py)
    `rank`       an estimate of every tree's speed: decides what to measure, not what wins   (rank.py)
    `so_far`     the state of every arm                                                         (so_far.py)
    `Table`      the measured points, arms by workloads                                     (table.py)
    `sweep`      chains of a few depths at every load                                     (chains.py)

The measured points are the whole state of a search: it can be interrupted anywhere and continues with the missing
cells. docs/searching.md explains the design and its cost.
"""

from paceline.search.question import ArmOnWorkload, Found, Limits, Measure, NextStep, Observation, Option, Question
from paceline.search.so_far import ArmSoFar, arms_so_far
from paceline.search.steps import proceed
from paceline.search.table import Table

__all__ = [
    "ArmOnWorkload",
    "ArmSoFar",
    "Found",
    "Limits",
    "Measure",
    "NextStep",
    "Observation",
    "Option",
    "Question",
    "Table",
    "arms_so_far",
    "proceed",
]
