"""Rounds that were no evidence of a candidate's speed: how many, for what, and what they say of its server.

What is lost is not lost at random: a server that dies under the loads that would have been slow leaves the fast ones.
So a candidate is not judged by what it lived through alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.core import ArmOutcome, ArmVerdict
from paceline.gate.findings import Finding
from paceline.gate.own_ends import DEATHS, FAILED, RETRACTED, excused
from paceline.gate.rounds import Rounds, usable

LUCK = 1
"""Rounds in which a candidate's own server may end while the baseline lives. One may be a neighbour's doing."""
ENDED = "its own server ended"
WORDS = {
    RETRACTED: "it took requests back",
    FAILED: "requests to it failed",
    "TimedOut": "it did not answer in time",
    "StartTimeout": "it was not ready in time",
}


@dataclass(frozen=True, slots=True)
class End:
    """What a candidate's own server came to, in a round in which that was not the baseline's lot as well."""

    round: int
    reason: str


def ends(rounds: Rounds, candidate: str) -> list[End]:
    """In order."""
    return [
        End(number, reason)
        for number in rounds.of(candidate)
        if (reason := rounds.ended(candidate, number)) and not excused(reason, rounds.ended(rounds.baseline, number))
    ]


def _counted(rounds: Rounds, candidate: str, found: Sequence[End]) -> list[End]:
    """Those that are held against it. Of the rounds in which its requests failed and the baseline's did not, as many
    are let pass as there were, by then, of the other kind: that is how often a client breaks them by itself."""
    client = [n for n in rounds.of(candidate) if _failed_alone(rounds, candidate, n)]
    counted, passed = list[End](), 0
    for end in found:
        if end.reason == FAILED and passed < sum(number < end.round for number in client):
            passed += 1
        else:
            counted.append(end)
    return counted


def _failed_alone(rounds: Rounds, candidate: str, number: int) -> bool:
    """Requests to the baseline, and the candidate got through."""
    return rounds.ended(rounds.baseline, number) == FAILED and not rounds.ended(candidate, number)


def shown_unreliable(rounds: Rounds, candidate: str) -> int | None:
    """The round that showed it: one more than luck allows. None for one that never gave a complete round: nothing
    tells a server that cannot run from one that was asked wrongly, and that is an error of whoever asks."""
    found = _counted(rounds, candidate, ends(rounds, candidate))
    return found[LUCK].round if len(found) > LUCK and rounds.complete(candidate) else None


def unreliable(rounds: Rounds, candidate: str, before: ArmVerdict, since: int) -> ArmVerdict:
    """A candidate that is out for that, with what `before` has shown of its speed."""
    found = [end for end in ends(rounds, candidate) if end.round <= since]
    each = ", ".join(f"round {end.round + 1} ({end.reason})" for end in found)
    return replace(
        before,
        outcome=ArmOutcome.REJECTED,
        reason=Finding.UNRELIABLE.value,
        message=f"its own server did not get through {len(found)} rounds in which the baseline's did: {each}",
        rounds=before.rounds or sum(number < since for number in rounds.complete(candidate)),
    )


def lost(rounds: Rounds, candidate: str, last: int | None) -> str:
    """Up to the round `last`, or of all: `2 of 6 rounds were lost: in 2 its own server ended (ServerCrashed)`."""
    asked = [number for number in rounds.of(candidate) if last is None or number <= last]
    complete = rounds.complete(candidate)
    whys = Counter(_why(rounds, candidate, number) for number in asked if number not in complete)
    missing = whys.total()
    if not missing:
        return ""
    verb = "was" if missing == 1 else "were"
    return f"{missing} of {len(asked)} rounds {verb} lost: {', '.join(_said(whys))}"


def _said(whys: Counter[str]) -> Iterator[str]:
    return (f"in {times} {why}" for why, times in whys.items())


def _why(rounds: Rounds, candidate: str, number: int) -> str:
    mine, theirs = rounds.ended(candidate, number), rounds.ended(rounds.baseline, number)
    if theirs and (excused(mine, theirs) or not mine):
        return f"{_of_baseline(theirs)} ({theirs})"
    if mine:
        return f"{WORDS.get(mine, ENDED)} ({mine})"
    valid = _valid(rounds, rounds.baseline, number, list(rounds.workloads))
    return "one of its points was invalid" if valid else "a point of the baseline was invalid"


def _of_baseline(reason: str) -> str:
    """Only what is a death has ended its server."""
    if reason in DEATHS:
        return "the baseline's server ended"
    lived = {FAILED: "requests to the baseline failed", RETRACTED: "the baseline took requests back"}
    return lived.get(reason, "the baseline gave no evidence")


def _valid(rounds: Rounds, arm: str, number: int, workloads: Sequence[str]) -> bool:
    return all(usable(rounds.cells.get((number, arm, w))) for w in workloads)
