"""Arrivals in the pattern of a file's timestamps."""

import dataclasses
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.edits import example
from tests.support.rounds import PLAN
from tests.unit.round.pod import Start
from tests.unit.round.test_round import emulated

from paceline import api
from paceline.core import Arrivals, Dataset, Workload
from paceline.evidence import RoundPlan
from paceline.pods.prompt_file import DatasetError
from paceline.pods.round import load, replay

BURSTS = [0, 10, 20, 30, 2000, 2010, 2020, 2030]
"""Milliseconds, as in Mooncake's traces."""


def of(requests: int, rate: float) -> Workload:
    dataset = Dataset(
        name="own", source="configMap://prompts/own.jsonl", requests=requests, max_tokens=16, rate=rate,
        arrivals=Arrivals.REPLAYED,
    )  # fmt: skip
    return Workload(dataset=dataset, concurrency=2)


def plan(directory: Path, times: list[Any], workload: Workload, round: int = 0) -> RoundPlan:
    file = directory / f"{len(times)}-{round}.jsonl"
    entries = [
        {"messages": [{"role": "user", "content": f"Question {n}?"}], **({} if time is None else {"timestamp": time})}
        for n, time in enumerate(times)
    ]
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return dataclasses.replace(PLAN, workloads=(workload,), files={"own": str(file)}, round=round)


def test_a_pattern_is_brought_to_the_mean_rate() -> None:
    assert replay.replayed_arrivals([100.0, 110.0, 130.0], 2.0) == pytest.approx((0.0, 1 / 3, 1.0))


def test_every_round_sends_the_next_part_in_the_order_of_its_times() -> None:
    times = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [replay.places_of_round(times, round, 2) for round in range(3)] == [(1, 3), (4, 2), (1, 3)]


@pytest.mark.parametrize(("round", "first"), [(0, 0), (1, 8)])
def test_requests_are_sent_as_they_came(tmp_path: Path, round: int, first: int) -> None:
    workload = of(8, 4.0)
    later = [5000 + time for time in BURSTS]
    replayed = plan(tmp_path, [*BURSTS, *later], workload, round)
    sent = load.load_requests(replayed, replayed.arms[0], workload)
    asked = [body["messages"][0]["content"] for body in sent.bodies]
    assert asked == [f"Question {n}?" for n in range(first, first + 8)]
    assert sent.arrivals is not None
    assert sent.arrivals[-1] == pytest.approx(7 / 4)
    assert sent.arrivals[3] < 0.03 * sent.arrivals[4], "the first burst, and the pause after it"


def test_a_date_without_a_zone_is_of_one_without_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In New York half past one came twice on that night, and two hours after midnight never came on another."""
    from paceline.pods.conversation import conversation

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    found = [
        conversation({"prompt": "One?", "timestamp": said}, "entry 1")
        for said in ("2026-03-08T01:30:00", "2026-03-08T02:30:00", "2026-03-08T03:30:00")
    ]
    times = [one.time for one in found if one and one.time]
    monkeypatch.undo()
    time.tzset()
    assert [later - earlier for earlier, later in pairwise(times)] == [3600, 3600]


def test_dates_are_times() -> None:
    from paceline.pods.conversation import conversation

    found = [
        conversation({"prompt": "One?", "timestamp": time}, "entry 1")
        for time in ("2026-11-22T12:00:00+00:00", "2026-11-22T12:00:01Z", "1.5e3", 7)
    ]
    times = [one.time for one in found if one]
    assert times[1] == times[0] + 1  # type: ignore[operator]
    assert times[2:] == [1500.0, 7.0]


@pytest.mark.parametrize(
    ("times", "why"),
    [
        ([0, 1, None, 3], "own@4/s: 1 of 4 prompts of configMap://prompts/own.jsonl have no timestamp: write one in"),
        ([3, 3, 3, 3], "its timestamps are all the same: there is nothing to replay"),
        ([0, 1, "soon", 3], "entry 3: timestamp must be a number or an ISO 8601 date and time; got 'soon'"),
        ([0, 1], "own@4/s: configMap://prompts/own.jsonl has 2 usable prompts, but 4 requests are to be sent"),
    ],
)
def test_what_cannot_be_replayed(tmp_path: Path, times: list[Any], why: str) -> None:
    workload = of(4, 4.0)
    with pytest.raises(DatasetError) as refused:
        load.replayed(
            *((lambda p: (load.prompts_of_load(p, workload), p)[1])(plan(tmp_path, times, workload)), workload, 4.0)
        )
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("source", "load", "field"),
    [
        ("configMap://a/b.jsonl", {"concurrency": [8]}, "requestRate"),
        ("builtin://code", {"requestRate": "8", "maxConcurrency": 8}, "arrivals"),
        ("configMap://a/b.jsonl", {"requestRate": "8", "maxConcurrency": 8}, ""),
    ],
)
def test_a_replay_has_a_rate_and_timestamps(source: str, load: dict[str, Any], field: str) -> None:
    manifest = example()
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "mine", "source": source}]}
    manifest["spec"]["pools"][0]["load"] = [{**load, "arrivals": "Replayed"}]
    assert [problem.path.rpartition(".")[2] for problem in api.problems(manifest)] == ([field] if field else [])


def test_a_plan_and_a_run_carry_it_only_where_it_is(tmp_path: Path) -> None:
    replayed = plan(tmp_path, BURSTS, of(8, 4.0))
    assert RoundPlan.from_json(replayed.to_json()).workloads == replayed.workloads
    assert "arrivals" not in PLAN.to_json()


def test_a_round_of_a_replay(start: Start, models: Path, port: int) -> None:
    workload = of(24, 8.0)
    files = plan(models, [1000 * (n // 4) + 10 * (n % 4) for n in range(24)], workload).files
    change = lambda one: dataclasses.replace(one, files=files, round=0)  # noqa: E731
    outcome = start((emulated(models, port, "baseline"),), workload, change=change).finish()
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}, outcome.log
    (point,) = outcome.result.replicates[0].points
    assert point.workload == "own@8/s"
    assert point.duration is not None
    assert point.duration >= 23 / 8, "as long as the rate makes it"
