"""Whether a candidate keeps the rates that the baseline keeps.

One that does not has requests waiting on it for longer and longer: how slow it looks depends on how long one measures,
so its speed there is no figure, and it is out for the rate itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.gate.rounds import Rounds

CHANCE = 0.25
"""Of a round in which one of two equal arms alone falls behind: p (1 - p), whatever p is, at most. The arrivals of a
round are the same on all arms, so it is less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """In how many of `rounds` a candidate alone did not keep a rate. `shown`: more often than an arm that keeps it no
    less often than the baseline would, but for a chance of the look's error."""

    times: int
    rounds: int
    shown: bool

    @property
    def kept(self) -> bool:
        """In more than half of them. Else the candidate has not shown that it keeps the rate."""
        return 2 * self.times < self.rounds


def behind(rounds: Rounds, candidate: str, numbers: Sequence[int], error: float) -> Mapping[str, Behind]:
    """By workload, where there is any such round among these complete ones."""
    found = {w: sum(_alone(rounds, candidate, n, w) for n in numbers) for w in rounds.workloads}
    return {
        w: Behind(times=times, rounds=len(numbers), shown=_by_chance(times, len(numbers)) <= error)
        for w, times in found.items()
        if times
    }


def _alone(rounds: Rounds, candidate: str, number: int, workload: str) -> bool:
    return (
        rounds.cells[number, candidate, workload].saturated
        and not rounds.cells[number, rounds.baseline, workload].saturated
    )


def _by_chance(times: int, rounds: int) -> float:
    """So many or more."""
    return math.fsum(math.comb(rounds, k) * CHANCE**k * (1 - CHANCE) ** (rounds - k) for k in range(times, rounds + 1))
