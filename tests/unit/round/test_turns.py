"""Conversations whose answers are generated one after another, on a warm cache."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.support.rounds import PLAN
from tests.support.trajectories import sessions, traced, trajectory
from tests.unit.round.pod import Start
from tests.unit.round.test_round import fake, published_pair

from paceline.core import Dataset, Source, Workload
from paceline.evidence import RoundPlan
from paceline.pods.prompt_file import DatasetError, read_prompts
from paceline.pods.round import load
from paceline.pods.round.per_request import by_context

PARSER = ("--tool-call-parser", "qwen3_coder")
SOURCE = Source.parse("pvc://team/trajectories.jsonl")
CALL = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}


def said(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


TRAJECTORY = [
    said("system", "You are an agent."),
    said("user", "Mend the bug."),
    said("assistant", "", tool_calls=[CALL]),
    said("tool", "a.py", tool_call_id="1"),
    said("assistant", "I see it."),
    said("user", "Go on."),
    said("assistant", "Done."),
]
SYSTEM, USER, ANSWER = (json.dumps(TRAJECTORY[place]) for place in (0, 1, 4))
TRACE = [[{"messages": TRAJECTORY[:2], "prompt_tokens": 9}, {"messages": []}, {"messages": [said("user", "Go on.")]}]]


def requests(file: Path, turns: int) -> list[list[int]]:
    """The conversations of a file, each with the number of messages of its requests."""
    return [list(one.turns) for one in read_prompts(file, SOURCE, turns).conversations]


def written(folder: Path, content: Any) -> Path:
    file = folder / "trajectories.jsonl"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


@pytest.mark.parametrize(("turns", "sent"), [(1, [[6]]), (2, [[2], [4, 6]]), (3, [[2, 4, 6]]), (64, [[2, 4, 6]])])
def test_each_answer_is_asked_for_with_all_that_came_before_it(tmp_path: Path, turns: int, sent: list[Any]) -> None:
    file = written(tmp_path, {"messages": TRAJECTORY, "tools": [{"type": "function", "function": {"name": "bash"}}]})
    assert requests(file, turns) == sent
    last = json.loads(read_prompts(file, SOURCE, turns).conversations[-1].body(-1))
    assert last["messages"] == TRAJECTORY[:6]
    assert last["tools"][0]["function"]["name"] == "bash"


def test_a_request_that_came_before_is_dropped(tmp_path: Path) -> None:
    """As in a log, where each request has its whole history: a third would be answered from the cache."""
    lines = [json.dumps({"messages": TRAJECTORY[:count]}) for count in (2, 4, 6)]
    assert requests(written(tmp_path, "\n".join(lines)), 8) == [[2], [4], [6]]
    again = tmp_path / "again"
    again.mkdir()
    assert requests(written(again, "\n".join(reversed(lines))), 8) == [[2, 4, 6]]


def test_more_text_than_the_client_has_room_for_is_refused_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "LARGEST_LOAD", 1 << 20)
    lines = [json.dumps({"messages": [said("user", f"{n}" + "x" * 300_000)]}) for n in range(5)]
    with pytest.raises(DatasetError, match="5 requests have 1 MiB of text, at most 1 are sent: lower requests"):
        load.prompts_of_load(planned(written(tmp_path, "\n".join(lines))), own(5, turns=2))


def test_a_table_of_agentic_coding_trajectories(tmp_path: Path) -> None:
    """thoughtworks/agentic-coding-trajectories has a session a row, its messages as JSON in `messages_json`."""
    file = tmp_path / "sessions.parquet"
    row = "SELECT 's1' AS session_id, 'swe-agent' AS agent_framework, ? AS messages_json"
    with duckdb.connect() as database:
        database.execute(f"COPY ({row}) TO '{file}' (FORMAT parquet)", [json.dumps(TRAJECTORY)])
    assert requests(file, 64) == [[2, 4, 6]]
    assert requests(written(tmp_path, {"messages_json": json.dumps(TRAJECTORY)}), 64) == [[2, 4, 6]]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_file_of_sglangs_agentic_trace(tmp_path: Path, indent: int | None) -> None:
    file = written(tmp_path, json.dumps({"metadata": {}, "conversations": TRACE * 2}, indent=indent))
    assert requests(file, 8) == [[2, 4]], "the second one is the same"
    assert requests(file, 1) == [[4]]


def test_a_trace_without_turns_is_refused_before_a_server_starts(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="has no answers: set turns"):
        load.prompts_of_load(planned(written(tmp_path, {"conversations": TRACE})), own(1, turns=1))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"conversations": [[{"prompt": "a"}]]}', "entry 1 must be a list of turns, each with messages"),
        ('{"conversations": [[]]}', "entry 1 asks nothing"),
        (
            f'{{"conversations": [[{{"messages": [{SYSTEM}]}}, {{"messages": [{USER}]}}]]}}',
            "entry 1: each turn must end",
        ),
        (f'{{"conversations": [[{{"messages": [{USER}, {ANSWER}, {USER}]}}]]}}', "none of the assistant"),
        (f'{{"conversations": [[{{"messages": [{USER}]}}], 7]}}', "entry 2 has neither messages nor"),
        ('{"messages_json": "[{"}', "messages_json is not JSON"),
        ('{"messages_json": "3"}', "messages_json must be the JSON of a list of messages"),
    ],
)
def test_what_is_no_trajectory_is_refused_by_its_number(tmp_path: Path, content: str, why: str) -> None:
    with pytest.raises(DatasetError, match=why):
        read_prompts(written(tmp_path, content), SOURCE, 4)


def own(requests: int, turns: int, concurrency: int = 1) -> Workload:
    source = "configMap://prompts/own.jsonl"
    dataset = Dataset(name="own", source=source, requests=requests, max_tokens=32, turns=turns)
    return Workload(dataset=dataset, concurrency=concurrency)


def planned(file: Path) -> RoundPlan:
    return dataclasses.replace(PLAN, files={"own": str(file)})


def sending(file: Path) -> Callable[[RoundPlan], RoundPlan]:
    return lambda plan: dataclasses.replace(plan, files={"own": str(file)})


def test_a_plan_carries_the_turns_where_there_are_any() -> None:
    plan = dataclasses.replace(PLAN, workloads=(own(8, turns=4),))
    assert RoundPlan.from_json(plan.to_json()) == plan
    assert "turns" not in PLAN.to_json()


def test_a_request_waits_for_the_answer_before_it_and_has_it_where_the_file_has_none(
    start: Start, port: int, tmp_path: Path
) -> None:
    """Two places: one of each conversation is under way."""
    asked = [[{"messages": [said("user", f"{number}.{turn}?")]} for turn in range(3)] for number in range(3)]
    file, log = written(tmp_path, {"conversations": asked}), tmp_path / "log"
    server = fake(port, "baseline", "--log", str(log))
    outcome = start((server,), own(9, turns=3, concurrency=2), change=sending(file)).finish()
    assert outcome.client == 0, outcome.log
    sent = [json.loads(line)[1]["messages"] for line in log.read_text().splitlines()][-9:]
    for number in range(3):
        mine = [one for one in sent if one[0]["content"] == f"{number}.0?"]
        assert [len(one) for one in mine] == [1, 3, 5]
        assert mine[2][0::2] == [said("user", f"{number}.{turn}?") for turn in range(3)]
        assert [one["role"] for one in mine[2][1::2]] == ["assistant"] * 2
        assert all(one["content"] for one in mine[2][1::2])


@pytest.mark.parametrize(("form", "bins"), [(sessions, [0, 4096, 16384]), (traced, [0, 4096])])
def test_twenty_trajectories_are_measured_by_the_length_of_their_context(
    start: Start, models: Path, port: int, tmp_path: Path, form: Callable[[Any], str], bins: list[int]
) -> None:
    """Most of each prompt is cached; of a trace only the first answers are asked for, so none of it is long."""
    twenty = [trajectory(number, steps=4 + number, characters=12_000) for number in range(20)]
    pair = tuple(dataclasses.replace(arm, argv=(*arm.argv, *PARSER)) for arm in published_pair(models, port))
    outcome = start(pair, own(80, turns=8, concurrency=2), change=sending(written(tmp_path, form(twenty)))).finish()
    assert outcome.client == 0, outcome.log
    assert {key: one.why for key, one in outcome.judged.items() if not one.valid} == {}
    points = {arm: judged.point for (arm, _), judged in outcome.judged.items() if judged.point}
    lengths = [[(one.over, one.requests) for one in point.contexts] for point in points.values()]
    assert lengths[0] == lengths[1]
    assert [over for over, _ in lengths[0]] == bins
    for point in points.values():
        assert 0.5 < (point.cache_hit_rate or 0) < 0.95
    assert points["wide"].accepted_at == (), "asked again, first questions would say nothing of later ones"
    for one in points["wide"].contexts:
        assert one.tokens_per_chunk == pytest.approx(points["wide"].accept_length, rel=0.2)


def test_answers_are_told_apart_by_the_length_of_their_prompts() -> None:
    report = {
        "starts": [0.0] * 4,
        "ttfts": [0.1, 0.3, 0.5, 0.0],
        "itls": [[0.1], [0.1], [], []],
        "latencies": [1.0, 2.0, 1.0, 0.0],
        "input_lens": [10, 4095, 70_000, 5000],
        "output_lens": [4, 8, 3, 0],
        "errors": ["", "", "", "500"],
    }
    short, long = by_context(report)
    assert (short.over, short.requests, short.mean_ttft, short.speed, short.tokens_per_chunk) == (0, 2, 0.2, 4.0, 3.0)
    assert (long.over, long.requests, long.speed, long.tokens_per_chunk) == (65536, 1, 3.0, 3.0)
