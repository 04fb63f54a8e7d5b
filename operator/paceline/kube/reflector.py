"""Keeps a store in sync with the cluster: list, then watch, then list again when the watch has lost its position.

Objects deleted while the watch was broken never send an event (Kopf's index keeps them for ever). Every list here is
compared with the store, so such an object is noticed and announced like any other deletion.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing

from paceline.kube.errors import ApiError, Forbidden, Gone, NotFound
from paceline.kube.interface import Api
from paceline.kube.reading import without_managed_fields
from paceline.kube.resources import Manifest, Resource
from paceline.kube.store import OnChange, Store

log = logging.getLogger(__name__)

FIRST_DELAY, LONGEST_DELAY = 0.2, 30.0
"""Seconds between attempts: doubled from the first to the longest, plus up to half at random."""

ABSENT_DELAY = 30.0
"""Seconds until the next check for an optional kind that the cluster does not know."""

SHORTEST_WATCH = 1.0
"""Seconds. A watch that ends by itself after at least this long counts as complete."""


def _nothing() -> None:
    pass


def _ignore(_kind: str, _object: Manifest, _old: Manifest | None) -> None:
    pass


class Reflector:
    """Keeps `store` equal to the objects of one kind. `run()` never returns and survives every ApiError.

    `synced` is set after the first list. `age`: seconds since the last news of these objects, for any reason;
    `unanswered`: seconds since the server's last answer of any kind, including a refusal.

    An `optional` kind may be unknown to the cluster, or forbidden from the start (a role of an older release): it is
    then `absent`, which counts as an empty list, and is checked for from time to time. `on_presence` is called when it
    appears or disappears.

    A `namespace` may be gone, or forbidden: this reflector is then `closed`, which counts as synced. It keeps the
    contents of its store and checks again from time to time: other namespaces continue, and objects that only cannot be
    seen do not count as deleted.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        *,
        namespace: str | None = None,
        selector: str = "",
        prune: Callable[[Manifest], Manifest] = without_managed_fields,
        on_change: OnChange = _ignore,
        indexed: Collection[str] = (),
        packed: bool = False,
        optional: bool = False,
        on_presence: Callable[[], None] = _nothing,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self.resource = resource
        self.namespace = namespace
        self._selector = selector
        self._optional = optional
        self._on_presence = on_presence
        self._clock = clock
        self._sleep = sleep
        self._position: str | None = None
        """Where the watch continues; None: list first."""
        self._failures = 0
        """Consecutive failures without an event in between."""
        self.store = Store(prune, on_change, indexed, packed)
        self.absent = False
        self.closed = False
        self.synced = asyncio.Event()
        self.last_activity = clock()
        self._refused = clock()
        """When the server last answered with an error."""

    @property
    def unanswered(self) -> float:
        """Seconds since the server last answered, even with a refusal."""
        return self._clock() - max(self.last_activity, self._refused)

    @property
    def age(self) -> float:
        """Seconds since the last list or event."""
        return self._clock() - self.last_activity

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            before = self.last_activity
            trouble: ApiError | None = None
            try:
                await self._pass()
            except Gone as gone:
                self._position = None
                trouble = gone
            except (NotFound, Forbidden) as missing:
                if self._optional and (isinstance(missing, NotFound) or self.absent or not self.synced.is_set()):
                    self._is_absent(missing)
                    await self._sleep(ABSENT_DELAY)
                    continue
                if self.namespace is not None and missing.status in (403, 404):
                    self._is_closed(missing)
                    await self._sleep(ABSENT_DELAY)
                    continue
                trouble = missing
            except ApiError as error:
                trouble = error
            heard = self.last_activity != before
            if trouble is not None and trouble.status:
                self._refused = self._clock()
            if trouble is not None:
                log.log(logging.INFO if heard else logging.WARNING, "watch of %s: %s", self.resource.plural, trouble)
            if trouble is not None or not heard:
                pause = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(self._failures, 10)) * (1 + random.random() / 2)
                self._failures += 1
                await self._sleep(max(pause, trouble.retry_after if trouble else 0.0))

    async def _pass(self) -> None:
        """List if needed, then watch until the watch ends."""
        if self._position is None:
            listing = await self._api.list(self.resource, self.namespace, self._selector, reduce=self.store.entry)
            self._is_absent(None)
            self._is_closed(None)
            self.store.replace(listing.items, int(listing.resource_version))
            self._position = listing.resource_version
            self.last_activity = self._clock()
            self.synced.set()
        started = self._clock()
        events = self._api.watch(self.resource, self.namespace, self._selector, self._position)
        async with aclosing(events):
            async for event in events:
                self.store.observe(event.type, event.object)
                self._position = event.object["metadata"]["resourceVersion"]
                self.last_activity = self._clock()
                self._failures = 0
        if self._clock() - started >= SHORTEST_WATCH:
            self.last_activity = self._clock()
            self._failures = 0

    def _is_closed(self, why: ApiError | None) -> None:
        """`why`: the reason that the server shows nothing of the namespace; None if it shows it."""
        if why is not None:
            self._position = None
            self._failures = 0
            self.last_activity = self._clock()
            self.synced.set()
        if (why is not None) != self.closed:
            self.closed = why is not None
            where = f"namespace {self.namespace}, {self.resource.plural}"
            if why is None:
                log.info("%s: can be seen", where)
            else:
                log.warning("%s: %s; left alone until it exists and is allowed", where, why)

    def _is_absent(self, why: ApiError | None) -> None:
        """`why`: the reason that the server shows nothing of the kind; None if it shows it."""
        absent = why is not None
        if absent:
            self._position = None
            self._failures = 0
            self.last_activity = self._clock()
            self.store.clear()
            self.synced.set()
        if absent != self.absent:
            if isinstance(why, Forbidden):
                log.warning("%s: %s; they are left alone until it is allowed", self.resource.plural, why)
            else:
                log.info("the cluster %s %s", "does not know" if absent else "now shows", self.resource.plural)
            self.absent = absent
            self._on_presence()
