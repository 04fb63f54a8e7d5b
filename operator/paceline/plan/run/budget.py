"""A run's budget, checked before each round; a round under way is never stopped."""

from fractions import Fraction

from paceline.plan.run.evidence import Evidence
from paceline.plan.run.origin import own

EXHAUSTED = "BudgetExhausted"
_SECONDS = 3600


def exhausted(evidence: Evidence) -> tuple[str, str] | None:
    """Message and reason if another round of the mean length so far would exceed the budget. Tries without a result
    count, because they held accelerators."""
    hours, gpus = evidence.spec.gpu_hours, evidence.spec.server.accelerator.count
    if hours is None:
        return None
    budget = Fraction(str(hours)) * _SECONDS  # decimal as written: binary rounding must not cost a round that just fits
    spent = sum(record.held_seconds or 0 for record in own(evidence.records)) * gpus
    lengths = [(record.held_seconds or 0) * gpus for record in evidence.results]
    another = Fraction(sum(lengths)) / len(lengths) if lengths else Fraction(0)
    if spent + another <= budget and spent < budget:
        return None
    takes = f", and another round takes {float(another) / _SECONDS:.2f}" if another else ""
    return f"the budget of {hours:g} GPU-hours leaves no room: {spent / _SECONDS:.2f} are spent{takes}", EXHAUSTED
