"""What `paceline gate` is given and cannot judge: each complaint names its place."""

import json
import math
from typing import Any

import pytest
from tests.support.campaigns import LATENCY
from tests.support.gate_cases import Run, case, change


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
        (["gate", "minImprovement"], "NaN", "case.json: gate.minImprovement: "),
        (["gate", "minImprovement"], "five%", "case.json: gate.minImprovement: a number is expected, "),
        (
            ["gate", "minimumImprovment"],
            "0.1",
            "case.json: gate.minimumImprovment: unknown field; there are minImprovement, ",
        ),
        (["gate", "limits"], [{"metric": "p95TTFT"}], "case.json: gate.limits[0]: give exactly one of "),
        (
            ["gate", "limits"],
            [{"metric": "kvTokens", "maxDecrease": 0.2, "max": 1}],
            "case.json: gate.limits[0]: give exactly one of ",
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95FFT", "maxIncrease": 0.2}],
            "case.json: gate.limits[0].metric: not a metric that can be limited; use one of meanTTFT, p95TTFT, ",
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95TTFT", "maxIncrease": 0.2}, {"metric": "p95TTFT", "maxIncrease": 0.5}],
            "case.json: gate.limits: p95TTFT is limited twice; keep one",
        ),
        (
            ["gate", "limits"],
            [{"metric": "kvTokens", "maxIncrease": 0.2}],
            "case.json: gate.limits[0]: kvTokens is bounded by maxDecrease",
        ),
        *(
            (
                ["measurements", at, "ended"],
                ended,
                f"case.json: measurements[{at}].ended: must be one of Malformed, OutOfMemory, ",
            )
            for at, ended in ((4, "server crashed"), (4, "ClientFailed"))
        ),
        (
            ["measurements", 0, "ended"],
            "Crashed",
            "case.json: measurements[0].ended: must be one of ClientBusy, ClientFailed, Evicted, ",
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
            for name, most in (("minImprovement", 10), ("varianceFloor", 1))
        ),
        (
            ["gate", "limits"],
            [{"metric": "p95TTFT", "maxIncrease": 1e308}],
            "case.json: gate.limits[0].maxIncrease: Input should be less than 10; found 1e+308",
        ),
        (
            ["gate", "limits"],
            [{"metric": "retractions", "max": 10**400}],
            "case.json: gate.limits[0].max: Input should be less than or equal to 100000; found 1000",
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
                "case.json: measurements[5].metrics.outputTokens: a number above 0 is expected, or null if it is "
                f"not known; found {said}",
            )
            for tokens, said in ((math.nan, "nan"), (math.inf, "inf"), (-26000, "-26000"), (0, "0"), ("NaN", "nan"))
        ),
        (
            ["measurements", 5, "saturated"],
            True,
            "case.json: measurements[5].saturated: swe has no rate to keep; write its rate, or false",
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
        (["workloads", 1, "name"], "code", "case.json: workloads: a name is repeated"),
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


def test_an_error_in_a_line_names_the_line(run: Run) -> None:
    bad = change(case(LATENCY), ["measurements", 3, "arm"], "wid")
    code, _, err = run("cases.jsonl", f"{json.dumps(case(LATENCY))}\n\n{json.dumps(bad)}\n")
    assert code == 1
    assert err.startswith("cases.jsonl:3: measurements[3].arm: unknown arm 'wid'")


def test_a_file_without_a_case_is_told(run: Run) -> None:
    assert run("cases.jsonl", "\n") == (1, "", "cases.jsonl: it has no case: write one JSON object per line\n")


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


@pytest.mark.parametrize(
    ("file", "text"),
    [("run.yaml", "apiVersion: a\nkind: BenchmarkRun\n"), ("run.json", '{"kind": "BenchmarkRun", "spec": {}}')],
)
def test_a_run_has_its_verdict_already(run: Run, file: str, text: str) -> None:
    code, out, err = run(file, text)
    assert (code, out) == (1, "")
    assert err == f"{file}: it is a BenchmarkRun, which has its verdict in status: `paceline report` shows it\n"


def test_a_search_is_said_to_decide_nothing(run: Run) -> None:
    code, out, err = run("run.search.yaml", "kind: BenchmarkRun\nspec:\n  search: {}\n")
    assert (code, out) == (1, "")
    assert err.startswith("run.search.yaml: it is a BenchmarkRun that searches, and a search decides nothing: ")


def test_looks_may_stand_in_the_gate_as_in_a_spec(run: Run) -> None:
    above = case(LATENCY)
    looks = above["decideAfterRounds"]
    within = {name: value for name, value in above.items() if name != "decideAfterRounds"}
    within["gate"] = {**above["gate"], "decideAfterRounds": looks}
    assert run("case.json", json.dumps(within)) == run("case.json", json.dumps(above))
