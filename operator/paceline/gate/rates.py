"""Whether a candidate keeps the request rates that the baseline keeps.

If a candidate does not keep a rate, its queue grows for as long as the measurement lasts, so its speed at that rate
depends on the length of the measurement. The gate rejects the candidate for the rate itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.gate.rounds import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class RateMisses:
    """In how many of `rounds` only the candidate, or only the baseline, missed a request rate. `shown`: at the look's
    error, these numbers show that the candidate misses it more often."""

    candidate_only: int
    baseline_only: int
    rounds: int
    shown: bool

    @property
    def kept(self) -> bool:
        """The candidate's excess of misses is below half of the rounds; promotion requires that."""
        return 2 * (self.candidate_only - self.baseline_only) < self.rounds


def rate_misses(rounds: Rounds, candidate: str, numbers: Sequence[int], error: float) -> Mapping[str, RateMisses]:
    """Workload → misses in these complete rounds; workloads whose rate the candidate never missed alone are absent."""
    misses = {}
    for workload in rounds.workloads:
        candidate_only = _missed_by_one(rounds, candidate, rounds.baseline, numbers, workload)
        baseline_only = _missed_by_one(rounds, rounds.baseline, candidate, numbers, workload)
        if candidate_only:
            misses[workload] = RateMisses(
                candidate_only=candidate_only,
                baseline_only=baseline_only,
                rounds=len(numbers),
                shown=sign_test(candidate_only, baseline_only) <= error,
            )
    return misses


def _missed_by_one(rounds: Rounds, arm: str, other: str, numbers: Sequence[int], workload: str) -> int:
    cells = rounds.cells
    return sum(cells[n, arm, workload].saturated and not cells[n, other, workload].saturated for n in numbers)


def sign_test(candidate_only: int, baseline_only: int) -> float:
    """One-sided p-value: the probability that, with two equal arms, the candidate missed the rate in at least
    `candidate_only` of the rounds in which exactly one arm did. Rounds in which both or neither missed it carry no
    information."""
    discordant = candidate_only + baseline_only
    return math.fsum(math.comb(discordant, k) * 0.5**discordant for k in range(candidate_only, discordant + 1))
