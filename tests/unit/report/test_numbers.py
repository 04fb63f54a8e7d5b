"""The numbers of a report: intervals, latencies, limits, and what comes of several concurrencies."""

import json

import pytest
from tests.support.messages import Says
from tests.support.reports import GB10, demo, over, said, value
from tests.support.runs import latency, lost_round

from paceline.report import FORMATS, build_report, read
from paceline.report.model import Shown
from paceline.report.tables import costs_table, latencies_table, limits_table, speed_ups


def test_an_interval_says_what_it_shows_of_its_threshold() -> None:
    run = demo()[1]
    del run["rounds"][3:]  # the look was after three
    narrow, wide = said(run).candidates
    assert narrow.mean
    assert narrow.mean.threshold == pytest.approx(1.02)
    assert [e.workload for e in narrow.effects if e.shown is Shown.OPEN] == ["swe@32"]
    assert [e.workload for e in wide.effects if e.shown is Shown.BROKEN] == ["terminal@32"]
    assert {e.threshold for e in wide.effects if e is not wide.mean} == {0.97}


def test_what_cannot_be_an_interval_is_left_out() -> None:
    run = demo()[0]
    run["status"]["results"][1]["lower"] = "NaN"
    run["status"]["results"][2] |= {"ratio": "1.2", "lower": "1.3", "upper": "1.4"}
    assert [e.workload for e in said(run).candidates[0].effects] == ["mean", "terminal@1", "chat@1"]


def test_latency_is_a_mean_over_rounds_and_its_change_that_of_pairs() -> None:
    run = latency()
    for entry in run["rounds"]:
        for point in entry["points"]:
            slow = 2 ** entry["round"]  # both arms in the same round
            point["p95TTFT"] = f"{slow * (0.010 if point['arm'] == 'wide' else 0.020):.6g}"
    found = value(said(run), "p95TTFT", "wide", "code@1")
    assert (found.typical, found.least, found.most) == pytest.approx((0.01 * 2**1.5, 0.01, 0.08))
    assert found.change == pytest.approx(-0.5)
    assert value(said(run), "p95TTFT", "baseline", "code@1").change is None


def test_a_percentile_that_only_the_record_names_is_shown() -> None:
    """p90TTFT: no list of the report's has it."""
    run = latency()
    for entry in run["rounds"]:
        for point in entry["points"]:
            point["p90TTFT"] = "0.04"
    assert value(said(run), "p90TTFT", "wide", "code@1").typical == pytest.approx(0.04)
    assert "TTFT p90, ms" in latencies_table(said(run)).head


def test_a_point_that_was_not_valid_is_in_no_mean_but_is_told(says: Says) -> None:
    run = demo()[0]
    run["rounds"][1]["points"][0] |= {"valid": False, "why": "3 of 6 requests completed"}
    run["rounds"].append(lost_round(3, "the client fell silent") | {"reason": "ClientFailed"})
    found = said(run)
    assert value(found, "outputThroughput", "wide", "code@1").rounds == 2
    says(*found.unused)
    series = next(s for s in found.series if (s.arm, s.workload) == ("wide", "code@1"))
    assert [dot.why for dot in series.dots] == ["", "3 of 6 requests completed", ""]


def test_the_last_try_of_a_round_counts() -> None:
    run = demo()[0]
    again = json.loads(json.dumps(run["rounds"][0])) | {"try": 1}
    for point in again["points"]:
        point["steadyThroughput"] = "100"
    run["rounds"].append(again)
    series = said(run).series[0]
    assert series.dots[0].speed == 100


def test_a_workload_at_a_rate_is_judged_by_the_speed_of_a_request() -> None:
    run = latency()
    run["spec"]["workloads"][0]["requestRate"] = "8"
    for entry in run["rounds"]:
        entry["points"] = [
            {"arm": arm, "workload": "code@8/s", "valid": True, "outputThroughput": "500", "requestSpeed": speed}
            for arm, speed in (("baseline", "50"), ("wide", "60"))
        ]
    found = said(run)
    assert found.workloads[0] == "code@8/s"
    assert {s.arm: s.typical for s in found.series} == pytest.approx({"baseline": 50, "wide": 60})
    assert value(found, "requestSpeed", "wide", "code@8/s").change == pytest.approx(0.2)


def test_how_long_answers_are_is_told_beside_the_speed_up() -> None:
    run = latency()
    assert speed_ups(said(run)).head[-1] == "Interval"
    result = next(one for one in run["status"]["results"] if one["workload"] == "chat@1")
    result |= {"tokens": "0.9700", "tokensLower": "0.9600", "tokensUpper": "0.9800"}
    table = speed_ups(said(run))
    assert table.head[-1] == "Tokens written"
    told = {row[1].text: (row[-1].text, row[-1].note) for row in table.rows}
    assert (told["chat@1"], told["code@1"]) == (("−3.0 %", "0.960–0.980"), ("–", ""))


def test_a_mean_at_a_rate_stands_beside_that_of_closed_loops() -> None:
    run = latency()
    first = run["status"]["results"][0]
    run["status"]["results"].insert(1, first | {"workload": "mean@rate", "ratio": "1.9", "upper": "2.0"})
    (wide,) = said(run).candidates
    assert [(one.workload, one.threshold) for one in wide.effects[:2]] == [("mean", 1.05), ("mean@rate", 1.05)]
    assert [row[1].text for row in speed_ups(said(run)).rows[:2]] == ["all, by weight", "all at a rate"]


def test_capacity_that_is_limited_is_one_line_of_the_server() -> None:
    run = latency()
    run["spec"]["gate"]["limits"] = [
        {"metric": "kvTokens", "maxDecrease": "10%"},
        {"metric": "retractions", "max": 0},
    ]
    for entry in run["rounds"]:
        for replicate in entry["replicates"]:
            replicate["kvTokens"] = 800_000 if replicate["arm"] == "baseline" else 600_000
    (found,) = said(run).limits
    assert (found.metric, found.workload, found.threshold, found.shown) == ("kvTokens", "", 0.9, Shown.BROKEN)
    (row,) = limits_table(said(run)).rows
    assert [cell.text for cell in row[:4]] == ["wide", "kvTokens", "–", "> 0.90x"]


def test_limits_on_latency_are_judged_from_the_rounds() -> None:
    run = demo()[0]
    run["spec"]["gate"]["limits"] = [{"metric": "meanTPOT", "maxIncrease": "20%"}]
    found = {one.workload: one for one in said(run).limits}
    assert set(found) == {"code@1", "swe@1", "terminal@1", "chat@1"}
    assert found["code@1"].bounds
    assert 0.7 < found["code@1"].bounds.ratio < 0.75
    assert {one.shown for one in found.values()} == {Shown.KEPT}


def test_the_baseline_takes_over_between_two_concurrencies(says: Says) -> None:
    found = said(over(*GB10)).crossover
    assert found
    assert found.between == (1, 8)
    says(found.sentence)
    assert found.numbers.startswith("1: wide 1.400x (")
    (curve,) = found.curves["code"]
    assert [(spot.concurrency, round(spot.bounds.ratio, 3)) for spot in curve.spots] == [(1, 1.4), (8, 0.854)]
    assert list(found.curves) == ["code"]


def test_of_several_datasets_the_mean_comes_first() -> None:
    run = over(*GB10)
    run["spec"]["workloads"] += [w | {"name": "chat"} for w in run["spec"]["workloads"]]
    for entry in run["rounds"]:
        entry["points"] += [p | {"workload": p["workload"].replace("code", "chat")} for p in entry["points"]]
    found = said(run).crossover
    assert found
    assert list(found.curves) == ["mean", "code", "chat"]


def test_one_concurrency_crosses_nothing() -> None:
    assert said(demo()[0]).crossover is None


def test_one_dataset_here_and_another_there_cross_nothing() -> None:
    """Other prompts say nothing about the load."""
    run = over(*GB10)
    run["spec"]["workloads"][1]["name"] = "chat"
    for entry in run["rounds"]:
        entry["points"] = [p | {"workload": p["workload"].replace("code@8", "chat@8")} for p in entry["points"]]
    assert said(run).crossover is None


def test_where_every_workload_is_at_a_rate_nothing_crosses() -> None:
    run = demo()[0]
    run["spec"]["workloads"] = [one | {"requestRate": "8"} for one in run["spec"]["workloads"]]
    run["rounds"] = []
    assert said(run).crossover is None


def test_a_sweeps_sentence_is_its_table(says: Says) -> None:
    run = over(*GB10)
    run["spec"]["sweep"] = run["spec"].pop("gate")
    found = said(run)
    assert found.crossover
    assert found.crossover.sentence in found.sentence
    says(found.asked)


def test_the_rule_of_a_sweep_is_its_own() -> None:
    """In place of a gate's, whose defaults are others."""
    run = over(*GB10)
    del run["spec"]["gate"]
    run["spec"]["sweep"] = {"confidence": "90%", "rounds": 5}
    rule = read.gate(run["spec"])
    assert (rule.confidence, rule.decide_after_rounds) == (0.9, (5,))
    run["spec"]["sweep"] = {}
    assert read.gate(run["spec"]).decide_after_rounds == (8,)


def test_in_a_sweep_an_interval_is_held_against_the_baseline_and_not_against_a_rule_that_does_not_count() -> None:
    """A ratio of 1.03 is faster, whatever a gate would ask; 0.97 is slower, whatever one would let pass."""
    run = over(*GB10)
    run["spec"]["sweep"] = run["spec"].pop("gate")
    run["status"]["results"] = [
        {"arm": "wide", "workload": f"code@{at}", "ratio": ratio, "lower": lower, "upper": upper}
        for at, ratio, lower, upper in ((1, "1.03", "1.02", "1.04"), (8, "0.97", "0.96", "0.98"), (16, "1", "0.9", "2"))
    ]
    table = speed_ups(said(run))
    assert table.head[:3] == ("Arm", "Workload", "Beside the baseline")
    assert [(row[2].text, row[2].note) for row in table.rows] == [("faster", ""), ("slower", ""), ("not shown", "")]
    page = FORMATS["html"](build_report([run]))
    assert "&gt; 0.95x" not in page
    assert "> 0.95x" not in page
    assert "● shown to be faster" in page


def test_energy_is_shown_per_token_with_its_change() -> None:
    run = latency()
    for entry in run["rounds"]:
        for point in entry["points"]:
            point["energyPerToken"] = "1.3" if point["arm"] == "wide" else "1"
    assert value(said(run), "energyPerToken", "wide", "code@1").change == pytest.approx(0.3)
    assert "J a token" in latencies_table(said(run)).head


def test_a_price_gives_the_cost_of_tokens_and_of_the_run() -> None:
    """7.20 an hour for 4 GPUs of 1.80, and 20 tokens/s: 0.002 a second, 0.0001 a token."""
    run = latency()
    assert not any(one.metric == "costPerMillion" for one in said(run).values)
    run["spec"]["accelerator"] |= {"count": 4, "pricePerHour": "1.8"}
    run["status"]["cost"] = {"gpuSeconds": 7200}
    for entry in run["rounds"]:
        for point in entry["points"]:
            point["steadyThroughput"] = "25" if point["arm"] == "wide" else "20"
    found = said(run)
    assert value(found, "costPerMillion", "baseline", "code@1").typical == pytest.approx(100)
    assert value(found, "costPerMillion", "wide", "code@1").typical == pytest.approx(80)
    assert value(found, "costPerMillion", "wide", "code@1").change == pytest.approx(-0.2)
    assert "Cost of a million tokens" in latencies_table(found).head
    assert dict(costs_table(found))["At accelerator.pricePerHour"] == "3.60"


def test_what_a_draft_takes_of_the_kv_cache_stands_beside_its_capacity() -> None:
    run = latency()
    for entry in run["rounds"]:
        for replicate in entry["replicates"]:
            replicate["kvTokens"] = 800_000 if replicate["arm"] == "baseline" else 600_000
    (row,) = (one for one in said(run).configuration.resolved if one.name == "KV cache, tokens")
    assert row.values == ("800000", "600000 (−25.0 %)")
