"""A load that moves: requests under way rise and fall by how many were sent, not by the clock."""

import asyncio
import dataclasses
import heapq
import http.client
import json
import math
import random
import re
import threading
import urllib.request
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from aiohttp import web
from tests.support.messages import Says
from tests.support.rounds import BASELINE, GOOD, PLAN
from tests.unit.round.pod import Start
from tests.unit.round.test_client import DONE, USAGE, piece
from tests.unit.round.test_round import emulated

from paceline.core import WAVES, Dataset, Timeouts, Workload, ramp
from paceline.evidence import Point, RoundPlan, RoundResult, judge_points
from paceline.evidence.round_status import judged_speed, measurements, round_record
from paceline.plan.costs import Assumptions
from paceline.pods.round import client, load
from paceline.pods.round.client import Requests
from paceline.pods.round.per_request import RequestRow, most_under_way, request_rows

TO_EIGHT = Workload(
    dataset=Dataset(name="code", source="builtin://code", requests=40, max_tokens=16, ramp_from=1), concurrency=8
)


def test_it_rises_to_its_top_in_the_middle_and_falls_back() -> None:
    assert ramp.under_way(1, 4, 13) == (1, 2, 2, 3, 3, 4, 4, 4, 3, 3, 2, 2, 1)
    assert ramp.under_way(2, 4, 5) == (2, 3, 4, 3, 2)


@pytest.mark.parametrize(("first", "top"), [(1, 2), (1, 32), (8, 9), (16, 128), (1, 4096)])
def test_with_five_requests_for_each_at_its_top_it_never_rises_by_more_than_one(first: int, top: int) -> None:
    """A file of prompts that has enough for a closed loop at the top has enough for the ramp."""
    levels = ramp.under_way(first, top, WAVES * top)
    assert (levels[0], max(levels), levels[-1]) == (first, top, first)
    assert all(abs(after - before) <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize(("dearer", "share"), [(0.0, 0.50), (0.02, 0.56), (0.1, 0.65)])
def test_half_of_the_judged_time_and_more_is_above_half_of_its_top(dearer: float, share: float) -> None:
    """Requests count by their times, so a ramp says little of its lowest loads: half as fast from 1 to 3 of 32 costs it
    8 % at most. Closed loops on both sides of a threshold say it. `dearer`: a step, with each request under way."""
    levels = ramp.under_way(1, 32, 160)
    times = [1 + dearer * level for level in levels]
    above = math.fsum(time for time, level in zip(times, levels, strict=True) if level > 16)
    assert above / math.fsum(times) == pytest.approx(share, abs=0.01)
    slower = [2 * time if level < 4 else time for time, level in zip(times, levels, strict=True)]
    assert 0.91 < math.fsum(times) / math.fsum(slower) < 0.97


@pytest.mark.parametrize("dearer", [0.0, 0.02, 0.1])
def test_of_two_arms_that_are_equally_fast_neither_wins_because_its_requests_differ(dearer: float) -> None:
    """Draft tokens are accepted by request, so a candidate's answers end in another order than the baseline's, which
    end together where all are cut at the same length. Each still meets as many others: 0.2 % apart, of 60 rounds."""
    dice, levels = random.Random(1), ramp.under_way(1, 32, 160)
    apart = []
    for _ in range(60):
        gains = [math.exp(dice.gauss(0.15**2 / 2, 0.15)) for _ in levels]
        expected = math.fsum(1 / gain for gain in gains) / len(gains)
        apart.append(math.log(request_time(levels, [1.0] * len(levels), dearer) * expected))
        apart[-1] -= math.log(request_time(levels, gains, dearer))
    assert abs(fmean(apart)) < 0.005


def request_time(levels: tuple[int, ...], gains: list[float], dearer: float) -> float:
    """The sum of all requests' times on a server whose steps take longer by `dearer` with each request under way. All
    answers are of one length, and each takes as many steps fewer as its gain says."""
    now = steps = total = 0.0
    sent = 0
    ends: list[tuple[float, float]] = []
    while sent < len(levels) or ends:
        while sent < len(levels) and len(ends) < levels[sent]:
            heapq.heappush(ends, (steps + 512 / gains[sent], now))
            sent += 1
        under_way = len(ends)
        end, began = heapq.heappop(ends)
        now += (end - steps) * (1 + dearer * under_way)
        steps, total = end, total + now - began
    return total


def test_it_is_named_by_both_of_its_ends() -> None:
    assert TO_EIGHT.name == "code@1-8"
    assert TO_EIGHT.levels[0] == 1
    assert not TO_EIGHT.at_one_load


@pytest.mark.parametrize("seconds", [0.05, 0.2], ids=["a fast server", "a slow server"])
async def test_every_request_meets_as_many_others_whatever_the_servers_speed(seconds: float) -> None:
    levels = ramp.under_way(1, 6, 30)
    met: dict[int, int] = {}
    dice = random.Random(1)
    under_way = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal under_way
        under_way += 1
        others = under_way
        number = (await request.json())["number"]
        met[number] = others
        await asyncio.sleep(seconds * (1 + dice.random()))
        under_way -= 1
        return web.Response(text=piece(content="a") + USAGE + DONE, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        bodies = tuple({"number": number} for number in range(30))
        to_send = Requests(url=url, bodies=bodies, concurrency=6, levels=levels)
        report = await client.send(Requests.from_json(to_send.to_json()), "")
    finally:
        await runner.cleanup()
    assert report["errors"] == [""] * 30
    assert most_under_way(request_rows(report)) == 6
    missed = [level - met[number] for number, level in enumerate(levels)]
    assert min(missed) >= 0, "the server never had more than the ramp says"
    assert missed.count(0) >= 15, "one less where two answers ended together, and the next request was not sent yet"


def test_the_most_under_way_is_counted_from_when_each_was_due_and_ended() -> None:
    spans = [(0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (2.5, 2.6)]
    sent = [RequestRow(start=a, first=0.0, gaps=(), seconds=b - a, tokens=1, error="") for a, b in spans]
    assert most_under_way(sent) == 3
    assert most_under_way([]) is None


def test_all_arms_are_sent_the_same_and_the_warm_up_is_a_closed_loop_at_the_top() -> None:
    sent = load.load_requests(PLAN, PLAN.arms[0], TO_EIGHT)
    assert len(sent.bodies) == 40
    assert sent.levels == ramp.under_way(1, 8, 40)
    assert load.warm_up_requests(PLAN, PLAN.arms[0], TO_EIGHT, 1).levels is None


def test_a_plan_carries_it_only_where_it_is() -> None:
    plan = dataclasses.replace(PLAN, workloads=(TO_EIGHT,))
    assert RoundPlan.from_json(plan.to_json()).workloads == (TO_EIGHT,)
    assert "ramp" not in PLAN.to_json()


def test_it_lasts_as_long_as_its_requests_at_their_levels() -> None:
    """1 + 1/2 + 1/3 + 1/2 + 1 answers' times."""
    short = Workload(dataset=dataclasses.replace(TO_EIGHT.dataset, requests=5, max_tokens=30), concurrency=3)
    assert Assumptions(start_seconds=0, stream=10).of_workload(short) == pytest.approx(3 * (10 / 3))
    assert (
        Timeouts().of(dataclasses.replace(short, dataset=dataclasses.replace(short.dataset, max_tokens=5000))) == 4000
    )


RAMP_POINT = dataclasses.replace(
    GOOD, workload="code@1-8", asked=40, completed=40, steady_throughput=None, mean_e2e=0.5, output_tokens=640
)


def why(**changed: object) -> str:
    point: Point = dataclasses.replace(RAMP_POINT, **changed)  # type: ignore[arg-type]
    return judged(point)[0]


def judged(point: Point) -> tuple[str, float | None, bool]:
    """Why the baseline's point is not valid, the speed that the gate reads, and whether the gate may use it."""
    plan = dataclasses.replace(PLAN, arms=PLAN.arms[:1], workloads=(TO_EIGHT,))
    result = RoundResult(round=0, try_=0, replicates=(dataclasses.replace(BASELINE, points=(point,)),))
    found = judge_points(plan, result)
    record = round_record(plan, result, found, job="job", node="node")
    (measurement,) = measurements([record])
    assert record.points[0].mean_concurrency is None
    return found[0].why, judged_speed(record.points[0]), measurement.valid


def test_the_gate_compares_the_speed_of_a_request() -> None:
    """640 tokens in 40 requests of half a second."""
    assert judged(RAMP_POINT) == ("", 32.0, True)


@pytest.mark.parametrize(
    "changed",
    [{"fullness": 0.88}, {"fullness": None}, {"completed": 38, "errors": 2, "fullness": 0.5}, {"mean_e2e": None}],
)
def test_a_ramp_that_did_not_reach_its_top_or_lost_requests_is_no_evidence(
    changed: dict[str, object], says: Says
) -> None:
    assert why(**changed)
    says(why(**changed))


def test_a_round_of_a_ramp_is_seen_by_its_server(start: Start, models: Path, port: int) -> None:
    """What runs on the emulated server while the pod of a round measures it."""
    workload = dataclasses.replace(TO_EIGHT, dataset=dataclasses.replace(TO_EIGHT.dataset, max_tokens=64))
    seen: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/loads", timeout=2) as page:
                    seen.append(json.load(page)["loads"][0]["num_running_reqs"])
            except (OSError, http.client.HTTPException):
                continue

    looking = threading.Thread(target=look)
    looking.start()
    try:
        outcome = start((emulated(models, port, "baseline"),), workload).finish()
    finally:
        ended.set()
        looking.join()
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    (point,) = outcome.result.replicates[0].points
    assert (point.workload, point.completed, point.fullness) == ("code@1-8", 40, 1.0)
    assert point.steady_throughput is None
    of_the_warm_up = r"(?:0*[1-7]*8[1-8]*0+){2,4}?"
    apart = re.fullmatch(of_the_warm_up + r"([1-8]\d*?)0*", "".join(map(str, seen)))
    assert apart, seen
    ramp_alone = apart[1]
    top = ramp_alone.index(max(ramp_alone))
    assert ramp_alone[top] in "78", "the client had 8 on the way"
    assert ramp_alone[0] in "12"
    assert ramp_alone[-1] in "12"
    for way in (ramp_alone[:top], ramp_alone[top:]):
        assert len(set("123456") & set(way)) >= 4, ramp_alone
