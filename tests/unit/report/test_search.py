"""What a report says of a search: its arms, what it took beside the grid, and speeds over concurrencies."""

from functools import cache
from typing import Any

import pytest
from tests.support.campaigns import WORKLOADS
from tests.support.messages import Says
from tests.support.reports import said
from tests.support.searched import Served, answered, begun, searched, searching
from tests.support.world import example

from paceline.report import FORMATS, build_report

TABLE = ((1, 4), (5, 2), (17, 0))
"""Batch size and depth."""
LATENCY = {"latency": Served("latency", 1)}


@cache
def ended() -> dict[str, Any]:
    world = begun(searching("latency"))
    searched(world, LATENCY)
    found: dict[str, Any] = world.runs("latency")[0]
    return found


@cache
def of_a_schedule() -> dict[str, Any]:
    """A gate over three loads about a schedule."""
    manifest: dict[str, Any] = dict(example("latency"))
    table = [{"fromBatchSize": size, "numSteps": steps} for size, steps in TABLE]
    manifest["spec"]["candidates"] = [{"name": "table", "depthByBatchSize": table}]
    manifest["spec"]["pools"] = [{"name": "latency", "replicas": 1, "load": [{"concurrency": [1, 8, 32]}]}]
    manifest["spec"]["engine"]["version"] = "0.5.23"
    world = begun(manifest)
    for _ in range(3):
        world.round_ends(truth={"baseline": dict.fromkeys(WORKLOADS, 100.0), "table": dict.fromkeys(WORKLOADS, 130.0)})
    return world.runs("latency")[0]


def test_it_says_what_was_found_and_that_nothing_is_decided(says: Says) -> None:
    run, verdict = said(ended()), ended()["status"]["verdict"]
    assert run.outcome == "Found"
    assert run.sentence.endswith(f"{verdict['winner']}: {verdict['message']}.")
    says(run.asked)
    assert run.crossover is None
    assert all(effect.threshold is None for one in run.candidates for effect in one.effects)


def test_its_arms_are_those_that_were_measured_the_best_first() -> None:
    run, status = said(ended()), ended()["status"]["search"]
    assert run.search is not None
    assert [arm.name for arm in run.search.arms] == [arm["arm"] for arm in status["internal"]["arms"]]
    assert run.arms == ("baseline", *(arm["arm"] for arm in status["internal"]["arms"] if arm["arm"] != "baseline"))
    assert run.search.measured == len(run.arms) - 1 < run.search.candidates == 45
    assert {value.arm for value in run.values} == set(run.arms)
    best = run.search.arms[0]
    steps, top_k, tokens = best.name.removeprefix("tree-").split("-")
    assert best.shape == f"{steps} deep, {top_k} wide, {tokens} tokens"


def test_what_it_took_stands_beside_the_grid() -> None:
    run, status = said(ended()), ended()["status"]["search"]
    assert run.search is not None
    assert (run.search.grid_points, run.search.grid_starts) == (46 * 4, 46)
    text = FORMATS["md"](build_report([ended()]))
    assert f"- Points besides the grid's, measured once: {status['points']} of 184 (" in text
    assert f"- Server starts besides the grid's: {status['serverStarts']} of 46 (" in text
    assert f"{45 - run.search.measured} candidates of 45 never ran" in text


def test_under_way_it_says_how_it_stands_and_what_comes_next() -> None:
    world = begun(searching("latency"))
    for _ in range(3):
        answered(world, LATENCY)
    run, status = said(world.runs("latency")[0]), world.runs("latency")[0]["status"]["search"]
    best = next(arm for arm in status["internal"]["arms"] if arm["state"] == "best")
    assert run.outcome == "Measuring"
    assert f"best so far: {best['arm']}, " in run.sentence
    assert run.sentence.endswith(f"next: {status['next']}.")


def test_before_its_first_round_there_is_nothing_to_show(says: Says) -> None:
    run = begun(searching("latency")).runs("latency")[0] | {"status": {}}
    found = said(run)
    assert found.search is not None
    assert (found.search.arms, found.arms) == ((), ("baseline",))
    says(found.sentence)
    for write in FORMATS.values():
        assert write(build_report([run]))


@pytest.mark.parametrize(
    ("outcome", "why"),
    [("Reject", "no candidate is faster"), ("Inconclusive", "the budget ran out"), ("Error", "no arm was measured")],
)
def test_other_ends(outcome: str, why: str, says: Says) -> None:
    status = ended()["status"] | {"verdict": {"outcome": outcome, "message": why}, "emulated": False}
    run = said(ended() | {"status": status, "rounds": []})
    assert (run.outcome, why in run.sentence) == (outcome, True)
    says(run.sentence)


def test_a_failed_arm_says_why_and_stands_last() -> None:
    stood = ended()["status"]["search"]["internal"]["arms"]
    name = next(arm["name"] for arm in ended()["spec"]["arms"] if arm["name"] not in {one["arm"] for one in stood})
    arms = [*stood, {"arm": name, "state": "failed", "why": "out of memory"}]
    status = ended()["status"] | {"search": ended()["status"]["search"] | {"internal": {"arms": arms}}}
    last = FORMATS["md"](build_report([ended() | {"status": status}])).partition("### Outputs")[0].splitlines()
    row = next(line for line in last if line.startswith(f"| {name} ("))
    assert "| failed (out of memory) | 0 | – | – | – |" in row


def test_every_format_can_be_written() -> None:
    page = FORMATS["html"](build_report([ended()]))
    assert "Best first" in page
    assert "Arms of the search" in page
    assert '"search": {' in FORMATS["json"](build_report([ended()]))
    assert '"search": null' in FORMATS["json"](build_report([of_a_schedule()]))


def test_speeds_over_concurrencies_have_the_thresholds_of_a_schedule() -> None:
    code = next(one for one in said(of_a_schedule()).over_loads if one.dataset == "code")
    assert set(code.lines) == {"baseline", "table"}
    assert list(code.lines["baseline"]) == [1, 8, 32]
    assert [(one.batch_size, one.steps) for one in code.thresholds if one.arm == "table"] == [*TABLE[1:]]
    text = FORMATS["md"](build_report([of_a_schedule()]))
    assert "### Tokens per second over concurrency: code" in text
    assert "depth 2 from 5 requests on, no speculation from 17 requests on." in text
    page = FORMATS["html"](build_report([of_a_schedule()]))
    assert "table: depth 2 from 5 requests on" in page
    assert "Dashed: a schedule changes its depth" in page


def test_one_concurrency_has_no_such_chart() -> None:
    assert said(ended()).over_loads == ()
