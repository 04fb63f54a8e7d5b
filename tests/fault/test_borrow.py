"""Whatever happens around any single write while a pool lends a server, it has all its servers in the end."""

from typing import Any

import pytest
from tests.fault.forks import Mishap, at_each_write
from tests.fault.oracle import broken_promises
from tests.fault.stories import Story, example, tell_once
from tests.fault.world import NAME, NAMESPACE, World

from paceline.kube import Manifest, Ref
from paceline.kube.resources import DEPLOYMENT

SERVERS = Ref(DEPLOYMENT, NAMESPACE, f"{NAME}-latency")
ASKED = 4
"""As many as nodes: each fills one, and no round has room."""


def borrowing() -> Manifest:
    manifest = example("latency")
    manifest["spec"]["pools"][0]["replicas"] = ASKED
    manifest["spec"]["benchmark"] |= {"capacityPolicy": "Borrow", "minServing": ASKED - 1}
    return manifest


def asked_for(world: World) -> list[int]:
    """How many servers the Deployment was to have, one after another."""
    changes = [change.new for change in world.cluster.changes if change.ref == SERVERS and change.new]
    counts = [int(found["spec"]["replicas"]) for found in changes]
    return [count for number, count in enumerate(counts) if number == 0 or counts[number - 1] != count]


def lent_one_for_a_while(world: World) -> list[str]:
    counts = asked_for(world)
    return [] if counts == [ASKED, ASKED - 1, ASKED] else [f"servers asked for: {counts}"]


BORROWED = Story(lambda world: world.apply(borrowing()))


def test_a_full_cluster_lends_one_server_while_its_run_measures() -> None:
    world = tell_once(BORROWED)
    assert not broken_promises(world.cluster)
    assert lent_one_for_a_while(world) == []
    assert "borrowed" not in world.found()["status"]["pools"][0]["internal"]


def suspended(spec: dict[str, Any]) -> None:
    spec["suspend"] = True


def without_a_loan(spec: dict[str, Any]) -> None:
    spec["benchmark"] |= {"capacityPolicy": "Wait"}
    spec["benchmark"].pop("minServing", None)


@pytest.mark.parametrize("edit", [suspended, without_a_loan], ids=lambda edit: edit.__name__)
def test_it_comes_back_when_the_spec_takes_it_back(edit: Any) -> None:
    """At any moment."""

    def check(world: World) -> list[str]:
        counts, entry = asked_for(world), world.found()["status"].get("pools", [{}])[0]
        found = [] if not counts or (counts[-1] == ASKED and min(counts) >= ASKED - 1) else [f"asked for {counts}"]
        return found + (["a server is still lent"] if "borrowed" in entry.get("internal", {}) else [])

    at_each_write(BORROWED, Mishap(what=edit.__name__, when="after", do=lambda world: world.edit(edit)), check).go()
