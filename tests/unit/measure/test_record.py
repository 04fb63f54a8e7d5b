"""The file that remembers a run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs
from tests.support.messages import Says

from paceline import api
from paceline.measure import record
from paceline.measure.record import RecordError

NOTE = "measured on desk without a cluster"
HOW = {"machine": "desk", "note": NOTE}


def wanted() -> dict[str, Any]:
    manifest = runs.latency()
    return {key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")}


def half_way(note: str = NOTE) -> dict[str, Any]:
    """Two rounds measured, the third one interrupted."""
    rounds = [{**entry, "notes": [note]} for entry in runs.latency()["rounds"][:2]]
    progress = {"step": "Measuring", "job": "run-2-0", "internal": {"seen": True}}
    return {**wanted(), "status": {"progress": progress}, "rounds": rounds}


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    record.save(tmp_path / "run.yaml", half_way())
    assert record.load_run(tmp_path / "run.yaml") == half_way()
    assert record.load_run(tmp_path / "other.yaml") is None


def test_an_interrupted_run_goes_on_without_its_last_round(tmp_path: Path) -> None:
    going = record.gone_on_with(half_way(), wanted(), NOTE, tmp_path / "run.yaml")
    assert len(going["rounds"]) == 2
    assert "progress" not in going["status"]  # else its Job would count as deleted by somebody


def test_a_run_that_goes_on_keeps_its_name_and_its_rounds(tmp_path: Path) -> None:
    stored, another_day = half_way(), wanted()
    stored["spec"] = {**stored["spec"], "measured": {**HOW, "rounds": 2}}
    another_day["metadata"] = {"name": "of-another-day"}
    going = record.gone_on_with(stored, another_day, NOTE, tmp_path / "run.yaml")
    assert going["metadata"] == stored["metadata"]
    assert (going["spec"]["measured"]["rounds"], going["rounds"]) == (2, stored["rounds"])
    assert record.without_rounds(going)["spec"] == wanted()["spec"]


def test_each_round_is_added_once_and_those_with_a_result_are_counted() -> None:
    first, second = half_way("")["rounds"]
    run = wanted()
    for one in (first, {**second, "error": "its pod is gone"}, {**second, "try": 1}):
        run = record.with_round(run, one, HOW)
    assert run["spec"]["measured"] == {**HOW, "rounds": 2}
    assert [one["notes"].count(NOTE) for one in run["rounds"]] == [1, 0, 1]


def test_kubectl_takes_the_file(tmp_path: Path) -> None:
    """The run, and each round as an object that is found by its run's label."""
    run, *rounds = record.as_documents({**half_way(), "metadata": {"name": "mine"}})
    assert "rounds" not in run
    assert [one["metadata"] for one in rounds] == [
        {"name": f"mine-{number}-0", "labels": {"paceline.dev/run": "mine"}} for number in range(2)
    ]
    assert [problem.path for one in (run, *rounds) for problem in api.problems(one)] == []


def test_a_finished_run_stays_as_it_is(tmp_path: Path) -> None:
    finished = {**wanted(), "status": runs.latency()["status"]}
    assert record.gone_on_with(finished, wanted(), "another way", tmp_path / "run.yaml")["status"] == finished["status"]


def test_another_question_is_refused(tmp_path: Path, says: Says) -> None:
    other = wanted()
    other["spec"] = {**other["spec"], "gate": {"minImprovement": "50%"}}
    with pytest.raises(RecordError) as refused:
        record.gone_on_with(half_way(), other, NOTE, tmp_path / "run.yaml")
    says(refused.value)


def test_rounds_of_two_ways_are_not_mixed(tmp_path: Path, says: Says) -> None:
    with pytest.raises(RecordError) as refused:
        record.gone_on_with(half_way("measured on another"), wanted(), NOTE, tmp_path / "run.yaml")
    says(refused.value)


@pytest.mark.parametrize("text", ["kind: Pod\n", "[]\n", "{", "kind: BenchmarkRun\n"])
def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(RecordError):
        record.load_run(tmp_path / "run.yaml")


@pytest.mark.parametrize(
    "edit",
    [
        *({part: None} for part in ("metadata", "spec", "status")),
        {"rounds": [{"round": None, "try": 0}]},
        {"status": {"conditions": ["Complete"]}},
    ],
)
def test_a_file_that_was_cut_off_or_edited_is_told(tmp_path: Path, edit: dict[str, Any], says: Says) -> None:
    file = tmp_path / "run.yaml"
    record.save(file, {**half_way(), "rounds": [], **edit})
    with pytest.raises(RecordError) as told:
        record.load_run(file)
    says(told.value)


def test_the_lock_is_kept_by_what_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "LOCK_SECONDS", 0.5)
    lock = record.lock(tmp_path, lambda: None)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    os.close(lock)
    waited: list[bool] = []
    with pytest.raises(RecordError):
        record.lock(tmp_path, lambda: waited.append(True))
    assert waited == [True]
    child.communicate(b"\n")
    os.close(record.lock(tmp_path, lambda: waited.append(False)))
    assert waited == [True]
