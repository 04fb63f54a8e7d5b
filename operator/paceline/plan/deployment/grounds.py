"""What a pool's arm is served for: the run that showed it to be faster, and what a reader must know of that run. It
goes along unchanged from the run to the choice, to `target`, to `serving` and to `history`."""

from typing import Protocol, TypedDict

from paceline.plan.deployment.runs import Run


class Grounds(TypedDict):
    """Fields of `Choice`, `Serving`, `Target` and `Change`."""

    evidence: str
    speedup: float | None
    emulated: bool | None
    imported: bool


class Grounded(Protocol):
    """What has these fields."""

    @property
    def evidence(self) -> str: ...
    @property
    def speedup(self) -> float | None: ...
    @property
    def emulated(self) -> bool | None: ...
    @property
    def imported(self) -> bool: ...


def of_run(run: Run, winner: str) -> Grounds:
    """The run that showed `winner` to be faster."""
    speed = run.ratio(winner)
    return Grounds(
        evidence=run.name,
        speedup=speed.ratio if speed else None,
        emulated=run.status.emulated or None,
        imported=run.status.imported,
    )


def of(entry: Grounded) -> Grounds:
    return Grounds(evidence=entry.evidence, speedup=entry.speedup, emulated=entry.emulated, imported=entry.imported)
