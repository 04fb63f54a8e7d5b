"""The probes of the kubelet: a restart where it helps, and nowhere else. All on a virtual clock, with the real times.

tests/api/test_health.py shows the same of the operator's process at a real API server.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import pytest
from tests.fault.healthy import leads
from tests.fault.virtual import run
from tests.support import memory

from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.health import AWAY_SECONDS, SILENT_SECONDS, STUCK_SECONDS, Health
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.kube import (
    ApiError,
    Contact,
    Forbidden,
    Listing,
    Manifest,
    Ref,
    Resource,
    Unavailable,
    WatchEvent,
    WorkQueue,
)
from paceline.kube import contact as contact_module
from paceline.kube.contact import ask_anew
from paceline.kube.resources import LEASE, POD
from paceline.kube.transport import SILENCE, WATCH_SECONDS

AWAY = Unavailable(0, "ClientConnectorError", "connection refused")
HOUR = 3600.0


class Server(memory.MemoryApi):
    """Watches end as the API server ends them; `trouble` says what comes of a request about a kind: None is an answer,
    "silence" bytes that never come."""

    def __init__(self, contact: Contact) -> None:
        super().__init__(memory.Cluster(kinds=RECONCILED_KINDS))
        self.trouble: Callable[[Resource], ApiError | str | None] = lambda _: None
        self.contact = contact

    def _asked(self, resource: Resource) -> None:
        trouble = self.trouble(resource)
        if isinstance(trouble, ApiError):
            self.contact.heard(trouble.status)
            raise trouble
        self.contact.heard(200)

    async def get(self, ref: Ref) -> Manifest | None:
        self._asked(ref.resource)
        return await super().get(ref)

    async def list(self, resource: Resource, *more: Any, **others: Any) -> Listing:
        if self.trouble(resource) == "silence":
            await asyncio.sleep(30)
            raise Unavailable(0, "TimeoutError", "no answer")
        self._asked(resource)
        return await super().list(resource, *more, **others)

    async def watch(self, resource: Resource, *more: Any, **others: Any) -> AsyncGenerator[WatchEvent, None]:
        if self.trouble(resource) == "silence":
            await asyncio.sleep(SILENCE)
            raise Unavailable(0, "SocketTimeoutError", "no byte for 90 s")
        self._asked(resource)
        seconds = 0.0
        while seconds < WATCH_SECONDS:
            await asyncio.sleep(1)
            seconds += 1
            if self.trouble(resource) is not None:
                return
        for event in ():
            yield event


class Process:
    """Its watches and its health; `renews`: the Lease is asked about every two seconds, as a leader does."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.contact = Contact(loop.time)
        self.server = Server(self.contact)
        self.cluster = WatchedCluster(self.server)
        for reflector in self.cluster.reflectors:
            reflector._clock = loop.time
            reflector.last_activity = reflector._refused = loop.time()
        self.cluster.queue = WorkQueue(clock=loop.time)
        self.health = Health(cluster=self.cluster, contact=self.contact)
        self.faults: set[str | None] = set()
        self.unready: set[str | None] = set()

    async def during(self, seconds: float) -> None:
        """What both probes said meanwhile, asked every second."""
        self.faults, self.unready = set(), set()
        for _ in range(round(seconds)):
            await asyncio.sleep(1)
            self.faults.add(_without_numbers(self.health.fault()))
            self.unready.add(_without_numbers(self.health.unready()))


def _without_numbers(told: str | None) -> str | None:
    return told and re.sub(r"\d+", "N", told)


def living(story: Callable[[Process], Coroutine[Any, Any, None]]) -> None:
    async def life() -> None:
        process = Process()
        ref = Ref(LEASE, "default", "paceline")

        class Fresh(Server):
            async def __aenter__(self) -> "Server":
                return process.server

            async def __aexit__(self, *_: object) -> None: ...

        async def reach() -> Fresh:
            return Fresh(process.contact)

        tasks = [asyncio.create_task(reflector.run()) for reflector in process.cluster.reflectors]
        tasks.append(asyncio.create_task(ask_anew(process.contact, reach, ref)))
        await process.during(60)
        assert (process.faults, process.unready) == ({None}, {None})
        await story(process)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(life())


def test_an_hour_in_which_nothing_happens_is_healthy() -> None:
    async def story(process: Process) -> None:
        await process.during(HOUR)
        assert (process.faults, process.unready) == ({None}, {None})

    living(story)


def test_a_watch_that_is_dead_while_others_are_answered_ends_the_process() -> None:
    async def story(process: Process) -> None:
        process.server.trouble = lambda resource: "silence" if resource == POD else None
        await process.during(SILENT_SECONDS - 5)
        assert process.faults == {None}
        await process.during(WATCH_SECONDS)
        assert process.faults == {None, "the watch of pods has heard nothing for N s, but other requests are answered"}

    living(story)


@pytest.mark.parametrize("away", [AWAY, Unavailable(503, "ServiceUnavailable", "no backend")], ids=["refused", "503"])
def test_an_hour_without_the_api_server_restarts_nobody_and_nobody_is_ready(away: ApiError) -> None:
    async def story(process: Process) -> None:
        process.server.trouble = lambda _: away
        await process.during(HOUR)
        assert process.faults == {None}
        assert (
            process.unready
            == {
                None,
                "the API server has not answered for N s",
                "the API server has not answered for NN s",
                "the API server has not answered for NNNN s",
            }
            & process.unready
        )
        await process.during(60)
        assert None not in process.unready
        process.server.trouble = lambda _: None
        await process.during(HOUR)
        assert process.faults == {None}, "nor when it is back"
        await process.during(60)
        assert process.unready == {None}

    living(story)


def test_a_watch_that_is_refused_is_no_reason_for_a_restart() -> None:
    """A right that was taken away stays away in the next process. It is not ready, and an alert tells."""

    async def story(process: Process) -> None:
        process.server.trouble = lambda resource: Forbidden(403, "Forbidden", "no") if resource == POD else None
        await process.during(HOUR)
        assert process.faults == {None}
        await process.during(60)
        assert (
            process.unready
            == {"the watch of pods has heard nothing for N s", "the watch of pods has heard nothing for NNNN s"}
            & process.unready
        )

    living(story)


def test_who_alone_does_not_reach_a_server_that_answers_a_new_connection_ends() -> None:
    """A certificate that was replaced, a name that moved: only a new process reads them."""

    async def story(process: Process) -> None:
        process.server.trouble = lambda resource: None if resource == LEASE else AWAY
        await process.during(SILENT_SECONDS - WATCH_SECONDS - 15)
        assert process.faults == {None}
        await process.during(120)
        assert str(process.health.fault()).endswith(", but other requests are answered")

    living(story)


def test_passes_that_do_not_end_end_the_process_that_works() -> None:
    async def story(process: Process) -> None:
        async def hangs(_: object) -> None:
            await asyncio.Event().wait()

        process.cluster.queue.add(ObjectKey("speculativedeployments", "models", "served"))
        work = asyncio.create_task(process.cluster.queue.run(hangs))
        await process.during(STUCK_SECONDS + 10)
        assert process.faults == {None}, "it stands by: only who works can be stuck"
        process.health.led = leads()
        await process.during(1)
        assert process.faults == {"no pass has finished for N s"}
        work.cancel()

    living(story)


def test_who_has_lost_the_lease_fails_both_probes() -> None:
    async def story(process: Process) -> None:
        process.health.led = leads()
        process.health.led.lost.set()
        await process.during(1)
        assert (process.faults, process.unready) == ({"the lease is lost"}, {"the lease is lost"})

    living(story)


def test_nobody_is_ready_before_every_kind_is_listed() -> None:
    async def story() -> None:
        process = Process()
        assert (process.health.fault(), "not listed yet: " in str(process.health.unready())) == (None, True)

    run(story())


def test_an_absence_is_told_before_a_gap_and_asked_about_before_it() -> None:
    """Otherwise answers to new connections alone would each begin anew, and none of our watches ever count as dead."""
    request = 30.0
    assert contact_module.ASK + request < contact_module.GAP <= AWAY_SECONDS
