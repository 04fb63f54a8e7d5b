"""Whether a candidate keeps the rates that the baseline keeps.

One that does not has requests waiting on it for longer and longer: how slow it looks depends on how long one measures,
so its speed there is no figure, and it is out for the rate itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.gate.rounds import Rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """In how many of `rounds` a candidate alone did not keep a rate, and in how many the baseline alone: `theirs`.
    `shown`: more often than the baseline, but for a chance of the look's error."""

    times: int
    theirs: int
    rounds: int
    shown: bool

    @property
    def kept(self) -> bool:
        """The baseline alone fell behind as often, but for less than half of the rounds. Else the candidate has not
        shown that it keeps the rate as well."""
        return 2 * (self.times - self.theirs) < self.rounds


def behind(rounds: Rounds, candidate: str, numbers: Sequence[int], error: float) -> Mapping[str, Behind]:
    """By workload, where there is any such round among these complete ones."""
    found = {}
    for workload in rounds.workloads:
        times = _alone(rounds, candidate, rounds.baseline, numbers, workload)
        theirs = _alone(rounds, rounds.baseline, candidate, numbers, workload)
        if times:
            shown = sign_test(times, theirs) <= error
            found[workload] = Behind(times=times, theirs=theirs, rounds=len(numbers), shown=shown)
    return found


def _alone(rounds: Rounds, arm: str, other: str, numbers: Sequence[int], workload: str) -> int:
    cells = rounds.cells
    return sum(cells[n, arm, workload].saturated and not cells[n, other, workload].saturated for n in numbers)


def sign_test(times: int, theirs: int) -> float:
    """The chance that of two equal arms this one is it so often, or oftener, of the rounds in which one alone fell
    behind: whatever makes an arm fall behind, each is as likely. Rounds in which both did, or neither, say nothing."""
    one_sided = times + theirs
    return math.fsum(math.comb(one_sided, k) * 0.5**one_sided for k in range(times, one_sided + 1))
