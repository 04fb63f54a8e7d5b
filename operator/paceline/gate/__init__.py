"""From rounds to a verdict. Pure: the same measurements always come to the same verdict, in any order.

    `decide`     the rule: looks, rejection, stop, tie, outcome            (rule.py)
    `judge`      one candidate at one look, and the sentence that says why (findings.py)
    `undecided`  the candidates that later rounds must still contain
    `explain`    the sentence of a candidate's verdict
    `limits`     what is bounded besides throughput              (limits.py)
    `seen`       what the arms' answers show                   (outputs.py)
    `crossover`  at which concurrencies speculation pays           (crossover.py)

Why the rule is what it is, and how often it errs: docs/gate.md.
"""

from paceline.gate.crossover import Crossing, Crossover, Load, Pace, crossover
from paceline.gate.findings import Finding, explain, threshold
from paceline.gate.limits import OF_THE_SERVER, limits
from paceline.gate.outputs import Seen, seen
from paceline.gate.own_ends import RETRACTED
from paceline.gate.rule import decide, undecided

__all__ = [
    "OF_THE_SERVER",
    "RETRACTED",
    "Crossing",
    "Crossover",
    "Finding",
    "Load",
    "Pace",
    "Seen",
    "crossover",
    "decide",
    "explain",
    "limits",
    "seen",
    "threshold",
    "undecided",
]
