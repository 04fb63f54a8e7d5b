"""`paceline gate FILE`, as a person or a script runs it."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gate.campaigns import LATENCY, THROUGHPUT, WORKLOADS, Truth, against, measure

from paceline.cli import gate as command

Run = Callable[[str, str], tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """File name, its text → exit code, what was printed, what was complained about (the directory cut off)."""

    def go(name: str, text: str) -> tuple[int, str, str]:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        args = parser.parse_args(["gate", str(file)])
        code = args.run(args)
        said = capsys.readouterr()
        return code, said.out, said.err.replace(f"{tmp_path}/", "")

    return go


def case(truth: Truth, *, cv: float = 0.003, seed: int = 1, rounds: int = 8, **rule: Any) -> dict[str, Any]:
    return {
        "gate": rule,
        "decideAfterRounds": [3, 5, 8],
        "arms": list(truth),
        "workloads": [{"name": w, "weight": 1} for w in WORKLOADS],
        "measurements": [
            {
                "round": m.round,
                "arm": m.arm,
                "workload": m.workload,
                "outputThroughput": m.output_throughput,
                "valid": True,
            }
            for m in measure(truth, cv=cv, seed=seed, rounds=rounds)
        ],
    }


def test_a_promotion(run: Run) -> None:
    code, out, _ = run("latency.json", json.dumps(case(LATENCY, minimumImprovement="0.05")))

    verdict = json.loads(out)
    assert code == 0
    assert list(verdict) == ["outcome", "winner", "rounds", "arms"]
    assert (verdict["outcome"], verdict["winner"], verdict["rounds"]) == ("Promote", "wide", 3)
    wide = verdict["arms"]["wide"]
    assert wide["verdict"] == "promotable"
    assert list(wide["workloads"]) == list(WORKLOADS)
    assert wide["mean"]["lower"] < wide["mean"]["ratio"] < wide["mean"]["upper"]
    assert 0.004 < wide["aaFloor"] < 0.02


def test_the_reason_names_the_workload_and_its_bounds(run: Run) -> None:
    code, out, _ = run("throughput.json", json.dumps(case(THROUGHPUT, minimumImprovement=0.02)))

    verdict = json.loads(out)
    assert (code, verdict["winner"]) == (0, "narrow")
    assert verdict["arms"]["wide"]["verdict"] == "rejected"
    assert verdict["arms"]["wide"]["reason"].startswith("WorkloadRegressed: terminal 0.8")


@pytest.mark.parametrize(
    ("speed_up", "cv", "rounds", "code", "outcome"),
    [
        (1.20, 0.003, 3, 0, "Promote"),
        (0.90, 0.003, 3, 10, "Reject"),
        (1.06, 0.05, 8, 11, "Inconclusive"),
        (1.20, 0.003, 2, 12, "Error"),
        (1.20, 0.003, 0, 12, "Error"),
    ],
)
def test_the_exit_code_tells_the_outcome(
    run: Run, speed_up: float, cv: float, rounds: int, code: int, outcome: str
) -> None:
    question = case(against(dict.fromkeys(WORKLOADS, speed_up)), cv=cv, rounds=rounds)
    found, out, _ = run("case.json", json.dumps(question))
    assert (found, json.loads(out)["outcome"]) == (code, outcome)


@pytest.mark.parametrize("nothing", ["null", "NaN", "Infinity", "0", "-1", '"NaN"', None])
def test_a_throughput_that_is_none_makes_its_round_incomplete(run: Run, nothing: str | None) -> None:
    """Three rounds and one of them broken: no look is possible."""
    question = case(LATENCY, rounds=3)
    if nothing is None:
        del question["measurements"][5]["outputThroughput"]
    else:
        question["measurements"][5]["outputThroughput"] = "HERE"
    text = json.dumps(question).replace('"HERE"', str(nothing))
    code, out, err = run("case.json", text)
    assert (code, err) == (12, "")
    assert json.loads(out)["arms"]["wide"] == {
        "mean": None,
        "workloads": {},
        "verdict": "error",
        "reason": "TooFewRounds: complete rounds: 2, the first look needs 3",
        "aaFloor": None,
    }


def test_lines_of_cases_give_lines_of_results(run: Run) -> None:
    cases = [case(LATENCY), case(against(dict.fromkeys(WORKLOADS, 0.9)))]
    code, out, _ = run("cases.jsonl", "".join(json.dumps(c) + "\n" for c in cases))

    assert code == 0
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["Promote", "Reject"]


def change(question: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any]:
    *way, last = path
    part: Any = question
    for step in way:
        part = part[step]
    part[last] = value
    return question


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (
            ["measurements", 3, "arm"],
            "wid",
            "case.json: measurements[3].arm: unknown arm 'wid'; ",
        ),
        (["measurements", 4, "workload"], "cod", "case.json: measurements[4].workload: unknown workload 'cod'"),
        (
            ["measurements", 1, "workload"],
            "code",
            "case.json: measurements[1]: a second measurement of ",
        ),
        (["measurements", 2, "round"], "0", "case.json: measurements[2].round: "),
        (["measurements", 2, "valid"], "yes", "case.json: measurements[2].valid: "),
        (["measurements", 2, "outputThroughput"], True, "case.json: measurements[2].outputThroughput: "),
        (["measurements", 2, "vaild"], False, "case.json: measurements[2].vaild: "),
        (["gate", "confidence"], "1.5", "case.json: gate.confidence: "),
        (["gate", "minimumImprovement"], "NaN", "case.json: gate.minimumImprovement: "),
        (["gate", "minimumImprovment"], "0.1", "case.json: gate.minimumImprovment: "),
        (["gate", "limits"], [{"metric": "p95TTFT"}], "case.json: gate.limits[0].maximumIncrease: "),
        (["workloads", 1, "name"], "code", "case.json: workloads: each name once"),
        (["arms"], ["baseline"], "case.json: arms: "),
        (["decideAfterRounds"], [5, 3], "case.json: decideAfterRounds: "),
    ],
)
def test_an_input_error_names_its_place(run: Run, path: list[str | int], value: Any, complaint: str) -> None:
    code, out, err = run("case.json", json.dumps(change(case(LATENCY), path, value)))
    assert (code, out) == (1, "")
    assert err.startswith(complaint)


def test_an_error_in_a_line_names_the_line(run: Run) -> None:
    bad = change(case(LATENCY), ["measurements", 3, "arm"], "wid")
    code, _, err = run("cases.jsonl", f"{json.dumps(case(LATENCY))}\n\n{json.dumps(bad)}\n")
    assert code == 1
    assert err.startswith("cases.jsonl:3: measurements[3].arm: unknown arm 'wid'")


def test_what_is_no_json_is_said_to_be_none(run: Run) -> None:
    code, _, err = run("case.json", '{"gate": {},\n "arms": [}')
    assert code == 1
    assert err.startswith("case.json: Invalid JSON: ")
    assert "line 2" in err


def test_a_thousand_rounds_of_32_workloads_take_less_than_two_seconds(run: Run) -> None:
    """Processor time, so that a busy machine does not matter; the interpreter's own start comes to 0.3 s more."""
    workloads = [f"w{i}" for i in range(32)]
    question = case(against(dict.fromkeys(workloads, 1.05)), cv=0.01, rounds=1000)
    text = json.dumps(question | {"workloads": [{"name": w} for w in workloads]})
    start = time.process_time()
    code, out, _ = run("case.json", text)
    assert time.process_time() - start < 1.5
    assert (code, json.loads(out)["rounds"]) == (11, 8)
