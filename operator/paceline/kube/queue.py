"""A work queue of keys. A key waits at most once, never has two workers at once, and is retried after a failure."""

import asyncio
import contextlib
import heapq
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from paceline.kube.errors import ApiError, Forbidden, Unavailable

log = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)

TOGETHER = 0.1
"""Seconds that a hint waits for others of its key: the end of a round changes its Job and its pod within this time, and
one of our passes changes a status and an object."""

FIRST_DELAY, LONGEST_DELAY = 0.005, 300.0
"""Seconds until a failed key is retried: the first delay, doubled at each failure up to the longest. Jitter adds up to
half."""

LONGEST_CALL = 600.0
"""Seconds after which work on one key is cancelled and counts as failed, because it would never end and others must
proceed. A call makes a few requests of at most 30 s each."""

SPARE_ALARMS = 64
"""Tolerated number of outdated alarms: removing fewer is not worth a search."""

OUTAGES, OUTAGE_DELAY = (Unavailable, Forbidden), 30.0
"""API server errors not caused by a key, and the longest delay in seconds after one: keys must not wait for minutes
when an outage ends."""


class WorkQueue(Generic[Key]):
    """Keys to work on. First come, first served among the keys of one `group`; groups take turns, so that a key waits
    for at most one key of each other group, however many they have.

    A key added while it is being worked on is worked on once more afterwards. Not safe across event loops.
    """

    def __init__(
        self,
        *,
        group: Callable[[Key], Hashable] = lambda _: None,
        together: float = TOGETHER,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._group = group
        self._together = together
        self._clock = clock
        self._jitter = jitter
        self._waiting: dict[Key, float] = {}
        """Key → time since which it waits."""
        self._free: dict[Hashable, deque[Key]] = {}
        """Group → its waiting keys that are not being worked on; the group that is next comes first."""
        self._working: dict[Key, float] = {}
        """Key → when work on it began."""
        self._later: dict[Key, float] = {}
        self._alarms: list[tuple[float, int, Key]] = []
        """Heap of (due, tie-breaker, key); an entry that differs from `_later` is outdated."""
        self._count = 0
        self._failures: dict[Key, int] = {}
        self._finished = clock()
        """When work on the last key ended; before that, when work began."""
        self._wake = asyncio.Event()

    def add(self, key: Key) -> None:
        """Work on `key` soon."""
        self._later.pop(key, None)
        if key not in self._waiting and key not in self._working:
            self._put(key)
        self._waiting.setdefault(key, self._clock())
        self._wake.set()

    def hint(self, key: Key) -> None:
        """Something about `key` may have changed: work on it in a moment, once for all hints of that moment."""
        if key not in self._waiting:
            self.add_after(key, self._together)

    def add_after(self, key: Key, delay: float) -> None:
        """Work on `key` in `delay` seconds, unless something adds it sooner. The earlier of two such times counts."""
        due = self._clock() + delay
        if due < self._later.get(key, float("inf")):
            self._later[key] = due
            self._count += 1
            heapq.heappush(self._alarms, (due, self._count, key))
            if len(self._alarms) > 2 * len(self._later) + SPARE_ALARMS:
                self._drop_old_alarms()
            self._wake.set()

    def _drop_old_alarms(self) -> None:
        """Drop outdated alarms: otherwise each pass would leave an alarm behind until it is due, which may take an
        hour."""
        self._alarms = [alarm for alarm in self._alarms if self._later.get(alarm[2]) == alarm[0]]
        heapq.heapify(self._alarms)

    def take(self) -> Key | None:
        """The next key to work on; call `done` afterwards. None if no key is ready."""
        now = self._clock()
        while self._alarms and self._alarms[0][0] <= now:
            due, _, key = heapq.heappop(self._alarms)
            if self._later.get(key) == due:
                self.add(key)
        if not self._free:
            return None
        group = next(iter(self._free))
        keys = self._free.pop(group)
        key = keys.popleft()
        if keys:
            self._free[group] = keys  # after all other groups
        del self._waiting[key]
        self._working[key] = now
        return key

    def done(
        self, key: Key, *, failed: bool = False, again: float | None = None, longest: float = LONGEST_DELAY
    ) -> None:
        """Work on `key` has ended; repeat it in `again` seconds (None: only if added). After a failure the delay
        doubles each time, up to `longest` seconds plus jitter."""
        del self._working[key]
        self._finished = self._clock()
        if key in self._waiting:
            self._put(key)
            self._wake.set()
        if failed:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(longest, FIRST_DELAY * 2 ** min(count - 1, 30)) * (1 + self._jitter() / 2)
            self.add_after(key, max(delay, again or 0.0))
        else:
            self._failures.pop(key, None)
            if again is not None:
                self.add_after(key, again)

    def _put(self, key: Key) -> None:
        self._free.setdefault(self._group(key), deque()).append(key)

    @property
    def due(self) -> float | None:
        """When (by the clock) the next delayed key is due; None without one."""
        while self._alarms and self._later.get(self._alarms[0][2]) != self._alarms[0][0]:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else None

    @property
    def stuck(self) -> float:
        """Seconds without progress although there is work: since the last call ended, or since the first of the present
        keys began or arrived, whichever is later. A long queue that moves is not stuck, and neither is a queue with one
        hanging call, which is cancelled after LONGEST_CALL."""
        since = [*list(self._working.values()), *list(self._waiting.values())]  # copies: metrics have another thread
        return self._clock() - max(min(since), self._finished) if since else 0.0

    @property
    def oldest(self) -> float:
        """Seconds that the oldest waiting key has waited; 0 if no key waits."""
        waiting = list(self._waiting.values())  # a copy: metrics are read by another thread
        return self._clock() - min(waiting) if waiting else 0.0

    def __len__(self) -> int:
        """The number of keys that are ready to be worked on."""
        return len(self._waiting)

    async def run(self, reconcile: Callable[[Key], Awaitable[float | None]], workers: int = 4) -> None:
        """Work until cancelled. `reconcile` returns the seconds until the key is due again, or None. Time that keys
        waited before this call does not count as stuck."""
        self._finished = self._clock()
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(reconcile))

    async def _worker(self, reconcile: Callable[[Key], Awaitable[float | None]]) -> None:
        while True:
            key = self.take()
            if key is None:
                self._wake.clear()
                wait = None if self.due is None else max(0.0, self.due - self._clock())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):  # wait_for would lose a cancellation that arrives with the wake
                        await self._wake.wait()
                continue
            await self.work(key, reconcile)

    async def work(self, key: Key, reconcile: Callable[[Key], Awaitable[float | None]]) -> None:
        """Work on a key from `take`. Exceptions of `reconcile` are logged, and the key is retried."""
        try:
            async with asyncio.timeout(LONGEST_CALL):
                again = await reconcile(key)
        except ApiError as error:
            log.warning("%s: %s", key, error)
            longest = OUTAGE_DELAY if isinstance(error, OUTAGES) else LONGEST_DELAY
            self.done(key, failed=True, again=error.retry_after, longest=longest)
        except Exception:
            log.exception("%s", key)
            self.done(key, failed=True)
        except BaseException:
            self.done(key)
            raise
        else:
            self.done(key, again=again)
