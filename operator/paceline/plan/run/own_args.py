"""What a candidate's servers were given that the baseline's were not, beside what the resource has words for."""

from paceline.core import Arm
from paceline.plan.run.snapshot import Evidence


def own_args(arm: Arm) -> tuple[str, ...]:
    return (*arm.args, *(arm.custom.args if arm.custom else ()))


def told(evidence: Evidence) -> str:
    """In a sentence, of all candidates; "" where there is nothing."""
    said = {arm.name: own_args(arm) for arm in evidence.spec.arms[1:]}
    return "; ".join(f"{name} ran with {' '.join(args)}, the baseline without" for name, args in said.items() if args)
