"""Which arms deserve a gate: from a grid of trees to one, for a fraction of the grid's points and server starts. Pure.

    `proceed`    what to measure next, given what has been measured; at the end, what was found   (steps.py)
    `Question`   the options, the workloads, the limits                                    (question.py)
    `rank`       a guess at every tree's speed: whom to measure next, never who wins        (rank.py)
    `so_far`     how every arm stands                                                        (so_far.py)
    `Table`      the measured points, arms by workloads                                     (table.py)
    `sweep`      chains of a few depths at every load                                     (chains.py)

The state of a search is its measured points and nothing else: it can be interrupted anywhere and goes on with the cells
that are missing. Why it is as it is, and what it costs: docs/searching.md.
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
