"""docs/states.md has every state that a story of this directory reaches, and what kubectl, Argo CD and Flux say of it.

`PACELINE_GOLDEN=write pytest tests/plan/test_states.py` writes its tables anew; the diff is what a review reads.

Its first test tells the stories that this process has not told yet: alone all of them, in 40 s of a core, and 1 s for
what it does itself.
"""

from functools import cache
from pathlib import Path

import pytest
from tests.support import generated
from tests.support.health import Manifest
from tests.support.states import Reader, State, health_of, healths, runs, servers, states, table, verdicts
from tests.support.stories import every_story, name_of, played
from tests.support.world import example

DOCUMENT = Path(__file__).parents[2] / "docs" / "states.md"
TABLES: dict[str, Reader] = {"servers": servers, "verdicts": verdicts, "runs": runs}
ALIKE = {"Healthy": "Current", "Suspended": "Current", "Progressing": "InProgress", "Degraded": "Failed"}
"""What Argo CD says → what Flux says of the same. Only Argo CD knows what is suspended."""


pytestmark = pytest.mark.timeout(1800)
"""Of all stories together: on a busy machine they take longer than one test may."""


@cache
def reached(name: str) -> list[State]:
    return states(TABLES[name], {name_of(tell): played(tell).seen for tell in every_story()})


@pytest.mark.parametrize("name", TABLES)
def test_its_tables_are_those_of_the_stories(name: str) -> None:
    told = table([state.row for state in reached(name)], without=() if name == "servers" else ["for example"])
    generated.is_in(DOCUMENT, name, told, by="tests/plan/test_states.py")


def test_argo_cd_flux_and_kstatus_agree_in_every_state_of_a_deployment() -> None:
    said = [(state.shown, dict(one)) for state in reached("servers") for one in state.healths]
    of_seen = [(shown, one) for shown, one in said if one["Flux"] != "Unknown"]
    assert len(of_seen) > 30
    assert [case for case in of_seen if {ALIKE[case[1]["Argo CD"]], case[1]["kstatus"]} != {case[1]["Flux"]}] == []


def test_ready_reconciling_stalled_and_suspend_alone_decide_the_health_of_a_deployment() -> None:
    said: dict[tuple[object, ...], set[str]] = {}
    for tell in every_story():
        for seen in played(tell).seen:
            if seen["kind"] == "SpeculativeDeployment" and "status" in seen:
                status = seen["status"]
                conditions = {one["type"]: one["status"] for one in status.get("conditions", ())}
                observed = status.get("observedGeneration") == seen["metadata"]["generation"]
                three = [conditions.get(kind) for kind in ("Ready", "Reconciling", "Stalled")]
                said.setdefault((observed, seen["spec"]["suspend"], *three), set()).add(str(health_of(seen)))
    assert len(said) > 8
    assert [state for state, healths in said.items() if len(healths) > 1] == []


def test_of_a_run_flux_says_what_argo_cd_says_but_for_a_suspended_one_and_kstatus_knows_nothing() -> None:
    said = [dict(one) for state in reached("runs") for one in state.healths]
    alike = ALIKE | {"Suspended": "InProgress"}
    assert {one["Argo CD"] for one in said} == set(alike)
    assert [one for one in said if one["Flux"] not in (alike[one["Argo CD"]], "Unknown")] == []
    assert {one["kstatus"] for one in said} == {"Current"}


def test_nothing_is_healthy_before_the_operator_has_seen_it() -> None:
    """But for kstatus alone, which takes what has no conditions for current."""
    unseen: Manifest = example()
    said = healths({**unseen, "metadata": {**unseen["metadata"], "generation": 1}})
    assert said == {"Argo CD": "Progressing", "Flux": "Unknown", "kstatus": "Current"}
