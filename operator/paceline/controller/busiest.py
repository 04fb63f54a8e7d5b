"""The number of writes of the busiest object: endless useless writes show that two controllers disagree."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from paceline.kube import Ref

log = logging.getLogger(__name__)

WINDOW = 600.0
"""Seconds in a counting window."""
MANY = 100
"""Writes of one object per window from which on the log names it. A promotion in rounds of half a second takes 21
writes of two objects, and a round seldom lasts less than minutes."""


class Busiest:
    """Counts writes by object; counts older than two windows are dropped."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._counts = Counter[Ref]()
        self._most_before = 0
        self._lock = threading.Lock()  # metrics are read by another thread

    def wrote(self, ref: Ref) -> None:
        with self._lock:
            self._turn()
            self._counts[ref] += 1
            count = self._counts[ref]
        if count == MANY:
            log.warning("%s was written %d times within %d s", ref, count, WINDOW)

    @property
    def most(self) -> int:
        """Most writes of one object in the last complete window, or in the present one if that has more already."""
        with self._lock:
            self._turn()
            return max(self._most_before, max(self._counts.values(), default=0))

    def _turn(self) -> None:
        windows = int((self._clock() - self._began) // WINDOW)
        if windows:
            self._most_before = max(self._counts.values(), default=0) if windows == 1 else 0
            self._counts.clear()
            self._began += windows * WINDOW
