"""The file that remembers a run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import runs

from paceline.measure import record
from paceline.measure.record import RecordError

NOTE = "measured on desk without a cluster"
HOW = {"machine": "desk", "note": NOTE}


def wanted() -> dict[str, Any]:
    manifest = runs.latency()
    return {key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")}


def half_way(note: str = NOTE) -> dict[str, Any]:
    """Two rounds measured, the third one interrupted."""
    rounds = [{**entry, "notes": [note]} for entry in runs.latency()["status"]["rounds"][:2]]
    return {**wanted(), "status": {"rounds": rounds, "progress": {"step": "Measuring", "job": "run-2-0", "seen": True}}}


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    record.save(tmp_path / "run.yaml", half_way())
    assert record.load(tmp_path / "run.yaml") == half_way()
    assert record.load(tmp_path / "other.yaml") is None


def test_an_interrupted_run_goes_on_without_its_last_round(tmp_path: Path) -> None:
    going = record.gone_on_with(half_way(), wanted(), NOTE, tmp_path / "run.yaml")
    assert len(going["status"]["rounds"]) == 2
    assert "progress" not in going["status"]  # else its Job would count as deleted by somebody


def test_a_run_that_goes_on_keeps_its_name_and_its_messages(tmp_path: Path) -> None:
    stored, another_day = half_way(), wanted()
    stored["spec"] = {**stored["spec"], "measured": {**HOW, "rounds": ["one", "two"]}}
    another_day["metadata"] = {"name": "of-another-day"}
    going = record.gone_on_with(stored, another_day, NOTE, tmp_path / "run.yaml")
    assert going["metadata"] == stored["metadata"]
    assert going["spec"]["measured"]["rounds"] == ["one", "two"]
    assert record.asked(going)["spec"] == wanted()["spec"]


def test_the_message_of_each_round_with_a_result_is_kept_once() -> None:
    rounds = half_way()["status"]["rounds"]
    failed = {**rounds[1], "error": "its pod is gone"}
    run = wanted()
    for status, message in (
        ({"rounds": rounds[:1]}, "one\n"),
        ({"rounds": rounds[:1]}, "one"),
        ({"rounds": [rounds[0], failed]}, "none"),
        ({"rounds": [rounds[0], failed, rounds[1]]}, "two"),
    ):
        run = record.with_message(run, status, message, HOW)
        assert run["status"] == status
    assert run["spec"]["measured"] == {**HOW, "rounds": ["one", "two"]}


def test_a_file_of_a_release_that_kept_no_messages_gets_none() -> None:
    """Some of its rounds would be missing."""
    rounds = half_way()["status"]["rounds"]
    run = record.with_message({**wanted(), "status": {"rounds": rounds[:1]}}, {"rounds": rounds}, "two", HOW)
    assert run == {**wanted(), "status": {"rounds": rounds}}


def test_a_finished_run_stays_as_it_is(tmp_path: Path) -> None:
    finished = {**wanted(), "status": runs.latency()["status"]}
    assert record.gone_on_with(finished, wanted(), "another way", tmp_path / "run.yaml")["status"] == finished["status"]


def test_another_question_is_refused(tmp_path: Path) -> None:
    other = wanted()
    other["spec"] = {**other["spec"], "gate": {"minImprovement": "50%"}}
    with pytest.raises(RecordError, match=r"asks another question than .*; name another file by -o, or remove it"):
        record.gone_on_with(half_way(), other, NOTE, tmp_path / "run.yaml")


def test_rounds_of_two_ways_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="measured in another way than now"):
        record.gone_on_with(half_way("measured on another"), wanted(), NOTE, tmp_path / "run.yaml")


@pytest.mark.parametrize("text", ["kind: Pod\n", "[]\n", "{", "kind: BenchmarkRun\n"])
def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(RecordError):
        record.load(tmp_path / "run.yaml")


@pytest.mark.parametrize(
    ("edit", "wrong"),
    [
        ({"metadata": None}, "metadata.name is no text"),
        ({"spec": None}, "spec is no object"),
        ({"status": None}, "status is no object"),
        ({"status": {"rounds": None}}, "status.rounds is no list of objects"),
        ({"status": {"rounds": [None]}}, "status.rounds is no list of objects"),
        ({"status": {"conditions": ["Complete"]}}, "status.conditions is no list of objects"),
    ],
)
def test_a_file_that_was_cut_off_or_edited_is_told(tmp_path: Path, edit: dict[str, Any], wrong: str) -> None:
    file = tmp_path / "run.yaml"
    record.save(file, {**half_way(), **edit})
    with pytest.raises(RecordError, match=f"{wrong}, so it was edited or cut off: restore it, or remove it"):
        record.load(file)


def test_a_note_stands_in_each_round_once() -> None:
    status = record.noted(half_way("")["status"], NOTE)
    assert all(entry["notes"].count(NOTE) == 1 for entry in record.noted(status, NOTE)["rounds"])


def test_the_lock_is_kept_by_what_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "LOCK_SECONDS", 0.5)
    lock = record.lock(tmp_path, lambda: None)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    os.close(lock)
    waited: list[bool] = []
    with pytest.raises(RecordError, match="still runs"):
        record.lock(tmp_path, lambda: waited.append(True))
    assert waited == [True]
    child.communicate(b"\n")
    os.close(record.lock(tmp_path, lambda: waited.append(False)))
    assert waited == [True]
