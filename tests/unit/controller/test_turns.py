"""When a key has its turn, and when it is looked at again though nothing has happened."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from tests.support import memory

from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.reconcile import PLANNERS, spread
from paceline.plan.step import Plan


def served(number: int) -> ObjectKey:
    return ObjectKey("speculativedeployments", "models", f"served-{number}")


def test_a_finished_round_waits_for_one_deployment_and_not_for_a_thousand_of_its_namespace() -> None:
    """At a start all are looked at; meanwhile the accelerators of a round that has ended wait for the next."""
    queue = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))).queue
    for number in range(1000):
        queue.add(served(number))
    run = ObjectKey("benchmarkruns", "models", "measures")
    queue.add(run)
    assert [queue.take(), queue.take()] == [served(0), run]


@pytest.mark.parametrize(
    ("conditions", "maps", "rests"),
    [
        ({"Ready": "True"}, {}, True),
        ({"Ready": "True"}, {"prompts": None}, False),  # nobody hears of a ConfigMap
        ({"Ready": "True", "Reconciling": "True"}, {}, False),
        ({"Ready": "True", "Stalled": "True"}, {}, False),  # by an object without our label
        ({"Ready": "False"}, {}, False),
    ],
)
def test_who_may_wait_for_what_nobody_watches_does_not_rest(
    conditions: dict[str, str], maps: dict[str, None], rests: bool
) -> None:
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    snapshot = SimpleNamespace(config_maps=maps)
    assert PLANNERS["speculativedeployments"].rests(snapshot, Plan(status=status)) is rests


def test_a_thousand_that_were_looked_at_together_are_not_due_together_again() -> None:
    due = sorted(spread(served(number)) for number in range(1000))
    assert 0.75 <= due[0] < due[-1] < 1
    assert max(later - earlier for earlier, later in pairwise(due)) < 0.01
