"""Leader election on a coordination.k8s.io Lease, by the rules of client-go.

Clocks of two machines are never compared. A rival's lease has expired if *its record has not changed* for its whole
duration, measured by our clock; ours is lost if we could not renew it for `renew_deadline` seconds, which is less.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from paceline.kube.errors import ApiError, Conflict, Unavailable
from paceline.kube.interface import Api
from paceline.kube.resources import LEASE, Manifest, Ref

log = logging.getLogger(__name__)

SOONEST = 0.1
"""Minimum seconds until the next look at a lease that expires soon. An expired lease that we cannot take is not checked
more often than others: the server may be unreachable, or refuse us."""


class Lease:
    """One candidate. `identity` must be unique per process, or a restart would mistake its own old lease for its own.

    `await acquire()`, work while `await keep()` has not returned, `await release()`. All times are in seconds: the
    holder renews every `retry`; candidates look every `look` and when the lease expires, so that they take a released
    or a dead leader's lease without more delay.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = 12.0,
        renew_deadline: float = 8.0,
        retry: float = 2.0,
        look: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._ref = Ref(LEASE, namespace, name)
        self._identity = identity
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry = retry
        self._look_again = look
        self._clock = clock
        self._sleep = sleep
        self._record: Manifest | None = None
        """The lease as last seen; `_since` is when (by our clock) it last changed."""
        self._since = clock()
        self._renewed: float | None = None
        """When (by our clock) the last successful renewal was sent; None: the lease is not ours."""
        self.lost = asyncio.Event()

    @property
    def held(self) -> bool:
        """The lease is certainly ours: no rival can have taken it yet."""
        return self._renewed is not None and self._clock() < self._renewed + self._renew_deadline

    async def acquire(self) -> None:
        """Return when the lease is ours. Retries after API errors."""
        while not await self._try():
            left = self._runs_out() - self._clock()
            await self._sleep(min(self._look_again, max(left, SOONEST)) if left > 0 else self._look_again)
        log.info("lease %s is ours (%s)", self._ref.name, self._identity)

    async def keep(self) -> None:
        """Renew until the lease is lost; then set `lost` and return."""
        while self.held and self._held_by(self._identity):
            await self._sleep(self._retry)
            await self._try()
        log.error("lease %s is lost", self._ref.name)
        self._renewed = None
        self.lost.set()

    async def release(self) -> None:
        """Let a rival take over at once. Best effort: otherwise the lease runs out by itself."""
        if not self.held or self._record is None:
            return
        self._renewed = None
        try:
            try:
                await self._api.update(_given_away(self._record))
            except Conflict:  # a cancelled renewal had been written after all
                self._look(await self._api.get(self._ref))
                if self._record is not None and self._held_by(self._identity):
                    await self._api.update(_given_away(self._record))
        except ApiError as error:
            log.warning("lease %s was not released: %s", self._ref.name, error)

    async def _try(self) -> bool:
        """One attempt to get or renew the lease, with a timeout that leaves time for the next."""
        sent = self._clock()
        left = self._renew_deadline if self._renewed is None else self._renewed + self._renew_deadline - sent
        try:
            async with asyncio.timeout(min(left, self._renew_deadline / 2)):
                await self._write()
        except (ApiError, TimeoutError) as error:
            log.info("lease %s: %s", self._ref.name, str(error) or "no answer in time")
            return False
        if not self._held_by(self._identity):
            return False
        self._renewed = sent
        return True

    async def _write(self) -> None:
        """Write our name into the lease if it is free, ours or expired. `_record` then has the current lease."""
        if not self._held_by(self._identity):
            self._look(await self._api.get(self._ref))
        if not self._may_take():
            return
        try:
            written = await (self._api.create if self._record is None else self._api.update)(self._ours())
        except (Conflict, Unavailable):  # a rival was faster, or our write succeeded and the answer was lost
            self._look(await self._api.get(self._ref))
            raise
        self._look(written)

    def _look(self, record: Manifest | None) -> None:
        if record is not None:
            record = record | {"spec": record.get("spec") or {}}  # someone may have created one without a spec
        if record is None or self._record is None or record["spec"] != self._record["spec"]:
            self._since = self._clock()
        self._record = record

    def _held_by(self, identity: str) -> bool:
        return self._record is not None and self._record["spec"].get("holderIdentity") == identity

    def _may_take(self) -> bool:
        if self._record is None:
            return True
        if self._record["spec"].get("holderIdentity") in (None, "", self._identity):
            return True
        return self._clock() >= self._runs_out()

    def _runs_out(self) -> float:
        """When (by our clock) a rival's lease expires unless it is renewed."""
        promised = (self._record or {}).get("spec", {}).get("leaseDurationSeconds")
        return self._since + float(promised or self._duration)

    def _ours(self) -> Manifest:
        old = self._record["spec"] if self._record else {}
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": round(self._duration),
            "renewTime": _now(),
            "acquireTime": old.get("acquireTime") if self._held_by(self._identity) else _now(),
            "leaseTransitions": old.get("leaseTransitions", -1) + (not self._held_by(self._identity)),
        }
        if self._record is not None:
            return self._record | {"spec": spec}
        metadata = {"namespace": self._ref.namespace, "name": self._ref.name}
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}


def _given_away(record: Manifest) -> Manifest:
    return record | {"spec": record["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}}


def _now() -> str:
    """MicroTime. Only for people to read: no decision uses it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
