"""Chooses the prompts of a round: the same for all of its arms and tries, different ones in every round.

A set is sorted by the SHA-256 of its prompts, which is independent of the file's order. Round n of a workload of k
requests sends the n-th k prompts; after the end of the set it continues with the first prompts. If rounds differ in
their number of requests, each has a part of the first one's size, and sends the beginning of its part.
"""

import hashlib
import itertools
from collections.abc import Sequence
from functools import cache


@cache
def shuffled(usable: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(usable, key=lambda prompt: hashlib.sha256(prompt.encode()).digest()))


def measured_prompts(usable: tuple[str, ...], round: int, requests: int, part: int | None = None) -> tuple[str, ...]:
    """The prompts of a round, in the order of the client's file. There are `requests` of them: a smaller set is
    repeated. `part`: prompts of a round's part; None: `requests`."""
    return _from(shuffled(usable), round * (part or requests), requests)


def warm_up(usable: tuple[str, ...], own: Sequence[str], places: int) -> tuple[str, ...]:
    """One prompt per request of a window, from the end of the set, which rounds reach last; those that this round
    measures (`own`) only if there are no others. A set that is too small repeats some."""
    last = shuffled(usable)[::-1]
    chosen = dict.fromkeys([*(prompt for prompt in last if prompt not in frozenset(own)), *last])
    return tuple(itertools.islice(itertools.cycle(chosen), places))


def _from(prompts: Sequence[str], first: int, count: int) -> tuple[str, ...]:
    return tuple(prompts[place % len(prompts)] for place in range(first, first + count)) if prompts else ()
