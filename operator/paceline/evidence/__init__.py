"""From the bytes of a round to valid points.

`round_plan` is a round's input, `result` its output, `result_log` the encoding of the result in the client's log;
`outputs`, `clocks` and `arguments` are parts of the result. `judge` decides which points are valid, `failures` lists
what can go wrong instead, `loads` and `prompts` add notes about the load. `round_status` converts rounds to status and
status to the gate's measurements, and `fingerprint` hashes what a run measures. Of the modules from `judge` on, pods
use only `failures`. Import `round_status` by name: it needs the records of `api`, which pods must not load.
"""

from paceline.core.manifest import Scalar
from paceline.evidence.failures import Failure
from paceline.evidence.fingerprint import (
    fingerprint,
    narrowed,
    question,
    same_arms,
    same_server,
    surroundings,
)
from paceline.evidence.judge import Judged, judge_points
from paceline.evidence.outputs import Outputs
from paceline.evidence.prompts import of_these_prompts
from paceline.evidence.result import Point, Replicate, RoundResult
from paceline.evidence.result_log import AnswerError, decode, encode
from paceline.evidence.round_plan import ENVIRONMENT, ArmCommand, RoundPlan

__all__ = [
    "ENVIRONMENT",
    "AnswerError",
    "ArmCommand",
    "Failure",
    "Judged",
    "Outputs",
    "Point",
    "Replicate",
    "RoundPlan",
    "RoundResult",
    "Scalar",
    "decode",
    "encode",
    "fingerprint",
    "judge_points",
    "narrowed",
    "of_these_prompts",
    "question",
    "same_arms",
    "same_server",
    "surroundings",
]
