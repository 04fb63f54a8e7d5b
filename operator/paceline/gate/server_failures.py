"""Why an arm's own server failed in a round: the worst of several reasons, and what the baseline's failure excuses."""

from collections.abc import Iterable

from paceline.evidence.failures import BLAMES_THE_SERVER, BREAKS_THE_SERVER, Failure

RETRACTED = Failure.Retracted.name
FAILED = Failure.RequestsFailed.name
"""Requests failed while the server lived. The client may be the cause; both arms use the same client."""
MALFORMED = Failure.Malformed.name
DEATHS = frozenset(failure.name for failure in BLAMES_THE_SERVER) - {RETRACTED, FAILED, MALFORMED}
"""The server exited by itself, or hung and was ended."""
BROKEN = frozenset(failure.name for failure in BREAKS_THE_SERVER)
"""What counts against the baseline and the incumbent, of which each is compared with the other."""


def worst(reasons: Iterable[str]) -> str:
    """The worst reason: a death, then retractions, then failed requests, then malformed answers, then any other; ""
    if there is none."""
    return min(filter(None, reasons), key=_rank, default="")


def _rank(reason: str) -> int:
    return 0 if reason in DEATHS else {RETRACTED: 1, FAILED: 2, MALFORMED: 3}.get(reason, 4)


def excused(candidate: str, baseline: str) -> bool:
    """Whether the baseline's failure in the same round excuses the candidate's. If the baseline's server died, the
    cause may have hit the candidate's in any form. If it lived, it excuses only the same failure, and never a crash."""
    return baseline in DEATHS or (bool(baseline) and candidate == baseline)
