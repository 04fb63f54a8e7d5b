"""The page about a deployment: what it says, of which runs, and where its links lead."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.support import golden
from tests.support.looked_at import looked_at, numbered
from tests.support.pages import deployed, evil_deployment, kept
from tests.support.world import World
from tests.unit.cli.states import both_promoted, degraded, not_seen, rolled_back, searched_and_measuring
from tests.unit.report.test_formats import Reader

from paceline.cli.live.traffic import Speed, Traffic, TrafficMeasured
from paceline.report import FORMATS, Report
from paceline.report.deployment_model import EventView

GOLDEN = Path(__file__).parent / "golden"
STATES = (not_seen, both_promoted, rolled_back, searched_and_measuring, degraded)


@cache
def told(state: Callable[[], World]) -> Report:
    return deployed(state(), revisions=kept(state()))


@cache
def page(state: Callable[[], World]) -> Reader:
    return Reader(FORMATS["html"](told(state)))


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_it_says(state: Callable[[], World]) -> None:
    """Of the deployment; its runs are below as each has them in a report of its own."""
    text = FORMATS["md"](told(state))
    about = text.partition("\n## latency: ")[0].partition("\n## throughput: ")[0]
    golden.check(GOLDEN / f"{state.__name__}.yaml", numbered(about), state.__doc__ or "")


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_link_leads_somewhere_on_the_page_and_ids_are_unique(state: Callable[[], World]) -> None:
    ids = [attributes["id"] for _, attributes in page(state).tags if "id" in attributes]
    links = [str(attributes["href"]) for tag, attributes in page(state).tags if tag == "a"]
    assert len(ids) == len(set(ids))
    assert len(links) >= len(told(state).deployments[0].pools)
    assert {link[1:] for link in links} <= set(ids)


def test_the_runs_that_it_rests_on_are_on_the_page_once() -> None:
    """The search, and the gate about what was found."""
    report = told(searched_and_measuring)
    (pool,) = report.deployments[0].pools
    assert [run.name for run in report.runs] == [pool.under_way, pool.search]
    assert [bool(run.search) for run in report.runs] == [False, True]


def happened(state: Callable[[], World]) -> list[EventView]:
    return list(told(state).deployments[0].pools[0].history)


def test_history_has_verdicts_and_holds_between_what_served_the_latest_first() -> None:
    events = happened(rolled_back)
    assert [event.what for event in events] == [
        "RolledBack",
        "Held: RolledBack",
        "Promoted",
        "verdict Promote",
        "Started",
    ]
    assert [event.time for event in events] == sorted((event.time for event in events), reverse=True)
    assert events[0].request == "rollback=@ticket-4711"
    assert {event.kept for event in events if event.revision} == {True}


def test_every_number_of_an_emulated_run_is_marked() -> None:
    report = told(both_promoted)
    assert report.emulated
    assert report.deployments[0].emulated
    assert page(both_promoted).text.startswith("Emulated: qwen3-coder-next")
    assert all(event.emulated for event in happened(both_promoted) if event.speed_up)
    assert "1.36x (emulated)" in page(both_promoted).text


def test_live_numbers_stand_beside_what_was_measured() -> None:
    now = Speed(requests_under_way=2, tokens_per_second=200, accept_length=2.4, ttft_seconds=0.05, itl_seconds=0.01)
    traffic = Traffic(
        pool="latency",
        arm="wide",
        servers=1,
        now=now,
        measured=(TrafficMeasured(workload="code@1", speed=Speed(accept_length=2.8)),),
        evidence="run",
        emulated=True,
        errors=("pod-b: may not be read",),
    )
    report = deployed(both_promoted(), traffic={"latency": traffic})
    text = Reader(FORMATS["html"](report)).text
    assert "now, mean of 1 server 2.00 200 2.40 50.0 10.0" in text
    assert "measured at code@1 emulated – – 2.80 – –" in text
    assert "Not read: pod-b: may not be read" in text


def test_evidence_that_was_deleted_is_said_to_be() -> None:

    from paceline.cli.live.report_page import page as tell

    world = both_promoted()
    seen = tell(looked_at(world), (), ())
    text = Reader(FORMATS["html"](Report(title="t", paceline="0", runs=(), deployments=(seen,)))).text
    assert f"{seen.pools[0].evidence} has been deleted, or may not be read" in text


def test_json_has_it_under_deployments() -> None:
    found = json.loads(FORMATS["json"](told(both_promoted)))
    pool = found["deployments"][0]["pools"][0]
    assert (pool["name"], pool["arm"], pool["emulated"]) == ("latency", "wide", True)
    assert pool["evidence"] in [run["name"] for run in found["runs"]]


def test_no_text_of_a_status_becomes_markup() -> None:
    report = evil_deployment(both_promoted())
    tags = {tag for tag, _ in Reader(FORMATS["html"](report)).tags}
    assert not {"script", "img"} & tags
    assert not re.search(r"(?<!\\)<", FORMATS["md"](report))
