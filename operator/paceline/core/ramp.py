"""A load that moves: how many requests are under way once each one of a ramp has been sent."""

import math


def under_way(first: int, top: int, requests: int) -> tuple[int, ...]:
    """How many are under way once the n-th request is sent, itself included: from `first` in equal steps up to `top` in
    the middle, and back. Numbers between the ends have about equally many requests, so each doubling takes about
    equally long. From a request to the next it rises by at most one where there are more than 2 * (top - first) of
    them: then as many are under way at each as it says, however fast the server is."""
    half = (requests - 1) / 2
    if not half:
        return (top,)
    rise = (top - first) / half
    # Not round(): it takes 0.5 down and 1.5 up, a rise by two.
    return tuple(math.floor(top - rise * abs(number - half) + 0.5) for number in range(requests))


def answer_times(levels: tuple[int, ...]) -> float:
    """For how many answers' time, one after another, such a load lasts, if all answers take equally long."""
    return math.fsum(1 / level for level in levels)
