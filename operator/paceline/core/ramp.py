"""A load that moves: how many requests are under way once each one of a ramp has been sent."""

import math

LEAST_A_LEVEL = 2
"""Requests at each number under way, on each way, below which a ramp jumps: fewer would rise by more than one at a
time."""


def under_way(first: int, top: int, requests: int) -> tuple[int, ...]:
    """How many are under way once the n-th request is sent, itself included: from `first` in equal steps up to `top` in
    the middle, and back. It rises by at most one from a request to the next where there are at least
    `LEAST_A_LEVEL` * (top - first) + 1 of them, so it is exact on the way up whatever the server's speed is."""
    half = (requests - 1) / 2
    return tuple(
        first + round((top - first) * (1 - abs(number - half) / half)) if half else top for number in range(requests)
    )


def answer_times(levels: tuple[int, ...]) -> float:
    """For how many answers' time, one after another, such a load lasts, if all answers take equally long."""
    return math.fsum(1 / level for level in levels)


def as_one_load(levels: tuple[int, ...]) -> int:
    """How many requests at one concurrency average their noise as well: the few at low levels take most of the time
    (Kish's effective sample size, with the time of each request for its weight)."""
    return max(1, int(answer_times(levels) ** 2 / math.fsum(1 / level**2 for level in levels)))
