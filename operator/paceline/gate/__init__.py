"""From rounds to a verdict. Pure: the same measurements always give the same verdict, in any order.

    `decide`     the rule: looks, rejection, stop, tie, outcome            (rule.py)
    `Comparison` arms beside one reference, look by look      (comparison.py)
    `judge`      one candidate at one look, with the sentence that explains it (findings.py)
    `so_far`     the bounds between two looks
    `undecided`  the candidates that later rounds must contain; `baseline_is_open`: whether the baseline needs them
    `without_more_rounds`  the verdict if there are none
    `explain`    the sentence of a candidate's verdict
    `limits`     the limits on metrics besides throughput     (limits.py)
    `compare_outputs`  whether answers differ               (outputs.py)
    `crossover`  at which concurrencies speculation pays           (crossover.py)
    `best_by_class`  the fastest arm of each dataset               (classes.py)
    `smallest_shown`  before a run: the smallest speed-up it could show  (power.py)

docs/gate.md explains the rule and its error rates.
"""

from paceline.gate.classes import ClassResult, best_by_class
from paceline.gate.crossover import Crossing, Crossover, LoadLevel, Pace, crossover
from paceline.gate.findings import Finding, explain, threshold
from paceline.gate.limits import AT_A_RATE, OF_THE_SERVER, limits
from paceline.gate.outputs import OutputComparison, compare_outputs
from paceline.gate.power import Noise, assumed_noise, enough_requests, observed_noise, smallest_shown
from paceline.gate.rounds import rounds_table
from paceline.gate.rule import baseline_is_open, decide, so_far, undecided, without_more_rounds
from paceline.gate.server_failures import RETRACTED

__all__ = [
    "AT_A_RATE",
    "OF_THE_SERVER",
    "RETRACTED",
    "ClassResult",
    "Crossing",
    "Crossover",
    "Finding",
    "LoadLevel",
    "Noise",
    "OutputComparison",
    "Pace",
    "assumed_noise",
    "baseline_is_open",
    "best_by_class",
    "compare_outputs",
    "crossover",
    "decide",
    "enough_requests",
    "explain",
    "limits",
    "observed_noise",
    "rounds_table",
    "smallest_shown",
    "so_far",
    "threshold",
    "undecided",
    "without_more_rounds",
]
