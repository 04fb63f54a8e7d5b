"""When further rounds are pointless: for the whole run, or for one of its candidates."""

from collections.abc import Mapping, Sequence

from paceline.core import RunSpec
from paceline.evidence.failures import FEW, MANY, ONCE, VOIDS_THE_RUN, Failure
from paceline.gate import baseline_is_open, undecided
from paceline.plan.run.evidence import Evidence, FailedReplicate, failure_named
from paceline.plan.run.origin import own

_PATIENCE: Mapping[int, str] = {
    ONCE: "trying again would change nothing: ",
    FEW: f"{FEW} tries in a row gave no result; the last: ",
    MANY: f"the cluster ended {MANY} tries in a row; the last: ",
}
"""Permitted consecutive tries without a result → start of the message about the last one."""
MOST_FAILURES = 2
"""Consecutive rounds with an invalid point of an arm after which the arm, or its server, is to blame."""


def voided(evidence: Evidence) -> tuple[str, str] | None:
    """Why no verdict is possible despite earlier results: message and reason. None if one is possible."""
    for record in evidence.records:
        if record.error and (kind := failure_named(record.reason)) in VOIDS_THE_RUN:
            return record.error, kind.name
    return None


def given_up(evidence: Evidence) -> tuple[str, str] | None:
    """Why further rounds are pointless: message and reason. None if they are useful."""
    tries = [(failure_named(record.reason), record) for record in evidence.since_result]
    for permitted, sentence in _PATIENCE.items():
        alike = [(kind, record) for kind, record in tries if kind.tries == permitted]
        if len(alike) >= permitted:
            kind, record = alike[0]
            return f"{sentence}{record.error}", kind.name
    for name in evidence.references:
        failures = evidence.failures(name)
        # Of two, each shows in a second round that the other one is unreliable.
        if keeps_failing(failures) and (len(evidence.references) < 2 or len(failures) >= MOST_FAILURES):
            return f"the {name} could not be measured: {failures[0].why}", failures[0].failure.name
    most = most_rounds(evidence.spec)
    if not evidence.searches and len(own(evidence.results)) >= most and not evidence.verdict.final:
        return f"{most} rounds were measured and too many of them were invalid", Failure.NotMeasured.name
    return None


def most_rounds(spec: RunSpec) -> int:
    """Rounds with a result after which a run ends in any case."""
    return spec.gate.decide_after_rounds[-1] + MOST_FAILURES * len(spec.arms)


def in_question(evidence: Evidence) -> tuple[str, ...]:
    """Candidates of the next round: those undecided (in a Sweep: all) that do not keep failing. If one of them is not
    in the last round, because the container of another one was killed in it, those that failed there step back."""
    every = (arm.name for arm in evidence.spec.arms if arm.name not in evidence.references)
    candidates = every if evidence.sweep else undecided(evidence.verdict)
    left = tuple(arm for arm in candidates if not keeps_failing(evidence.failures(arm)))
    last = evidence.results[-1].points if evidence.results else ()
    failed = {point.arm for point in last if not point.valid}
    return tuple(arm for arm in left if arm not in failed) if {*left} - {point.arm for point in last} else left


def is_open(evidence: Evidence) -> bool:
    """Whether another round is needed: for a candidate, or for the baseline of a run with an incumbent."""
    return bool(in_question(evidence)) or baseline_is_open(evidence.verdict)


def keeps_failing(failures: Sequence[FailedReplicate]) -> bool:
    """Whether these failures of one arm, newest first, reach the limit of its latest kind of failure."""
    return bool(failures) and len(failures) >= min(MOST_FAILURES, failures[0].failure.tries)
