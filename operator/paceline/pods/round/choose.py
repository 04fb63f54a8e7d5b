"""Chooses the prompts of a round: the same for all of its arms and tries, different ones in every round.

A set is sorted by the SHA-256 of its conversations' first prompts, which is independent of the file's order. Round n
of a workload of k requests sends the n-th k prompts; after the end of the set it continues with the first prompts. If
rounds differ in their number of requests, each has a part of the first one's size, and sends the beginning of its part.
A round begins with a whole conversation (`Dataset.stride`) and may end within one.
"""

import hashlib
import itertools
from bisect import bisect_left
from collections.abc import Collection, Sequence

from paceline.pods.conversation import Conversation


def shuffled(conversations: Sequence[Conversation]) -> tuple[Conversation, ...]:
    return tuple(sorted(conversations, key=lambda one: hashlib.sha256(one.body(0).encode()).digest()))


def measured_prompts(
    ordered: Sequence[Conversation], round: int, requests: int, stride: int
) -> tuple[tuple[str, ...], ...]:
    """The prompts of a round of a shuffled set, by conversation, in the order of sending: `requests` in all, for which
    a smaller set is repeated. `stride`: prompts from the first of one round to the first of the next."""
    if not ordered:
        return ()
    *begins, size = itertools.accumulate((len(one.turns) for one in ordered), initial=0)
    place, chosen = bisect_left(begins, round * stride % size), list[tuple[str, ...]]()
    while requests > 0:
        one = ordered[place % len(ordered)]
        chosen.append(tuple(one.body(turn) for turn in range(min(requests, len(one.turns)))))
        requests -= len(chosen[-1])
        place += 1
    return tuple(chosen)


def warm_up(ordered: Sequence[Conversation], own: Collection[str], places: int) -> tuple[str, ...]:
    """One prompt per request of a window, from the end of the shuffled set, which rounds reach last; those that this
    round measures (`own`) only if there are no others. A set that is too small repeats some."""
    last = (one for one in reversed(ordered) if one.body(0) not in own)
    chosen = itertools.chain(last, (one for one in reversed(ordered) if one.body(0) in own))
    return tuple(one.body(0) for one in itertools.islice(itertools.cycle(chosen), places))
