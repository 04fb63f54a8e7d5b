"""What a run may take, asked before each of its rounds: nothing is stopped that is under way."""

from fractions import Fraction

from paceline.plan.run.snapshot import Evidence
from paceline.plan.run.taken import own

EXHAUSTED = "BudgetExhausted"
SECONDS = 3600


def exhausted(evidence: Evidence) -> tuple[str, str] | None:
    """A sentence and a reason if a round more, as long as those so far, would take the run beyond its budget. What gave
    no result has held accelerators, too."""
    hours, gpus = evidence.spec.gpu_hours, evidence.spec.server.accelerator.count
    if hours is None:
        return None
    budget = Fraction(str(hours)) * SECONDS  # as it was written: a round that fits exactly is not lost to binary
    spent = sum(record.held_seconds or 0 for record in own(evidence.records)) * gpus
    lengths = [(record.held_seconds or 0) * gpus for record in evidence.results]
    another = Fraction(sum(lengths)) / len(lengths) if lengths else Fraction(0)
    if spent + another <= budget and spent < budget:
        return None
    takes = f", and another round takes {float(another) / SECONDS:.2f}" if another else ""
    return f"the budget of {hours:g} GPU-hours leaves no room: {spent / SECONDS:.2f} are spent{takes}", EXHAUSTED
