"""Upgrades on nodes without room for one server more: a round borrows one of two servers, and an accepted change
arrives in place, while users ask."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import emulated, pool
from tests.cluster.images import move_tag
from tests.cluster.load import seen_during, users
from tests.cluster.test_borrow import BORROW, PRODUCT, fill
from tests.cluster.test_capacity import everywhere, holds_gpus
from tests.cluster.test_edits import uninterrupted
from tests.cluster.test_upgrades import NAME, OTHER, asked, image_of, pending
from tests.support.kubernetes import Manifest, Namespace, listed, says
from tests.support.queries import served

BEFORE = ["wide", "baseline"]
"""What has served at first, latest first."""


def full(hub: str, **engine: Any) -> Manifest:
    manifest = asked(hub, **engine)
    manifest["spec"] |= {"benchmark": BORROW, "pools": [pool(replicas=2)]}
    return manifest


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("full-upgrades") as fresh:
        fresh.wait("other stories to give their GPUs back", lambda: not any(map(holds_gpus, everywhere())), 120)
        fresh.apply(full(hub))
        fresh.wait("the winner to be served", served(fresh, NAME, "wide"), 200)
        fresh.wait("both servers", lambda: settled(fresh), 60)
        fill(fresh, sorted(node["metadata"]["name"] for node in listed("nodes", "--selector", PRODUCT)))
        users(fresh)
        yield fresh


@pytest.mark.timeout(400)
def test_one_that_is_slower_costs_a_server_for_a_while_and_no_request(here: Namespace, hub: str) -> None:
    def rejected() -> None:
        here.apply(full(hub, env=emulated(SPEED="0.5")))
        here.wait("it to be rejected", lambda: pending(here, "Rejected"), 200)
        here.wait("both servers", lambda: settled(here), 60)

    seen = seen_during(here, NAME, 240, rejected)
    print(f"rejected: {seen}")
    assert (seen.failed, history(here)) == (0, BEFORE), seen.errors
    here.apply(full(hub))
    here.wait("it to be taken back", lambda: settled(here) and not pending(here, "Rejected"), 60)


@pytest.mark.timeout(400)
def test_one_that_is_faster_arrives_in_place(here: Namespace, hub: str, tmp_path: Path) -> None:
    move_tag("upgraded", tmp_path, OTHER)

    def accepted() -> None:
        here.apply(full(hub, image=OTHER, type="SGLang", version="0.5.23", env=emulated(SPEED="1.1")))
        here.wait("it to serve", lambda: settled(here) and image_of(here) == {OTHER}, 220)

    seen = seen_during(here, NAME, 240, accepted)
    print(f"accepted: {seen}")
    assert (seen.failed, history(here)) == (0, ["wide", *BEFORE]), seen.errors
    uninterrupted(here, replicas=2)


def settled(here: Namespace) -> bool:
    """Two servers are ready, and nothing is lent or replaced."""
    (servers,) = here.list("deploy", f"paceline.dev/deployment={NAME}")
    state = servers["status"]
    ready = (servers["spec"]["replicas"], state.get("readyReplicas"), state.get("updatedReplicas")) == (2, 2, 2)
    found = here.get("specdep", NAME)
    return ready and any(says(found, "Promoted", "True", reason) for reason in ("AllPromoted", "StillPromoted"))


def history(here: Namespace) -> list[str]:
    (entry,) = here.get("specdep", NAME)["status"]["pools"]
    return [change["arm"] for change in entry["history"]]
