"""Which prompts of a set a round sends: the same on all of its arms and tries, others in every round (0027).

A set is put in the order of its prompts' SHA-256, which has nothing to do with how a file happens to be sorted. Round n
of a workload of k requests is sent the n-th k of them; where the set ends it begins again.
"""

import hashlib
import itertools
from collections.abc import Sequence
from functools import cache


@cache
def shuffled(usable: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(usable, key=lambda prompt: hashlib.sha256(prompt.encode()).digest()))


def measured(usable: tuple[str, ...], round: int, requests: int) -> tuple[str, ...]:
    """Those of a round, in the order in which the client's file has them. As many as `requests`: a set that has fewer
    is sent again from its beginning."""
    return _from(shuffled(usable), round * requests, requests)


def warm_up(usable: tuple[str, ...], round: int, requests: int, places: int) -> tuple[str, ...]:
    """One for each place. They are others than the round's own and all different, as far as the set has such; then
    others of the round's own, and only then the same again (a flush follows anyway)."""
    there = shuffled(usable)
    own = frozenset(measured(usable, round, requests))
    following = _from(there, (round + 1) * requests, len(there))
    chosen = list(dict.fromkeys([*(one for one in following if one not in own), *following]))
    return tuple(itertools.islice(itertools.cycle(chosen), places))


def _from(prompts: Sequence[str], first: int, count: int) -> tuple[str, ...]:
    return tuple(prompts[place % len(prompts)] for place in range(first, first + count)) if prompts else ()
