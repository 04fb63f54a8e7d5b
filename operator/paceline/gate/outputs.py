"""Whether a candidate answers something else than the baseline, beyond what the baseline does with itself.

A prompt is *settled* where the baseline gave one and the same answer on all of its fresh servers, two at the least.
Only there a divergence is the candidate's: what the baseline answers anew each time shows nothing about anybody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Answers

FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Of the first `rounds` rounds of a candidate: how many prompts there are, which of them the baseline answers
    alike, and at which of those the candidate diverged in any round."""

    rounds: int
    samples: int
    settled: frozenset[int]
    diverged: frozenset[int]

    @property
    def enough(self) -> bool:
        """At least half of the prompts can be compared at all."""
        return self.samples > 0 and 2 * len(self.settled) >= self.samples


def seen(answers: Mapping[int, Answers], arm: str, numbers: Sequence[int]) -> Seen:
    """After these rounds. Where one of them has no answers, no prompt is settled."""
    there = [answers[number] for number in numbers if number in answers]
    samples = min((len(one.baseline) for one in there), default=0)
    enough = len(there) == len(numbers) >= FEWEST_ROUNDS
    settled = frozenset(
        prompt for prompt in range(samples) if enough and len({one.baseline[prompt] for one in there}) == 1
    )
    diverged = frozenset[int]().union(*(one.diverged.get(arm, frozenset()) for one in there))
    return Seen(rounds=len(there), samples=samples, settled=settled, diverged=diverged & settled)


def first_difference(answers: Mapping[int, Answers], arm: str, numbers: Sequence[int]) -> Seen | None:
    """After the fewest of these rounds that show one; later rounds change nothing about it."""
    if not answers:
        return None
    looks = (seen(answers, arm, numbers[:n]) for n in range(FEWEST_ROUNDS, len(numbers) + 1))
    return next((look for look in looks if look.diverged), None)
