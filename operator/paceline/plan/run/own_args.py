"""Arguments of a candidate's servers that the baseline's do not have, apart from those with fields in the API."""

from paceline.core import Arm
from paceline.plan.run.evidence import Evidence


def own_args(arm: Arm) -> tuple[str, ...]:
    return (*arm.args, *(arm.custom.args if arm.custom else ()))


def own_args_note(evidence: Evidence) -> str:
    """For a verdict's message: the own arguments of each candidate; "" if there are none."""
    by_name = {arm.name: own_args(arm) for arm in evidence.spec.arms[1:]}
    return "; ".join(
        f"{name} ran with {' '.join(args)}, the baseline without" for name, args in by_name.items() if args
    )
