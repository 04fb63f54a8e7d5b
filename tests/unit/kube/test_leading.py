"""A Lease on a thread of its own, beside work that does not let anything else run."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from tests.support.memory import Cluster, MemoryApi, Write, lost

from paceline.kube import Api, Lease, Manifest, Ref, leading
from paceline.kube.resources import LEASE

DURATION, DEADLINE, RETRY = 1.5, 1.0, 0.1


def lease(api: Api, name: str = "leader") -> Lease:
    return Lease(api, "default", "paceline", name, duration=DURATION, renew_deadline=DEADLINE, retry=RETRY)


def holder(cluster: Cluster) -> str:
    found = cluster.get(Ref(LEASE, "default", "paceline"))
    return str(found["spec"]["holderIdentity"]) if found else ""


class Connection:
    """To a cluster in memory; `cut` is a network that is gone."""

    def __init__(self, cluster: Cluster) -> None:
        self.api = MemoryApi(cluster, before=self._before)
        self.cut = False

    async def reach(self) -> AbstractAsyncContextManager[Api]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Api]:
        yield self.api

    def _before(self, _: Write) -> None:
        if self.cut:
            raise lost()


async def test_work_that_lets_nothing_else_run_does_not_lose_the_lease() -> None:
    cluster = Cluster()
    async with leading(Connection(cluster).reach, lease) as led:
        first = cluster.version
        time.sleep(2 * DURATION)  # noqa: ASYNC251 (that is the point)
        await asyncio.sleep(0)
        assert not led.lost.is_set()
        assert cluster.version >= first + 10, "it was renewed meanwhile"
        assert holder(cluster) == "leader"
    assert holder(cluster) == "", "released on leaving"


async def test_who_works_is_told_at_once_that_the_lease_is_lost() -> None:
    connection, ended = Connection(Cluster()), list[int]()
    async with leading(connection.reach, lease, grace=0.5, end=ended.append) as led:
        connection.cut = True
        began = time.monotonic()
        await led.lost.wait()
        assert time.monotonic() - began < DURATION, "before a rival can have it"
    assert ended == [], "who leaves in time is not ended"


async def test_work_that_goes_on_without_the_lease_is_ended() -> None:
    connection, ended = Connection(Cluster()), list[int]()
    async with leading(connection.reach, lease, grace=0.2, end=ended.append) as led:
        connection.cut = True
        time.sleep(DURATION + 0.5)  # noqa: ASYNC251 (it does not even hear of the loss)
        assert ended == [1]
        await asyncio.sleep(0)
        assert led.lost.is_set()


async def test_who_has_stopped_to_work_gives_the_lease_away_before_it_leaves() -> None:
    """What it still waits for is nothing to its rival; and it has not lost the lease, but given it."""
    cluster = Cluster()
    async with leading(Connection(cluster).reach, lease) as led:
        led.release()
        async with asyncio.timeout(5), leading(Connection(cluster).reach, lambda api: lease(api, "rival")):
            assert holder(cluster) == "rival"
        assert not led.lost.is_set()


async def test_who_leaves_while_the_lease_is_being_given_away_does_not_cut_that_short() -> None:
    """Kopf may stop in a millisecond, and the write that gives the lease away takes ten: cut short, nobody works until
    it has run out."""

    class Slow(MemoryApi):
        async def update(self, manifest: Manifest) -> Manifest:
            if not manifest["spec"]["holderIdentity"]:
                await asyncio.sleep(0.3)
            return await super().update(manifest)

    connection = Connection(cluster := Cluster())
    connection.api = Slow(cluster)
    async with leading(connection.reach, lease) as led:
        led.release()
        await asyncio.sleep(0.1)
    assert holder(cluster) == ""


async def test_a_rival_waits_for_its_turn_and_one_that_cannot_connect_says_so() -> None:
    cluster = Cluster()
    async with leading(Connection(cluster).reach, lease):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5), leading(Connection(cluster).reach, lambda api: lease(api, "rival")):
                pass

    async def unreachable() -> AbstractAsyncContextManager[Api]:
        raise OSError("no such file: kubeconfig")

    with pytest.raises(OSError, match="kubeconfig"):
        async with leading(unreachable, lease):
            pass
