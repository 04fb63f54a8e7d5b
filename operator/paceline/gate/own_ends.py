"""What an arm's own server came to in a round: which is the worst of several, and what the baseline's lot excuses."""

from collections.abc import Iterable

from paceline.evidence.failures import BLAMES_THE_SERVER, Failure

RETRACTED = Failure.Retracted.name
FAILED = Failure.RequestsFailed.name
"""Requests of a server that lived. It may be a client's doing, which meets the baseline as often as a candidate."""
DEATHS = frozenset(failure.name for failure in BLAMES_THE_SERVER) - {RETRACTED, FAILED}
"""Of a server that ended by itself, or that hung and was ended."""


def worst(reasons: Iterable[str]) -> str:
    """A death, else that it took requests back, else that requests failed, else whatever it is; "" where nothing is."""
    return min(filter(None, reasons), key=_rank, default="")


def _rank(reason: str) -> int:
    return 0 if reason in DEATHS else {RETRACTED: 1, FAILED: 2}.get(reason, 3)


def excused(mine: str, theirs: str) -> bool:
    """What a candidate came to, by the baseline's lot in the same round. What killed the baseline's server may have met
    the candidate's in any way; a baseline that lived excuses what happened to itself, and no crash."""
    return theirs in DEATHS or (bool(theirs) and mine == theirs)
