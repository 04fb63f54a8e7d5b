"""The lease, with two candidates on one clock."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.support.memory import Cluster, MemoryApi, Write, fail_at, lost

from paceline.kube import Lease, Manifest, Ref, Unavailable
from paceline.kube.leading import GRACE
from paceline.kube.resources import LEASE


class Clock:
    """Time passes only by sleeping, and another candidate may act meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()
        await asyncio.sleep(0)


def candidate(api: MemoryApi, name: str, clock: Clock) -> Lease:
    return Lease(api, "default", "paceline", name, clock=clock, sleep=clock.sleep)


def holder(cluster: Cluster) -> str:
    lease = cluster.get(Ref(LEASE, "default", "paceline"))
    assert lease is not None
    return str(lease["spec"]["holderIdentity"])


async def test_a_dead_leader_is_followed_after_the_lease_has_run_out():
    cluster, clock = Cluster(), Clock()
    await candidate(MemoryApi(cluster), "dead", clock).acquire()
    clock.now = 1000.0  # of no importance: the rival has only just looked
    rival = candidate(MemoryApi(cluster), "rival", clock)
    await rival.acquire()
    assert 1012 <= clock.now <= 1013
    assert holder(cluster) == "rival"


@pytest.mark.parametrize("tenths", range(0, 20, 3))
async def test_a_leader_that_dies_is_followed_within_thirteen_seconds(tenths: int):
    """Wherever between two renewals it dies, and wherever between two looks of its rival: it was renewed up to 2 s
    before, which the rival has noticed up to 1 s later."""
    cluster, clock = Cluster(), Clock()
    leader, rival = (candidate(MemoryApi(cluster), name, clock) for name in ("leader", "rival"))
    await leader.acquire()
    renewals = [tenths / 10 + 2 * number for number in range(10)]
    died = renewals[-1] + 0.1

    def renew() -> None:
        while renewals and renewals[0] <= clock.now:
            renewals.pop(0)
            record = cluster.get(Ref(LEASE, "default", "paceline"))
            assert record is not None
            cluster.update(record | {"spec": record["spec"] | {"renewTime": f"{clock.now}"}})

    clock.meanwhile = renew
    await rival.acquire()
    assert holder(cluster) == "rival"
    assert died + 12 - 2 <= clock.now <= died + 13


def test_a_leader_has_stopped_when_a_rival_may_begin():
    """The rules of client-go, and ours: who does not hear of the loss is ended in time."""
    lease = candidate(MemoryApi(Cluster()), "leader", Clock())
    assert lease._retry * 1.2 < lease._renew_deadline < lease._duration
    assert lease._renew_deadline + GRACE < lease._duration


async def test_a_living_leader_is_not_followed():
    cluster, clock = Cluster(), Clock()
    leader, rival = (candidate(MemoryApi(cluster), name, clock) for name in ("leader", "rival"))
    await leader.acquire()
    for _ in range(30):
        clock.now += 2
        assert await leader._try()
        assert not await rival._try()


async def test_a_leader_that_is_cut_off_stops_before_a_rival_can_start():
    cluster, clock = Cluster(), Clock()
    api = MemoryApi(cluster)
    leader = candidate(api, "leader", clock)
    await leader.acquire()

    def cut(write: Write) -> None:
        raise lost()

    api.before = cut
    await leader.keep()
    assert leader.lost.is_set()
    assert not leader.held
    assert clock.now <= 10 < 12
    assert holder(cluster) == "leader"


async def test_a_server_that_does_not_answer_is_told_in_words(caplog: pytest.LogCaptureFixture):
    class Silent(MemoryApi):
        async def get(self, ref: Ref) -> None:
            raise TimeoutError

    with caplog.at_level(logging.INFO):
        assert not await candidate(Silent(Cluster()), "one", Clock())._try()
    assert caplog.messages == ["lease paceline: no answer in time"]


async def test_a_lost_answer_is_not_a_lost_lease():
    cluster, clock = Cluster(), Clock()
    api = MemoryApi(cluster, after=fail_at(2, lost()))
    leader = candidate(api, "leader", clock)
    await leader.acquire()
    clock.now += 2
    assert not await leader._try()
    clock.now += 2
    assert await leader._try()
    assert leader.held


async def test_a_created_lease_whose_answer_was_lost_is_ours():
    cluster, clock = Cluster(), Clock()
    leader = candidate(MemoryApi(cluster, after=fail_at(1, lost())), "leader", clock)
    await leader.acquire()
    assert leader.held
    assert clock.now < 15


async def test_a_leader_that_was_asleep_sees_that_it_was_replaced():
    cluster, clock = Cluster(), Clock()
    leader, rival = (candidate(MemoryApi(cluster), name, clock) for name in ("leader", "rival"))
    await leader.acquire()
    await rival._try()
    clock.now += 16  # as a stopped process
    assert not leader.held
    assert await rival._try()
    async with asyncio.timeout(30):
        await leader.keep()
    assert leader.lost.is_set()
    await leader.release()
    assert holder(cluster) == "rival"


@pytest.mark.parametrize("released", [True, False])
async def test_a_released_lease_is_free_at_once(released: bool):
    cluster, clock = Cluster(), Clock()
    leader, rival = (candidate(MemoryApi(cluster), name, clock) for name in ("leader", "rival"))
    await leader.acquire()
    if released:
        await leader.release()
    assert await rival._try() is released


async def test_a_lease_without_a_spec_is_free():
    cluster, clock = Cluster(), Clock()
    cluster.create(
        {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": {"namespace": "default", "name": "paceline"}}
    )
    await candidate(MemoryApi(cluster), "first", clock).acquire()
    assert holder(cluster) == "first"


async def test_a_renewal_that_was_cut_short_and_written_all_the_same_keeps_nobody_from_giving_the_lease_away():
    """A signal comes while the renewal is on its way: what we know of the lease is older than what stands there."""
    cluster, clock = Cluster(), Clock()
    leader = candidate(MemoryApi(cluster, after=fail_at(2, asyncio.CancelledError())), "leader", clock)
    await leader.acquire()
    with pytest.raises(asyncio.CancelledError):
        await leader.keep()
    await leader.release()
    assert holder(cluster) == ""


@pytest.mark.parametrize("known", [True, False], ids=["of a dead leader", "never seen"])
async def test_a_lease_that_cannot_be_had_is_asked_for_once_a_second(known: bool):
    """A server that is away, or refuses us, is not asked ten times a second by everybody who stands by."""
    cluster, clock = Cluster(), Clock()
    await candidate(MemoryApi(cluster), "dead", clock).acquire()
    asked, over = 0, asyncio.Event()

    class Away(MemoryApi):
        async def get(self, ref: Ref) -> Manifest | None:
            nonlocal asked
            asked += 1
            if clock.now >= 120:
                over.set()
            if known and clock.now < 12:
                return await super().get(ref)
            raise Unavailable(503, "ServiceUnavailable", "the server is away")

    waiting = asyncio.create_task(candidate(Away(cluster), "rival", clock).acquire())
    await over.wait()
    waiting.cancel()
    assert asked <= 123
