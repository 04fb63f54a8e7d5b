"""Whether a candidate's answers differ from the baseline's by more than the baseline's differ from themselves.

A prompt is *settled* if the baseline gave the same answer on all of its fresh servers, at least two. Only settled
prompts are compared: where the baseline's own answers vary, a divergence proves nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.core import Answers

FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputComparison:
    """A candidate's first `rounds` rounds: the number of sampled prompts, the settled ones, and those of the settled
    ones on which the candidate diverged in any round."""

    rounds: int
    samples: int
    settled: frozenset[int]
    diverged: frozenset[int]
    in_every_round: frozenset[int]
    """Settled prompts on which it diverged in each of these rounds: not by chance."""

    @property
    def enough(self) -> bool:
        """At least half of the prompts can be compared."""
        return self.samples > 0 and 2 * len(self.settled) >= self.samples


def compare_outputs(answers: Mapping[int, Answers], arm: str, numbers: Sequence[int]) -> OutputComparison:
    """Compare over these rounds. If one of them has no answers, no prompt is settled."""
    rounds = [answers[number] for number in numbers if number in answers]
    samples = min((len(entry.baseline) for entry in rounds), default=0)
    enough = len(rounds) == len(numbers) >= FEWEST_ROUNDS
    settled = frozenset(
        prompt for prompt in range(samples) if enough and len({entry.baseline[prompt] for entry in rounds}) == 1
    )
    diverged = [entry.diverged.get(arm, frozenset[int]()) for entry in rounds]
    return OutputComparison(
        rounds=len(rounds),
        samples=samples,
        settled=settled,
        diverged=settled & frozenset[int]().union(*diverged),
        in_every_round=settled.intersection(*diverged),
    )


def first_difference(answers: Mapping[int, Answers], arm: str, numbers: Sequence[int]) -> OutputComparison | None:
    """The comparison over the fewest of these rounds that shows a divergence; later rounds cannot undo it."""
    if not answers:
        return None
    growing = (compare_outputs(answers, arm, numbers[:n]) for n in range(FEWEST_ROUNDS, len(numbers) + 1))
    return next((comparison for comparison in growing if comparison.diverged), None)
