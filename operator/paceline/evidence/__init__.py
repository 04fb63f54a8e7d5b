"""A round's bytes → valid points.

`question` is what a round is asked, `answer` what it says, `outputs` the part of that about what the arms wrote,
`judge` which points of it may be believed, `failures` what goes wrong instead, `loads` and `prompts` what is said of
the load itself, `keep` what a run's status keeps of it and what the gate reads from there; `asked` names what a run
measures and what it is asked. Pods use the first three only, and no more is imported for them: who needs `keep`, which
has the records of status, names it.
"""

from paceline.evidence.answer import AnswerError, Point, Replicate, RoundResult, decode, encode
from paceline.evidence.asked import fingerprint, narrowed, question, same_arms, same_server, surroundings
from paceline.evidence.failures import Failure
from paceline.evidence.judge import Judged, judge
from paceline.evidence.outputs import Outputs
from paceline.evidence.prompts import of_these_prompts
from paceline.evidence.question import ENVIRONMENT, ArmCommand, RoundPlan, Scalar

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
    "judge",
    "narrowed",
    "of_these_prompts",
    "question",
    "same_arms",
    "same_server",
    "surroundings",
]
