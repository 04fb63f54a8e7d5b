"""A changing load: the number of concurrent requests after each request of a ramp."""

import math


def under_way(first: int, top: int, requests: int) -> tuple[int, ...]:
    """The number of concurrent requests after the n-th request was sent, including it: from `first` in equal steps up
    to `top` in the middle, and back. All levels in between have about equally many requests, so each doubling takes
    about equally long. With more than 2 * (top - first) requests, consecutive levels differ by at most one: then the
    concurrency is exact at each, however fast the server is."""
    half = (requests - 1) / 2
    if not half:
        return (top,)
    rise = (top - first) / half
    # Not round(): it rounds 0.5 down and 1.5 up, a step of two.
    return tuple(math.floor(top - rise * abs(number - half) + 0.5) for number in range(requests))


def answer_times(levels: tuple[int, ...]) -> float:
    """Duration of such a load, as a multiple of one answer's time, if all answers take equally long."""
    return math.fsum(1 / level for level in levels)
