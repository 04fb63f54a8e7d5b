"""Why an accepted change waits for a person: it answers otherwise than what serves, or many small losses add up."""

from paceline.core import BASELINE, INCUMBENT
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run
from paceline.plan.objects import differ


def kept_speed(pool: Pool, run: Run) -> float | None:
    """`keptSpeed` once the run's winner serves; None if it was not compared with what served."""
    verdict = next((one for one in run.status.arm_verdicts or () if one.arm == run.winner), None)
    beside = verdict.incumbent if verdict else None
    if beside is None or beside.ratio is None or beside.lower is None:
        return None
    return 1.0 if beside.lower > 1 else min(1.0, (pool.remembered.kept_speed or 1.0) * beside.ratio)


def doubt(pool: Pool) -> str:
    """Why the winner waits for a person although it was shown not to be slower than what served; "" if it does not."""
    run = pool.decided
    if run is None or not run.winner or not run.beside_incumbent:
        return ""
    return "; ".join(filter(None, (_erosion(pool, run), _other_answers(pool, run), _other_image(pool, run))))


def _other_image(pool: Pool, run: Run) -> str:
    """What was measured in place of what serves is another image, which has no digest that a round could name."""
    image = pool.servers.image if pool.servers and pool.served_as == INCUMBENT else ""
    if not differ(run.image_of(INCUMBENT), image):
        return ""
    return f"{run.name} compared it with another image than what serves: its tag was moved, and no registry has it"


def _other_answers(pool: Pool, run: Run) -> str:
    """It answers otherwise than what served: the new baseline does, or its own draft changes the answers."""
    most = pool.deployment.promotion.max_output_change
    asked = [one.parity for one in run.status.arm_verdicts or () if one.arm in (BASELINE, run.winner) and one.parity]
    worst = max(asked, key=lambda one: (one.differ or 0) / (one.settled or 1), default=None)
    if worst is None or not worst.settled or (worst.differ or 0) / worst.settled <= most:
        return ""
    return (
        f"it answers {worst.differ} of {worst.settled} compared prompts otherwise than what serves, beyond near ties, "
        f"and promotion.maxOutputChange is {most:.0%}"
    )


def _erosion(pool: Pool, run: Run) -> str:
    """So were those before it."""
    kept = kept_speed(pool, run) if pool.incumbent else None
    least = 1 - pool.spec.gate.max_slowdown
    if kept is None or kept >= least:
        return ""
    return f"with the changes accepted before it, it comes to {kept:.3f}x of what served: below {least:.3f}x"
