"""Two operators, and the one that works is killed (SIGKILL)."""

import time
from collections.abc import Iterator

import pytest
from tests.cluster.chaos.machines import lease, scaled
from tests.cluster.example import small
from tests.support.kubernetes import Namespace, listed, run
from tests.support.processes import home, kill, process
from tests.support.queries import POOL, name_of, served

NAME = "followed"
SECONDS = 15
"""From a leader's death to what the next one does, at most."""


@pytest.fixture
def two() -> Iterator[None]:
    with scaled(2):
        yield


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("two")
def test_the_next_leader_acts_within_fifteen_seconds(here: Namespace, hub: str) -> None:
    """What is missing the moment after is put back, and the pool's server goes on."""
    here.apply(small(NAME, hub, suspend=True))
    here.wait("the baseline to be served", served(here, NAME, "baseline"), 90)
    (server,) = here.list("pods", "paceline.dev/component=server")
    leader = lease()
    (pod,) = [one for one in listed("pods", "--namespace", home.name) if name_of(one) == leader.rpartition("_")[0]]
    kill(process(pod, "operator"))
    died = time.monotonic()
    here.kubectl("delete", "service", f"{NAME}-{POOL}", "--wait=false")
    there = ("--namespace", here.name, "get", "service", f"{NAME}-{POOL}")
    here.wait("the Service to be back", lambda: not run(*there).returncode, 60)
    took = time.monotonic() - died
    print(f"the next leader acted {took:.1f} s after the last one's death")
    assert took <= SECONDS
    assert lease() != leader
    assert [name_of(one) for one in here.list("pods", "paceline.dev/component=server")] == [name_of(server)]
