"""What `paceline gate` is given and cannot judge: each complaint names its place."""

import json
import math
import re
from typing import Any

import pytest
from tests.support.campaigns import LATENCY
from tests.support.gate_cases import Run, case, change
from tests.support.messages import Says


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["measurements", 3, "arm"], "wid", "measurements[3].arm"),
        (["measurements", 4, "workload"], "cod", "measurements[4].workload"),
        (["measurements", 1, "workload"], "code", "measurements[1]"),
        (["measurements", 2, "round"], "0", "measurements[2].round"),
        (["measurements", 2, "valid"], "yes", "measurements[2].valid"),
        (["measurements", 2, "outputThroughput"], True, "measurements[2].outputThroughput"),
        (["measurements", 2, "outputThroughput"], "171 tok/s", "measurements[2].outputThroughput"),
        (["measurements", 2, "vaild"], False, "measurements[2].vaild"),
        (["measurements", 2], ["code", 171.3], "measurements[2]"),
        (["measurements"], None, "measurements"),
        (["gate", "confidence"], "1.5", "gate.confidence"),
        (["gate", "minImprovement"], "NaN", "gate.minImprovement"),
        (["gate", "minImprovement"], "five%", "gate.minImprovement"),
        (["gate", "minimumImprovment"], "0.1", "gate.minimumImprovment"),
        (["gate", "limits"], [{"metric": "p95TTFT"}], "gate.limits[0]"),
        (["gate", "limits"], [{"metric": "kvTokens", "maxDecrease": 0.2, "max": 1}], "gate.limits[0]"),
        (["gate", "limits"], [{"metric": "p95FFT", "maxIncrease": 0.2}], "gate.limits[0].metric"),
        (["gate", "limits"], [{"metric": "p95TTFT", "maxIncrease": much} for much in (0.2, 0.5)], "gate.limits"),
        (["gate", "limits"], [{"metric": "kvTokens", "maxIncrease": 0.2}], "gate.limits[0]"),
        (["measurements", 4, "ended"], "server crashed", "measurements[4].ended"),
        (["measurements", 4, "ended"], "ClientFailed", "measurements[4].ended"),
        (["measurements", 0, "ended"], "Crashed", "measurements[0].ended"),
        *(
            (["measurements", 2, "outputThroughput"], value, "measurements[2].outputThroughput")
            for value in (1e308, "1e10", 5e-324)
        ),
        (["gate", "minImprovement"], 1e308, "gate.minImprovement"),
        (["gate", "varianceFloor"], 1e308, "gate.varianceFloor"),
        (["gate", "limits"], [{"metric": "p95TTFT", "maxIncrease": 1e308}], "gate.limits[0].maxIncrease"),
        (["gate", "limits"], [{"metric": "retractions", "max": 10**400}], "gate.limits[0].max"),
        *(
            (["measurements", 5, "metrics"], {"outputTokens": tokens}, "measurements[5].metrics.outputTokens")
            for tokens in (1e308, 5e-324, math.nan, math.inf, -26000, 0, "NaN")
        ),
        (["measurements", 5, "saturated"], True, "measurements[5].saturated"),
        (["measurements", 5, "metrics"], {"retractions": -1}, "measurements[5].metrics.retractions"),
        (["measurements", 5, "metrics"], {"outputTocens": 26000}, "measurements[5].metrics.outputTocens"),
        (["workloads", 1, "rate"], 0, "workloads[1].rate"),
        (["workloads", 1], "chat", "workloads[1]"),
        (["workloads", 1, "name"], "code", "workloads"),
        *((["workloads", 1, "weight"], weight, "workloads[1].weight") for weight in (-1, 5e-324, 1e308, 1000001)),
        (["arms"], ["baseline"], "arms"),
        (["arms"], ["wide", "baseline"], "arms"),
        (["decideAfterRounds"], [5, 3], "decideAfterRounds"),
    ],
)
def test_an_input_error_names_its_place(run: Run, path: list[str | int], value: Any, place: str, says: Says) -> None:
    code, out, err = run("case.json", json.dumps(change(case(LATENCY), path, value)))
    assert (code, out) == (1, "")
    assert err.startswith(f"case.json: {place}: ")
    says(err)


def test_an_error_in_a_line_names_the_line(run: Run) -> None:
    bad = change(case(LATENCY), ["measurements", 3, "arm"], "wid")
    code, _, err = run("cases.jsonl", f"{json.dumps(case(LATENCY))}\n\n{json.dumps(bad)}\n")
    assert code == 1
    assert err.startswith("cases.jsonl:3: measurements[3].arm: ")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("case.json", '{"gate": {},\n "arms": [}'),
        ("case.json", ""),
        ("case.json", "gate: {}"),
        pytest.param("case.json", "[" * 100_000, id="deep"),
        ("case.json", "[]"),
        ("case.json", "{}"),
        ("cases.jsonl", "\n"),
        ("run.yaml", "apiVersion: a\nkind: BenchmarkRun\n"),
        ("run.json", '{"kind": "BenchmarkRun", "spec": {}}'),
        ("run.search.yaml", "kind: BenchmarkRun\nspec:\n  search: {}\n"),
    ],
)
def test_what_is_no_case_is_said_to_be_none(run: Run, file: str, text: str, says: Says) -> None:
    """A run has its verdict already, and a search decides nothing."""
    code, out, err = run(file, text)
    assert (code, out) == (1, "")
    assert err.startswith(f"{file}: ")
    says(err)


def test_of_many_faults_the_first_are_told_and_the_others_counted(run: Run, says: Says) -> None:
    question = case(LATENCY)
    for measurement in question["measurements"]:
        measurement["round"] = "1"
    code, _, err = run("case.json", json.dumps(question))
    assert code == 1
    assert re.findall(r"measurements\[(\d)\]\.round: ", err) == list("01234")
    says(err)


def test_a_byte_order_mark_does_no_harm(run: Run) -> None:
    code, _, _ = run("case.json", "\ufeff" + json.dumps(case(LATENCY)))
    assert code == 0


def test_looks_may_stand_in_the_gate_as_in_a_spec(run: Run) -> None:
    above = case(LATENCY)
    looks = above["decideAfterRounds"]
    within = {name: value for name, value in above.items() if name != "decideAfterRounds"}
    within["gate"] = {**above["gate"], "decideAfterRounds": looks}
    assert run("case.json", json.dumps(within)) == run("case.json", json.dumps(above))
