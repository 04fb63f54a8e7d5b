"""Rounds that gave no evidence of a candidate's speed: how many, why, and what they show about its server.

Rounds are not lost at random: a server that dies under the loads that would have been slow leaves only the fast ones.
So a candidate is not judged by its surviving rounds only.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.core import BASELINE, INCUMBENT, ArmOutcome, ArmVerdict
from paceline.core.text import count
from paceline.gate.findings import Finding
from paceline.gate.rounds import Rounds, usable
from paceline.gate.server_failures import BROKEN, DEATHS, FAILED, MALFORMED, RETRACTED, excused

TOLERATED = 1
"""Rounds in which a candidate's own server may fail while the baseline's lives: a neighbour may cause one failure."""
_ENDED = "its own server exited"
_WORDS = {
    RETRACTED: "it retracted requests",
    FAILED: "requests to it failed",
    MALFORMED: "its answers did not have the form that was asked for",
    "TimedOut": "it did not answer in time",
    "StartTimeout": "it was not ready in time",
}


@dataclass(frozen=True, slots=True)
class ServerFailure:
    """A failure of a candidate's own server in a round that the baseline's failure does not excuse."""

    round: int
    reason: str


def server_failures(rounds: Rounds, candidate: str) -> list[ServerFailure]:
    """The candidate's server failures, in the order of rounds. Of baseline and incumbent, those in rounds in which the
    other one lived."""
    return [
        ServerFailure(number, reason)
        for number in rounds.of(candidate)
        if (reason := rounds.ended(candidate, number))
        and (
            reason in BROKEN and _lived(rounds, number)
            if is_reference(rounds, candidate)
            else not excused(reason, rounds.ended(rounds.baseline, number))
        )
    ]


def is_reference(rounds: Rounds, arm: str) -> bool:
    """Whether others are compared with this arm, too: the incumbent, or the baseline beside it."""
    return {arm, rounds.baseline} == {INCUMBENT, BASELINE}


def _lived(rounds: Rounds, number: int) -> bool:
    return number in rounds.of(rounds.baseline) and not rounds.ended(rounds.baseline, number)


def _counted(rounds: Rounds, candidate: str) -> list[ServerFailure]:
    """Failures that count against the candidate. Each earlier round in which only requests to the baseline failed
    excuses one round in which only requests to the candidate failed: the client by itself fails that often."""
    baseline_only = [n for n in rounds.of(candidate) if _only_the_baseline_failed(rounds, candidate, n)]
    counted, passed = list[ServerFailure](), 0
    for failure in server_failures(rounds, candidate):
        if failure.reason == FAILED and passed < sum(number < failure.round for number in baseline_only):
            passed += 1
        else:
            counted.append(failure)
    return counted


def _only_the_baseline_failed(rounds: Rounds, candidate: str, number: int) -> bool:
    return rounds.ended(rounds.baseline, number) == FAILED and not rounds.ended(candidate, number)


def shown_unreliable(rounds: Rounds, candidate: str) -> int | None:
    """The round of the first failure beyond the tolerated ones. None for a candidate without any complete round: a
    server that cannot run at all cannot be distinguished from a wrong configuration, which is an error, not a
    rejection. Baseline and incumbent need none: one of them is what serves, and the other is to replace it."""
    counted = _counted(rounds, candidate)
    known = is_reference(rounds, candidate) or rounds.complete(candidate)
    return counted[TOLERATED].round if len(counted) > TOLERATED and known else None


def unreliable(rounds: Rounds, candidate: str, before: ArmVerdict, since: int) -> ArmVerdict:
    """The verdict that rejects the candidate for its failures; it keeps the speed that `before` has shown."""
    failures = [failure for failure in server_failures(rounds, candidate) if failure.round <= since]
    each = ", ".join(f"round {failure.round + 1} ({failure.reason})" for failure in failures)
    return replace(
        before,
        outcome=ArmOutcome.REJECTED,
        reason=Finding.UNRELIABLE.value,
        message=f"its own server failed in {count(len(failures), 'round')} in which the {rounds.reference}'s did not: "
        f"{each}",
        rounds=before.rounds or sum(number < since for number in rounds.complete(candidate)),
    )


def lost(rounds: Rounds, candidate: str, last: int | None) -> str:
    """Lost rounds up to the round `last` (None: all): `2 of 6 rounds were lost: in 2 its own server exited
    (ServerCrashed)`; "" if none was."""
    numbers = [number for number in rounds.of(candidate) if last is None or number <= last]
    complete = rounds.complete(candidate)
    reasons = Counter(_why_lost(rounds, candidate, number) for number in numbers if number not in complete)
    missing = reasons.total()
    if not missing:
        return ""
    verb = "was" if missing == 1 else "were"
    return f"{missing} of {len(numbers)} rounds {verb} lost: {', '.join(_counts(reasons))}"


def _counts(reasons: Counter[str]) -> Iterator[str]:
    return (f"in {times} {reason}" for reason, times in reasons.items())


def _why_lost(rounds: Rounds, candidate: str, number: int) -> str:
    own, baselines = rounds.ended(candidate, number), rounds.ended(rounds.baseline, number)
    if baselines and (excused(own, baselines) or not own):
        return f"{_of_baseline(baselines, rounds.reference)} ({baselines})"
    if own:
        return f"{_WORDS.get(own, _ENDED)} ({own})"
    valid = _valid(rounds, rounds.baseline, number, list(rounds.workloads))
    return "one of its points was invalid" if valid else f"a point of the {rounds.reference} was invalid"


def _of_baseline(reason: str, name: str) -> str:
    if reason in DEATHS:
        return f"the {name}'s server exited"
    while_alive = {
        FAILED: f"requests to the {name} failed",
        RETRACTED: f"the {name} retracted requests",
        MALFORMED: f"answers of the {name} did not have the form that was asked for",
    }
    return while_alive.get(reason, f"the {name} gave no evidence")


def _valid(rounds: Rounds, arm: str, number: int, workloads: Sequence[str]) -> bool:
    return all(usable(rounds.cells.get((number, arm, w))) for w in workloads)
