"""`paceline gate FILE`, as a person or a script runs it."""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.support.campaigns import LATENCY, THROUGHPUT, WORKLOADS, Truth, against, measure
from tests.support.processor_time import least_seconds

from paceline.api.gate import BOUNDS, LimitSpec
from paceline.cli import gate as command
from paceline.gate.limits import BOUNDED_BY

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
    assert 0.004 < wide["margin"] < 0.02


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


def test_without_looks_they_are_those_of_so_many_arms(run: Run) -> None:
    for truth, looked in ((LATENCY, 4), (THROUGHPUT, 6)):
        question = case(truth, cv=0.006, seed=2, rounds=9, minimumImprovement=0.02)
        del question["decideAfterRounds"]
        _, out, _ = run("case.json", json.dumps(question))
        assert json.loads(out)["rounds"] == looked


def test_rounds_in_which_servers_ended_are_told_and_counted(run: Run) -> None:
    question = case(LATENCY)
    for m in question["measurements"]:
        if m["arm"] == "wide" and m["round"] in (1, 2):
            m |= {"valid": False, "outputThroughput": None, "ended": "ServerCrashed"}
    code, out, _ = run("case.json", json.dumps(question))
    wide = json.loads(out)["arms"]["wide"]
    assert (code, wide["verdict"]) == (10, "rejected")
    assert wide["reason"].startswith("Unreliable: ")
    assert wide["lost"] == "2 of 8 rounds were lost: in 2 its own server ended (ServerCrashed)"


def test_lengths_and_a_mean_at_a_rate_are_told_where_they_are_known(run: Run) -> None:
    question = case(LATENCY)
    question["workloads"][3]["rate"] = 8
    for m in question["measurements"]:
        m["metrics"] = {"outputTokens": 26_000 if m["arm"] == "baseline" else 26_260, "meanTTFT": 0.1}
    code, out, _ = run("case.json", json.dumps(question))
    wide = json.loads(out)["arms"]["wide"]
    assert code == 0
    assert wide["rated"] == wide["workloads"]["chat"]
    assert wide["tokens"]["code"]["ratio"] == pytest.approx(1.01)


def test_what_the_baseline_did_not_keep_up_with_is_said(run: Run) -> None:
    question = case(LATENCY)
    question["workloads"] = [{"name": w, "rate": 8} for w in WORKLOADS]
    question["measurements"] = [m | {"saturated": m["arm"] == "baseline"} for m in question["measurements"]]
    code, out, _ = run("case.json", json.dumps(question))
    assert code == 11
    assert json.loads(out)["arms"]["wide"]["reason"].startswith("Saturated: code is left out of the means: ")


@pytest.mark.parametrize("nothing", ["null", "NaN", "Infinity", "0", "-1", '"NaN"', None])
def test_a_throughput_that_is_none_makes_its_round_incomplete(run: Run, nothing: str | None) -> None:
    """Three rounds and one of them broken: no look is possible. What was lost is said."""
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
        "reason": "TooFewRounds: complete rounds: 2, the first look needs 3; "
        "1 of 3 rounds was lost: in 1 one of its points was invalid",
        "margin": None,
        "rated": None,
        "tokens": {},
        "lost": "1 of 3 rounds was lost: in 1 one of its points was invalid",
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
            "case.json: measurements[1]: duplicate measurement of ",
        ),
        (["measurements", 2, "round"], "0", 'case.json: measurements[2].round: a whole number is expected; found "0"'),
        (
            ["measurements", 2, "valid"],
            "yes",
            'case.json: measurements[2].valid: true or false is expected; found "yes"',
        ),
        (
            ["measurements", 2, "outputThroughput"],
            True,
            "case.json: measurements[2].outputThroughput: a number is expected, such as 171.3, or 0.05 for 5 %; "
            "found true",
        ),
        (
            ["measurements", 2, "outputThroughput"],
            "171 tok/s",
            "case.json: measurements[2].outputThroughput: a number is expected, such as 171.3, or 0.05 for 5 %; "
            'found "171 tok/s"',
        ),
        (
            ["measurements", 2, "vaild"],
            False,
            "case.json: measurements[2].vaild: unknown field; there are round, arm, workload, outputThroughput, ",
        ),
        (["measurements", 2], ["code", 171.3], "case.json: measurements[2]: an object is expected: {...}; found ["),
        (["measurements"], None, "case.json: measurements: a list is expected: [...]; found null"),
        (["gate", "confidence"], "1.5", 'case.json: gate.confidence: Input should be less than 1; found "1.5"'),
        (["gate", "minimumImprovement"], "NaN", "case.json: gate.minimumImprovement: "),
        (["gate", "minimumImprovement"], "5%", "case.json: gate.minimumImprovement: a number is expected, "),
        (
            ["gate", "minimumImprovment"],
            "0.1",
            "case.json: gate.minimumImprovment: unknown field; there are minimumImprovement, ",
        ),
        (["gate", "limits"], [{"metric": "p95TTFT"}], "case.json: gate.limits[0]: one of maximumIncrease, "),
        (
            ["gate", "limits"],
            [{"metric": "kvTokens", "maximumDecrease": 0.2, "maximum": 1}],
            "case.json: gate.limits[0]: one of maximumIncrease, ",
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95FFT", "maximumIncrease": 0.2}],
            "case.json: gate.limits[0].metric: no metric that can be limited; there are meanTTFT, p95TTFT, meanTPOT, ",
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95TTFT", "maximumIncrease": 0.2}, {"metric": "p95TTFT", "maximumIncrease": 0.5}],
            "case.json: gate.limits: p95TTFT is limited twice; keep one",
        ),
        (
            ["gate", "limits"],
            [{"metric": "kvTokens", "maximumIncrease": 0.2}],
            "case.json: gate.limits[0]: kvTokens is bounded by maximumDecrease",
        ),
        *(
            (
                ["measurements", at, "ended"],
                ended,
                f"case.json: measurements[{at}].ended: what a server came to is expected: OutOfMemory, ",
            )
            for at, ended in ((4, "server crashed"), (4, "ClientFailed"))
        ),
        (
            ["measurements", 0, "ended"],
            "Crashed",
            "case.json: measurements[0].ended: what a server came to is expected: ClientFailed, Evicted, ImageMoved, ",
        ),
        *(
            (
                ["measurements", 2, "outputThroughput"],
                value,
                "case.json: measurements[2].outputThroughput: tokens per second are from 0.000001 to 1000000000; found",
            )
            for value in (1e308, "1e10", 5e-324)
        ),
        *(
            (["gate", name], 1e308, f"case.json: gate.{name}: Input should be less than {most}; found 1e+308")
            for name, most in (("minimumImprovement", 10), ("varianceFloor", 1))
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95TTFT", "maximumIncrease": 1e308}],
            "case.json: gate.limits[0].maximumIncrease: Input should be less than 10; found 1e+308",
        ),
        (
            ["gate", "limits"],
            [{"metric": "retractions", "maximum": 10**400}],
            "case.json: gate.limits[0].maximum: Input should be less than or equal to 100000; found 1000",
        ),
        *(
            (
                ["measurements", 5, "metrics"],
                {"outputTokens": tokens},
                "case.json: measurements[5].metrics.outputTokens: a number above 0 (1e-09 to 1e+12) is expected, or ",
            )
            for tokens in (1e308, 5e-324)
        ),
        *(
            (
                ["measurements", 5, "metrics"],
                {"outputTokens": tokens},
                "case.json: measurements[5].metrics.outputTokens: a number above 0 is expected, or null where it is "
                f"not known; found {said}",
            )
            for tokens, said in ((math.nan, "nan"), (math.inf, "inf"), (-26000, "-26000"), (0, "0"), ("NaN", "nan"))
        ),
        (
            ["measurements", 5, "saturated"],
            True,
            "case.json: measurements[5].saturated: swe has no rate to keep; give it its rate, or say false",
        ),
        (
            ["measurements", 5, "metrics"],
            {"retractions": -1},
            "case.json: measurements[5].metrics.retractions: a number from 0 on is expected, ",
        ),
        (
            ["measurements", 5, "metrics"],
            {"outputTocens": 26000},
            "case.json: measurements[5].metrics.outputTocens: unknown metric; there are meanTTFT, ",
        ),
        (["workloads", 1, "rate"], 0, "case.json: workloads[1].rate: Input should be greater than 0"),
        (["workloads", 1], "chat", 'case.json: workloads[1]: an object is expected: {...}; found "chat"'),
        (["workloads", 1, "name"], "code", "case.json: workloads: each name once"),
        *(
            (["workloads", 1, "weight"], weight, "case.json: workloads[1].weight: a weight is 0 or from 0.000001 to 1")
            for weight in (-1, 5e-324, 1e308, 1000001)
        ),
        (["arms"], ["baseline"], "case.json: arms: "),
        (
            ["arms"],
            ["wide", "baseline"],
            "case.json: arms: 'baseline' must come first",
        ),
        (["decideAfterRounds"], [5, 3], "case.json: decideAfterRounds: "),
    ],
)
def test_an_input_error_names_its_place(run: Run, path: list[str | int], value: Any, complaint: str) -> None:
    code, out, err = run("case.json", json.dumps(change(case(LATENCY), path, value)))
    assert (code, out) == (1, "")
    assert err.startswith(complaint)


def test_bounds_that_no_one_can_read_are_cut_short(run: Run) -> None:
    """Two rounds that are far apart, at a confidence of which Student's quantile has no end."""
    question = case(LATENCY, rounds=2, confidence="0.999999") | {"decideAfterRounds": [2]}
    for i, m in enumerate(question["measurements"]):
        m["outputThroughput"] = (1e-6, 1e9)[i % 3 == 0]
    reason = json.loads(run("case.json", json.dumps(question))[1])["arms"]["wide"]["reason"]
    assert "to over 1000000)" in reason
    assert "margin over 100000000%" in reason
    assert max(map(len, reason.split())) < 30


def test_what_can_be_limited_is_what_a_resource_can_limit() -> None:
    metrics = get_args(LimitSpec.model_fields["metric"].annotation)
    assert set(BOUNDED_BY) == set(metrics)
    assert {metric: BOUNDS.get(metric, "maximumIncrease") for metric in metrics} == BOUNDED_BY


def test_metrics_that_are_known_and_ends_that_a_server_came_to_are_taken(run: Run) -> None:
    question = case(LATENCY)
    for m in question["measurements"]:
        m |= {"metrics": {"outputTokens": "26000", "retractions": 0, "kvTokens": None}}
    question["measurements"][0] |= {"ended": "ClientFailed"}  # of the baseline whatever happened to it
    question["measurements"][-1] |= {"ended": "ServerCrashed"}
    assert run("case.json", json.dumps(question))[0] == 0


def test_an_error_in_a_line_names_the_line(run: Run) -> None:
    bad = change(case(LATENCY), ["measurements", 3, "arm"], "wid")
    code, _, err = run("cases.jsonl", f"{json.dumps(case(LATENCY))}\n\n{json.dumps(bad)}\n")
    assert code == 1
    assert err.startswith("cases.jsonl:3: measurements[3].arm: unknown arm 'wid'")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"gate": {},\n "arms": [}', "case.json: Invalid JSON: expected value at line 2 column 11"),
        ("", "case.json: Invalid JSON: EOF while parsing a value at line 1 column 0"),
        ("gate: {}", "case.json: Invalid JSON: "),
        ("[" * 100_000, "case.json: Invalid JSON: recursion limit exceeded"),
        ("[]", "case.json: an object is expected: {...}; found []"),
        ("{}", "case.json: gate: is missing; arms: is missing; workloads: is missing; measurements: is missing"),
    ],
)
def test_what_is_no_case_is_said_to_be_none(run: Run, text: str, complaint: str) -> None:
    code, out, err = run("case.json", text)
    assert (code, out) == (1, "")
    assert err.startswith(complaint)


def test_of_many_faults_the_first_are_told_and_the_others_counted(run: Run) -> None:
    question = case(LATENCY)
    for measurement in question["measurements"]:
        measurement["round"] = "1"
    code, _, err = run("case.json", json.dumps(question))
    assert code == 1
    assert err.count("a whole number is expected") == 5
    assert err.endswith("; and 59 more\n")


def test_a_byte_order_mark_does_no_harm(run: Run) -> None:
    code, _, _ = run("case.json", "\ufeff" + json.dumps(case(LATENCY)))
    assert code == 0


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert paceline("gate", str(tmp_path)).stderr == f"{tmp_path}: Is a directory\n"
    gone = paceline("gate", str(tmp_path / "case.json"))
    assert (gone.returncode, gone.stderr) == (1, f"{tmp_path / 'case.json'}: No such file or directory\n")


def test_a_reader_that_has_seen_enough_gets_no_traceback(tmp_path: Path) -> None:
    """As `| head` does: the reading end is closed before anything is written."""
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(case(LATENCY))}\n" * 3)
    reading, writing = os.pipe()
    os.close(reading)
    ended = paceline("gate", str(file), stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


IMPORTS = "import json, pydantic, scipy.special"
"""What a command that judges cannot do without."""


def test_64000_measurements_are_judged_in_a_few_times_what_it_takes_to_start(tmp_path: Path) -> None:
    """A thousand rounds of 32 workloads: 2.8 times as long as the imports, where each look that tabulates its rounds
    anew would add about one."""
    workloads = [f"w{i}" for i in range(32)]
    question = case(against(dict.fromkeys(workloads, 1.05)), cv=0.01, rounds=1000)
    question |= {"workloads": [{"name": w} for w in workloads], "decideAfterRounds": [3, 5, 1000]}
    file = tmp_path / "case.json"
    file.write_text(json.dumps(question))
    assert json.loads(paceline("gate", str(file)).stdout)["rounds"] == 1000
    judging = least_seconds("-m", "paceline.cli", "gate", str(file), codes=(11,))
    assert judging < 6 * least_seconds("-c", IMPORTS)


def test_judging_imports_neither_the_api_nor_its_models(tmp_path: Path) -> None:
    """They took as long to import as the measurements to judge."""
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case(LATENCY)))
    code = "import sys; from paceline.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, "gate", str(file)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"paceline.gate", "scipy.special"} <= set(loaded)
    assert {"paceline.api", "kopf", "scipy.stats"}.isdisjoint(loaded)


def paceline(*args: str, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "paceline.cli", *args]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def test_a_server_that_ended_gave_no_point_whatever_else_is_said_of_it(run: Run) -> None:
    """Else the end would count against nobody at the look that it is part of."""
    asked = case(LATENCY)
    for one in asked["measurements"]:
        if one["arm"] == "wide" and one["round"] in (1, 3):
            one |= {"ended": "ServerCrashed"}
    _, out, _ = run("ended.json", json.dumps(asked))
    assert "Unreliable" in json.loads(out)["arms"]["wide"]["reason"]
