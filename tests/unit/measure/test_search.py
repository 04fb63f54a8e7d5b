"""A pool that searches, measured without a cluster: the operator's two questions, and what a person sees of them."""

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
import yaml
from tests.support import imported
from tests.support.messages import Says
from tests.support.searched import Served, answered, begun, searched, searching

from paceline import api
from paceline.api.run_status import SearchedArm, SearchProgress
from paceline.cli.live import searching as live
from paceline.cli.live.measuring import drawn, intervals_so_far, known_so_far, verdict_lines
from paceline.cli.live.screen import plain_text
from paceline.core import Purpose
from paceline.core.record import from_status
from paceline.evidence import question
from paceline.measure.applying import applying
from paceline.measure.question import asked, found_by, run_to_measure
from paceline.measure.record import with_round
from paceline.measure.rounds import Moment

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATENCY = {"latency": Served("latency", 1)}


@cache
def searched_by_the_operator() -> tuple[dict[str, Any], dict[str, Any]]:
    """Its search and its gate."""
    world = begun(searching("latency"))
    searched(world, LATENCY)
    search, gate = world.runs("latency")
    return search, gate


@cache
def under_way(rounds: int) -> dict[str, Any]:
    """The search after so many rounds."""
    world = begun(searching("latency"))
    for _ in range(rounds):
        answered(world, LATENCY)
    (search,) = world.runs("latency")
    return search


def commits(run: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Of the models of a run of the operator."""
    drafts = [arm["draft"] for arm in run["spec"]["arms"] if "draft" in arm]
    return {(one["source"], one.get("revision", "main")): one["commit"] for one in (run["spec"]["target"], *drafts)}


def test_its_first_question_is_the_operators_search_and_its_second_the_gate_about_what_was_found() -> None:
    search, gate = searched_by_the_operator()
    ask = asked(searching("latency"), None)
    assert ask.searches
    first = run_to_measure(ask, commits(search), NOW)
    assert question(first["spec"]) == question(search["spec"])
    second = run_to_measure(ask, commits(search), NOW, first | {"status": search["status"]})
    assert question(second["spec"]) == question(gate["spec"])
    assert second["metadata"]["name"] != first["metadata"]["name"]


def test_a_search_under_way_has_found_nothing() -> None:
    assert found_by(under_way(3)) == ""
    search, gate = searched_by_the_operator()
    assert found_by(search) == gate["spec"]["arms"][1]["name"]
    assert found_by(gate) == ""


def test_a_file_of_purpose_search_is_one_run() -> None:
    search, _ = searched_by_the_operator()
    assert not asked({key: search[key] for key in ("kind", "metadata", "spec")}, None).searches


def test_a_searchs_rounds_are_for_no_cluster() -> None:
    """The API server refuses `measured` on a Search."""
    search = under_way(2)
    gone_on = with_round({**search, "rounds": []}, search["rounds"][0], {"note": "desk"})
    assert (len(gone_on["rounds"]), "measured" in gone_on["spec"]) == (1, False)


def test_what_was_found_is_evidence_of_a_pool_that_names_it(says: Says) -> None:
    """The operator has not made that search: it would search itself."""
    line = applying("run.yaml", imported.file(), NOW, searched=True)[0]
    head = "{algorithm: EAGLE3, source: 'hf://thoughtworks/Qwen3-Coder-Next-Eagle3'}"
    candidates = f"candidates: [{{name: wide, tree: {{numSteps: 3, topK: 4, numDraftTokens: 8}}, draft: {head}}}]"
    assert f"`{candidates}`" in line
    says(line)
    search, gate = searched_by_the_operator()
    named = searching("latency")
    (pool,) = named["spec"]["pools"]
    del pool["search"]
    (said,) = re.findall(r"`candidates: (\[.*\])`", applying("run.yaml", imported.file(), NOW, searched=True)[0])
    named["spec"]["candidates"] = [{**gate["spec"]["arms"][1], "draft": yaml.safe_load(said)[0]["draft"]}]
    assert question(run_to_measure(asked(named, None), commits(search), NOW)["spec"]) == question(gate["spec"])


# What a person sees.


def lines(run: dict[str, Any]) -> list[str]:
    spec = api.run(run)
    assert spec.purpose is Purpose.SEARCH
    assert intervals_so_far(run) == ()
    return list(known_so_far(spec, run, ()))


def test_before_the_first_comparison_there_is_no_best(says: Says) -> None:
    (measured, *rest) = lines(under_way(1))
    says(measured)
    assert [line.partition(":")[0] for line in rest] == ["next"]


def test_while_nobody_has_two_points_the_first_is_ahead(says: Says) -> None:
    arms = (SearchedArm(arm="tree-3-1-4", state="too few points", points=1, ratio=1.4, lower=1.3, upper=1.5),)
    shown = list(live.standing_lines(SearchProgress(candidates=3, points=1, server_starts=1, arms=arms), going_on=True))
    says(*shown)


def test_the_arms_that_are_left_are_drawn_and_those_that_are_out_say_by_how_much() -> None:
    shown = lines(searched_by_the_operator()[0])
    assert "●" in shown[0]
    (best,) = (line for line in shown if line.startswith("best so far: "))
    assert searched_by_the_operator()[1]["spec"]["arms"][1]["name"] in shown[0]
    assert "x (" in best
    (behind,) = (line for line in shown if line.startswith("out, behind "))
    assert " −" in behind


@pytest.mark.parametrize(
    "arm",
    [
        SearchedArm(arm="tree-7-1-8", state="failed", why="the server ended: out of memory"),
        SearchedArm(arm="baseline", state="best", points=2),
    ],
)
def test_failures_and_a_baseline_that_leads(arm: SearchedArm, says: Says) -> None:
    says(*live.standing_lines(SearchProgress(candidates=3, points=2, arms=(arm,))))


def test_the_rounds_so_far_and_what_they_took() -> None:
    run = under_way(3)
    began = datetime.fromisoformat(run["status"]["startTime"])
    shown = plain_text(
        drawn(Moment(run=run), ("line",), began.replace(hour=began.hour + 2), emulated=False)
    ).splitlines()
    assert "■■■" in shown[1]
    assert "a round takes about " in shown[1]
    assert "2 h and " in shown[1]
    assert "GPU-hours so far" in shown[1]


def test_it_ends_with_the_arms_that_were_measured() -> None:
    search, gate = searched_by_the_operator()
    found = gate["spec"]["arms"][1]["name"]
    shown = plain_text(verdict_lines(search)).splitlines()
    assert shown[0].split() == ["Arm", "State", "Points", "Ratio", "Interval", "Behind", "the", "best"]
    assert any(line.startswith(f"{found} (") and "best" in line for line in shown)
    measured = from_status(SearchProgress, search["status"]["search"]).arms
    assert len([line for line in shown if line.startswith("tree-")]) == len(
        [a for a in measured if a.arm != "baseline"]
    )
    assert shown[-1].startswith(f"Emulated: Found {found}: ")
