"""Acceptance by position: how often the first draft token was accepted, the second, and so on."""

import itertools


def by_position(accepted: int, verify_calls: int, positions: int) -> list[int]:
    """How many of the verify calls accepted each draft token, falling; `accepted` in all.

    A call accepts a beginning of what was proposed. Each token is taken with the same probability q, as in the profile,
    so position i has q^i of the calls; q follows from the sum.
    """
    low, high = 0.0, 1.0
    for _ in range(50):
        q = (low + high) / 2
        few = verify_calls * sum(q**i for i in range(1, positions + 1)) < accepted
        low, high = (q, high) if few else (low, q)
    sums = list(itertools.accumulate(verify_calls * high**i for i in range(1, positions + 1)))
    edges = [0, *(min(round(total), accepted) for total in sums[:-1]), accepted]
    return sorted((after - before for before, after in itertools.pairwise(edges)), reverse=True)


def histogram(accepted: int, verify_calls: int, positions: int) -> list[int]:
    """How many of the verify calls accepted no draft token, how many one, …: without the zeros at its end, as SGLang
    has it (`schedule_batch.py:1566`)."""
    reached = [verify_calls, *by_position(accepted, verify_calls, positions), 0]
    counts = [before - after for before, after in itertools.pairwise(reached)]
    while counts and not counts[-1]:
        counts.pop()
    return counts
