"""Arrivals in the pattern of a file's timestamps. Pure.

Only their pattern is replayed: a round's requests are spread so that they arrive at the dataset's mean rate, whatever
the timestamps' unit and however busy that part of the log was.
"""

from collections.abc import Sequence


def places_of_round(times: Sequence[float], round: int, requests: int) -> tuple[int, ...]:
    """Indices of a round's requests, in order of time: the n-th `requests` in a row. After the last complete part comes
    the first again. There must be at least `requests` times."""
    order = sorted(range(len(times)), key=times.__getitem__)
    first = round % (len(times) // requests) * requests
    return tuple(order[first : first + requests])


def replayed_arrivals(times: Sequence[float], rate: float) -> tuple[float, ...]:
    """Seconds after the start, from ascending times. Raises ValueError if all are equal."""
    lasted = times[-1] - times[0]
    if lasted <= 0:
        raise ValueError("its timestamps are all the same: there is nothing to replay")
    scale = (len(times) - 1) / rate / lasted
    return tuple((time - times[0]) * scale for time in times)
