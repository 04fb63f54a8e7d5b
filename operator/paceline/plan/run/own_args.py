"""What a candidate's servers have that the baseline's do not, apart from fields of its shape in the API: arguments, and
an engine of its own."""

from paceline.core import Arm
from paceline.evidence.engine_differences import EngineDifferences, engine_differences
from paceline.plan.run.evidence import Evidence


def own_args(arm: Arm) -> tuple[str, ...]:
    return (*arm.args, *(arm.custom.args if arm.custom else ()))


def own_args_note(evidence: Evidence) -> str:
    """For a verdict's message: the own arguments and engine of each candidate; "" if there are none."""
    candidates = evidence.spec.arms[1:]
    args = ((arm.name, own_args(arm)) for arm in candidates)
    engines = (differs(evidence, arm.name).in_words(arm.name) for arm in candidates)
    ran_with = (f"{name} ran with {' '.join(own)}, the baseline without" for name, own in args if own)
    return "; ".join(filter(None, (*ran_with, *engines)))


def differs(evidence: Evidence, name: str) -> EngineDifferences:
    """`engine_differences` of a candidate."""
    arm = next(arm for arm in evidence.spec.arms if arm.name == name)
    return engine_differences(evidence.spec.server, arm, evidence.results)
