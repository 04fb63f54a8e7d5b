"""`paceline gate FILE`: its verdict, as a person or a script reads it."""

import json
from typing import get_args, get_type_hints

import pytest
from tests.support.campaigns import LATENCY, THROUGHPUT, WORKLOADS, against
from tests.support.gate_cases import Run, case

from paceline.api.gate import BOUNDS
from paceline.core import Limit
from paceline.gate.limits import BOUNDED_BY


def test_a_promotion(run: Run) -> None:
    code, out, _ = run("latency.json", json.dumps(case(LATENCY, minImprovement="0.05")))

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
    code, out, _ = run("throughput.json", json.dumps(case(THROUGHPUT, minImprovement=0.02)))

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
        question = case(truth, cv=0.006, seed=2, rounds=9, minImprovement=0.02)
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
    assert "2 of 8 rounds" in wide["lost"]


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
    assert json.loads(out)["arms"]["wide"]["reason"].startswith("Saturated: code ")


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


def test_beside_an_incumbent_the_baseline_is_judged_too(run: Run) -> None:
    speeds = {"baseline": 100.0, "wide": 90.0, "incumbent": 101.0}
    question = case({arm: dict.fromkeys(WORKLOADS, speed) for arm, speed in speeds.items()}, maxSlowdown="4%")
    for m in question["measurements"]:
        m["metrics"] = {"meanTTFT": 0.05}
    question["measurements"][2 * len(WORKLOADS)] |= {"ended": "ImagePull"}  # of the incumbent, any failure
    code, out, err = run("case.json", json.dumps(question))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["winner"], found["arms"]["baseline"]["mean"]) == ("baseline", None)
    assert {arm: one["reason"].partition(":")[0] for arm, one in found["arms"].items()} == {
        "baseline": "AsFastAsIncumbent",
        "wide": "SlowerThanBaseline",
    }
    assert {*found["arms"]["wide"]["incumbent"]} == {"ratio", "lower", "upper"}


def test_lines_of_cases_give_lines_of_results(run: Run) -> None:
    cases = [case(LATENCY), case(against(dict.fromkeys(WORKLOADS, 0.9)))]
    code, out, _ = run("cases.jsonl", "".join(json.dumps(c) + "\n" for c in cases))

    assert code == 0
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["Promote", "Reject"]


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
    metrics = get_args(get_type_hints(Limit)["metric"])
    assert set(BOUNDED_BY) == set(metrics)
    assert {metric: BOUNDS.get(metric, "maxIncrease") for metric in metrics} == BOUNDED_BY


def test_metrics_that_are_known_and_ends_that_a_server_came_to_are_taken(run: Run) -> None:
    question = case(LATENCY)
    for m in question["measurements"]:
        m |= {"metrics": {"outputTokens": "26000", "retractions": 0, "kvTokens": None}}
    question["measurements"][0] |= {"ended": "ClientFailed"}  # of the baseline whatever happened to it
    question["measurements"][-1] |= {"ended": "ServerCrashed"}
    assert run("case.json", json.dumps(question))[0] == 0


def test_a_server_that_ended_gave_no_point_whatever_else_is_said_of_it(run: Run) -> None:
    """Else the end would count against nobody at the look that it is part of."""
    asked = case(LATENCY)
    for one in asked["measurements"]:
        if one["arm"] == "wide" and one["round"] in (1, 3):
            one |= {"ended": "ServerCrashed"}
    _, out, _ = run("ended.json", json.dumps(asked))
    assert "Unreliable" in json.loads(out)["arms"]["wide"]["reason"]
