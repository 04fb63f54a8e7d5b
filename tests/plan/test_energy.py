"""Faster at more joules per token is a verdict that a person can ask for."""

from typing import Any

import pytest
from tests.support.answers import using
from tests.support.messages import Says
from tests.support.world import World, example


def measured(joules: float | None, **gate: Any) -> dict[str, Any]:
    """The run of the latency pool, after enough rounds in which `wide` takes so many joules, the baseline 1."""
    manifest = example("latency")
    manifest["spec"]["pools"][0]["gate"] = {**manifest["spec"]["pools"][0].get("gate", {}), **gate}
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(8):
        world.round_ends(baseline=using(1.0), **({"wide": using(joules)} if joules else {}))
        if world.runs("latency")[0]["status"].get("verdict"):
            break
    status: dict[str, Any] = world.runs("latency")[0]["status"]
    return status


LIMIT = {"limits": [{"metric": "energyPerToken", "maxIncrease": "10%"}]}


@pytest.mark.parametrize(("joules", "outcome"), [(1.05, "Promote"), (1.3, "Reject"), (None, "Inconclusive")])
def test_a_limit_bounds_the_energy_of_a_token(says: Says, joules: float | None, outcome: str) -> None:
    status = measured(joules, **LIMIT)
    assert status["verdict"]["outcome"] == outcome
    says(status["armVerdicts"][0]["reason"])


def test_status_has_the_ratio_of_each_workload() -> None:
    status = measured(1.3)
    assert status["verdict"]["outcome"] == "Promote"
    assert {one.get("energy") for one in status["results"] if one["workload"] != "mean"} == {"1.3000"}
