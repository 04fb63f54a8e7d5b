"""A changed spec is compared with what serves while users ask, from apply to the end: one that is slower stays off, one
that is faster arrives by one roll-out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.conftest import namespace_for
from tests.cluster.example import emulated, small
from tests.cluster.images import move_tag
from tests.cluster.load import seen_during, users
from tests.cluster.test_edits import standing, uninterrupted
from tests.support.kubernetes import Manifest, Namespace, condition, says
from tests.support.queries import pool_of, served

NAME = "coder"
OTHER = "localhost/paceline-upgraded:dev"
"""The emulated engine in an image of its own."""
GRACE = {"spec": {"terminationGracePeriodSeconds": 20}}
"""A server that waited for its users to leave would be killed within every story."""


@pytest.fixture(scope="module")
def here(hub: str) -> Iterator[Namespace]:
    with namespace_for("upgrades") as fresh:
        fresh.apply(asked(hub))
        fresh.wait("the winner to be served", served(fresh, NAME, "wide"), 150)
        users(fresh)
        yield fresh


def asked(hub: str, **engine: Any) -> Manifest:
    """The first tokens of six requests, on two nodes of one machine beside users, say nothing about a server."""
    gate = {"limits": [{"metric": "meanTTFT", "maxIncrease": "900%"}]}
    return small(NAME, hub, engine={"podTemplate": GRACE, **engine}, gate=gate)


@pytest.mark.timeout(300)
def test_an_upgrade_that_is_slower_stays_off(here: Namespace, hub: str) -> None:
    before = uninterrupted(here)

    def rejected() -> None:
        here.apply(asked(hub, env=emulated(SPEED="0.8")))
        found = here.wait("a round beside what serves", lambda: pending(here, "Measuring"), 60)
        assert pool_of(found)["serving"]["arm"] == "wide"
        found = here.wait("it to be rejected", lambda: pending(here, "Rejected"), 145)
        assert says(found, "Promoted", "True", "StillPromoted")
        assert "promote-anyway.paceline.dev/" in str((condition(found, "ChangePending") or {})["message"])

    seen = seen_during(here, NAME, 160, rejected)
    print(f"rejected: {seen}")
    assert (seen.failed, uninterrupted(here)) == (0, before)
    run = here.get("bench", pool_of(here.get("specdep", NAME))["benchmarkRun"])
    assert [arm["name"] for arm in run["spec"]["arms"]] == ["baseline", "wide", "incumbent"]
    assert [point["why"] for one in run["rounds"] for point in one["points"] if not point["valid"]] == []
    here.apply(asked(hub))
    here.wait("it to be taken back", lambda: settled(here), 30)
    assert uninterrupted(here) == before


@pytest.mark.timeout(300)
def test_an_upgrade_that_is_faster_arrives_by_one_roll_out(here: Namespace, hub: str, tmp_path: Path) -> None:
    move_tag("upgraded", tmp_path, OTHER)
    ((before, _),) = uninterrupted(here)

    def accepted() -> None:
        here.apply(asked(hub, image=OTHER, type="SGLang", version="0.5.23", env=emulated(SPEED="1.1")))
        here.wait("a round beside what serves", lambda: pending(here, "Measuring"), 60)
        here.wait("it to serve", lambda: settled(here) and image_of(here) == {OTHER}, 130)

    seen = seen_during(here, NAME, 150, accepted)
    print(f"accepted: {seen}")
    assert seen.failed == 0, seen.errors
    ((after, _),) = uninterrupted(here)
    assert after != before
    found = here.get("specdep", NAME)
    assert (pool_of(found)["serving"]["arm"], says(found, "Promoted", "True", "AllPromoted")) == ("wide", True)
    assert [change["arm"] for change in pool_of(found)["history"]] == ["wide", "wide", "baseline"]
    (one,) = (run for run in here.list("bench") if len(run["spec"]["arms"]) == 3 and "verdict" in run["status"]
              and run["status"]["verdict"]["outcome"] == "Promote")  # fmt: skip
    assert {arm["name"] for arm in one["spec"]["arms"]} == {"baseline", "wide", "incumbent"}


def pending(here: Namespace, reason: str) -> Manifest | None:
    found = here.get("specdep", NAME)
    return found if says(found, "ChangePending", "True", reason) else None


def settled(here: Namespace) -> bool:
    """What serves is what the spec asks for, and nothing is measured."""
    found = here.get("specdep", NAME)
    seen = found["status"]["observedGeneration"] == found["metadata"]["generation"]
    waits = condition(found, "ChangePending") or condition(found, "Reconciling")
    return bool(seen and not waits and says(found, "Promoted", "True", "AllPromoted") and len(standing(here)) == 1)


def image_of(here: Namespace) -> set[str]:
    return {str(pod["spec"]["containers"][0]["image"]) for pod in standing(here)}
