"""What a report says of a run, before it looks like anything."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.runs import latency, lost_round, throughput

from paceline.api.record import from_status, to_status
from paceline.api.run_status import BenchmarkRunStatus
from paceline.report import FORMATS, report
from paceline.report.model import Run, Shown, Value
from paceline.report.tables import costs, latencies, limits, speed_ups
from paceline.report.text import EMULATED, change, key_figures, number, span

DEMO = Path(__file__).with_name("demo.yaml")


def demo() -> list[dict[str, Any]]:
    """What kubectl showed while `make demo` ran: one pool decided, one under way."""
    items: list[dict[str, Any]] = yaml.safe_load(DEMO.read_text())["items"]
    return items


def said(run: dict[str, Any]) -> Run:
    return report([run]).runs[0]


def value(run: Run, metric: str, arm: str, workload: str) -> Value:
    return next(v for v in run.values if (v.metric, v.arm, v.workload) == (metric, arm, workload))


def test_the_examples_have_the_status_that_the_operator_writes() -> None:
    for run in (latency(), throughput(), *demo()):
        assert to_status(from_status(BenchmarkRunStatus, run["status"])) == run["status"]


# The sentence.


def test_a_promotion_in_a_sentence() -> None:
    assert said(demo()[0]).sentence == (
        "Emulated: wide is 1.37x (1.36–1.37) as fast as the baseline, shown in 3 rounds."
    )


def test_a_run_under_way_says_how_it_stands() -> None:
    run = said(demo()[1])
    assert run.outcome == "Measuring"
    assert run.sentence == "Emulated: Not decided yet after 4 rounds: narrow 1.03x undecided, wide 1.07x rejected."


@pytest.mark.parametrize(
    ("status", "outcome", "sentence"),
    [
        ({}, "Measuring", "Not decided yet after 0 rounds."),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 1},
                "armVerdicts": [{"arm": "wide", "outcome": "rejected", "reason": "NothingAccepted: on code"}],
            },
            "Reject",
            "The baseline stays: wide: NothingAccepted: on code, shown in 1 round.",
        ),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 3},
                "results": [{"arm": "wide", "workload": "mean", "ratio": "0.9", "lower": "0.89", "upper": "0.91"}],
            },
            "Reject",
            "The baseline stays: wide is 0.90x (0.89–0.91) as fast, not above 1.05x with every workload above 0.97x, "
            "shown in 3 rounds.",
        ),
        (
            {"verdict": {"outcome": "Inconclusive", "rounds": 8}},
            "Inconclusive",
            "The baseline stays: 8 rounds did not show enough to decide.",
        ),
        (
            {"verdict": {"outcome": "Error", "rounds": 0, "message": "the server exited with 2"}},
            "Error",
            "The measurement failed, which says nothing about the candidates: the server exited with 2",
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "Superseded", "message": "it has changed"}]},
            "Ended",
            "Ended without a verdict: it has changed",
        ),
    ],
)
def test_every_end_has_its_sentence(status: dict[str, Any], outcome: str, sentence: str) -> None:
    run = said(latency() | {"status": status})
    assert (run.outcome, run.sentence) == (outcome, sentence)


def test_a_run_that_has_not_begun_has_no_status() -> None:
    run = latency()
    del run["status"]
    assert said(run).sentence == "Not decided yet after 0 rounds."


def test_one_emulated_round_makes_the_run_emulated() -> None:
    run = latency(emulated=False)
    assert said(run).sentence.startswith("Emulated: ")
    for entry in run["status"]["rounds"]:
        entry["emulated"] = False
    assert not said(run).emulated
    assert said(run).sentence.startswith("wide is ")


# Numbers.


def test_an_interval_says_what_it_shows_of_its_threshold() -> None:
    narrow, wide = said(demo()[1]).candidates
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
    for entry in run["status"]["rounds"]:
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
    for entry in run["status"]["rounds"]:
        for point in entry["points"]:
            point["p90TTFT"] = "0.04"
    assert value(said(run), "p90TTFT", "wide", "code@1").typical == pytest.approx(0.04)
    assert "TTFT p90, ms" in latencies(said(run)).head


def test_a_point_that_was_not_valid_is_in_no_mean_but_is_told() -> None:
    run = demo()[0]
    run["status"]["rounds"][1]["points"][0] |= {"valid": False, "why": "3 of 6 requests completed"}
    run["status"]["rounds"].append(lost_round(3, "the client fell silent") | {"reason": "ClientFailed"})
    found = said(run)
    assert value(found, "outputThroughput", "wide", "code@1").rounds == 2
    assert found.unused == (
        "Round 2, wide on code@1: 3 of 6 requests completed",
        "Round 4 gave no result: ClientFailed: the client fell silent",
    )
    series = next(s for s in found.series if (s.arm, s.workload) == ("wide", "code@1"))
    assert [dot.why for dot in series.dots] == ["", "3 of 6 requests completed", ""]


def test_the_last_try_of_a_round_counts() -> None:
    run = demo()[0]
    again = json.loads(json.dumps(run["status"]["rounds"][0])) | {"try": 1}
    for point in again["points"]:
        point["steadyThroughput"] = "100"
    run["status"]["rounds"].append(again)
    series = said(run).series[0]
    assert series.dots[0].speed == 100


def test_a_workload_at_a_rate_is_judged_by_the_speed_of_a_request() -> None:
    run = latency()
    run["spec"]["workloads"][0]["requestRate"] = "8"
    for entry in run["status"]["rounds"]:
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
        {"metric": "kvTokens", "maximumDecrease": "0.10"},
        {"metric": "retractions", "maximum": 0},
    ]
    for entry in run["status"]["rounds"]:
        for replicate in entry["replicates"]:
            replicate["kvTokens"] = 800_000 if replicate["arm"] == "baseline" else 600_000
    (found,) = said(run).limits
    assert (found.metric, found.workload, found.threshold, found.shown) == ("kvTokens", "", 0.9, Shown.BROKEN)
    (row,) = limits(said(run)).rows
    assert [cell.text for cell in row[:4]] == ["wide", "kvTokens", "–", "> 0.90x"]


def test_limits_on_latency_are_judged_from_the_rounds() -> None:
    run = demo()[0]
    run["spec"]["gate"]["limits"] = [{"metric": "meanTPOT", "maximumIncrease": "0.20"}]
    found = {one.workload: one for one in said(run).limits}
    assert set(found) == {"code@1", "swe@1", "terminal@1", "chat@1"}
    assert found["code@1"].bounds
    assert 0.7 < found["code@1"].bounds.ratio < 0.75
    assert {one.shown for one in found.values()} == {Shown.KEPT}


# Over concurrencies.


def over(*loads: tuple[int, float, float]) -> dict[str, Any]:
    """Three rounds of one dataset over concurrencies: concurrency, and tokens per second of baseline and wide."""
    run = latency()
    base = run["spec"]["workloads"][0]
    run["spec"]["workloads"] = [base | {"concurrency": c, "requests": 160} for c, _, _ in loads]
    for entry in run["status"]["rounds"]:
        entry["points"] = [
            {
                "arm": arm,
                "workload": f"code@{c}",
                "valid": True,
                "steadyThroughput": f"{1.001 ** entry['round'] * speed}",
            }
            for c, *speeds in loads
            for arm, speed in zip(("baseline", "wide"), speeds, strict=True)
        ]
    run["status"]["results"] = []
    return run


GB10 = ((1, 25.0, 35.0), (8, 316.0, 270.0))
"""Published for a GB10."""


def test_the_baseline_takes_over_between_two_concurrencies() -> None:
    found = said(over(*GB10)).crossover
    assert found
    assert found.between == (1, 8)
    assert found.sentence == (
        "Speculate up to 1, not at 8: the baseline takes over somewhere between 1 and 8 simultaneous requests."
    )
    assert found.numbers.startswith("1: wide 1.400x (")
    (curve,) = found.curves["code"]
    assert [(spot.concurrency, round(spot.bounds.ratio, 3)) for spot in curve.spots] == [(1, 1.4), (8, 0.854)]
    assert list(found.curves) == ["code"]


def test_of_several_datasets_the_mean_comes_first() -> None:
    run = over(*GB10)
    run["spec"]["workloads"] += [w | {"name": "chat"} for w in run["spec"]["workloads"]]
    for entry in run["status"]["rounds"]:
        entry["points"] += [p | {"workload": p["workload"].replace("code", "chat")} for p in entry["points"]]
    found = said(run).crossover
    assert found
    assert list(found.curves) == ["mean", "code", "chat"]


def test_one_concurrency_crosses_nothing() -> None:
    assert said(demo()[0]).crossover is None


def test_a_sweeps_sentence_is_its_table() -> None:
    run = over(*GB10)
    run["spec"]["purpose"] = "Sweep"
    assert said(run).sentence.startswith("Emulated: Speculate up to 1, not at 8")
    assert said(run).asked.startswith("Nothing is asked of a candidate")


def test_in_a_sweep_an_interval_is_held_against_the_baseline_and_not_against_a_rule_that_does_not_count() -> None:
    """A ratio of 1.03 is faster, whatever a gate would ask; 0.97 is slower, whatever one would let pass."""
    run = over(*GB10)
    run["spec"]["purpose"] = "Sweep"
    run["status"]["results"] = [
        {"arm": "wide", "workload": f"code@{at}", "ratio": ratio, "lower": lower, "upper": upper}
        for at, ratio, lower, upper in ((1, "1.03", "1.02", "1.04"), (8, "0.97", "0.96", "0.98"), (16, "1", "0.9", "2"))
    ]
    table = speed_ups(said(run))
    assert table.head[:3] == ("Arm", "Workload", "Beside the baseline")
    assert [(row[2].text, row[2].note) for row in table.rows] == [("faster", ""), ("slower", ""), ("not shown", "")]
    page = FORMATS["html"](report([run]))
    assert "&gt; 0.95x" not in page
    assert "> 0.95x" not in page
    assert "shown to be faster than the baseline" in page


# What differs, what it took, where it comes from.


def test_what_differs_is_told_and_what_is_equal_too() -> None:
    found = said(demo()[1]).configuration
    asked = {one.name: one.values for one in found.asked}
    assert asked["numSteps"] == ("", "5", "3")
    assert asked["draft"] == ("", *2 * ("hf://thoughtworks/Qwen3-Coder-Next-Eagle3@71ba27c3043a",))
    assert {one.name: one.values for one in found.resolved}["speculative_num_draft_tokens"] == ("null", "6", "8")
    assert ("attention_backend", "triton") in found.equal
    assert found.unequal == ()


def test_a_compared_argument_that_differs_is_named() -> None:
    run = demo()[0]
    run["status"]["rounds"][0]["replicates"][1]["resolved"]["page_size"] = "64"
    assert said(run).configuration.unequal == ("page_size",)


def test_commands_are_those_of_the_engines_adapter() -> None:
    (baseline, plain), (wide, speculating) = said(demo()[0]).configuration.commands
    assert (baseline, wide) == ("baseline", "wide")
    assert "--speculative-num-steps" not in " ".join(plain)
    assert "--speculative-num-steps" in " ".join(speculating)


def test_a_spec_of_another_release_has_no_commands_but_a_report() -> None:
    run = demo()[0]
    run["spec"]["ofALaterRelease"] = True
    assert said(run).configuration.commands == ()
    assert said(run).outcome == "Promote"


def test_who_measured_is_named_and_is_not_who_wrote_the_report() -> None:
    run = latency(paceline="0.0.9, 0.1.0")
    assert dict(said(run).provenance)["Measured by"] == "Paceline 0.0.9, 0.1.0"
    older = dict(said(latency()).provenance)
    assert "Measured by" not in older


def test_prompts_of_the_hub_are_named_by_their_commit() -> None:
    run = demo()[0]
    run["spec"]["workloads"][0] |= {
        "source": "hf://datasets/team/prompts/code.jsonl",
        "commit": "0123456789ab" + "c" * 28,
    }
    found = dict(said(run).provenance)
    assert found["Data of code@1"].startswith(
        "hf://datasets/team/prompts/code.jsonl@0123456789ab, 6 prompts a round, temperature 0"
    )


def test_provenance_names_what_another_would_need_to_measure_it_again() -> None:
    found = dict(said(demo()[0]).provenance)
    assert found["Target"] == "hf://Qwen/Qwen3-Coder-Next@41afb1561aca"
    assert found["Engine"] == "SGLang 0.5.23+emulated"
    assert found["Fingerprint"] == "5f189fcaf9"
    assert found["Accelerators"] == "4 × NVIDIA-H200"
    assert found["Node"] == "gpu-0"
    assert found["Started"] == "2026-11-21 15:59 UTC"
    assert found["Seed of the servers"] == "0"
    assert (
        found["Data of code@1"] == "builtin://code, 6 prompts a round, temperature 0, at most 96 tokens each, weight 1"
    )
    assert found["Gate"].startswith("minimum improvement 5.0%, regression tolerance 3.0%, confidence 95.0%")


def test_provenance_tells_how_the_gpus_were_clocked_if_a_driver_said_so() -> None:
    assert "Around its loads" not in dict(said(demo()[0]).provenance)
    run = copy.deepcopy(demo()[0])
    for n, entry in enumerate(run["status"]["rounds"]):
        for replicate in entry["replicates"]:
            replicate["clocks"] = {"smMHz": 1980 - n, "mostSMMHz": 1980, "powerLimitWatts": 700, "celsius": 60 + n}
    assert dict(said(run).provenance)["Around its loads"] == (
        "SM clocks of at least 1978 of 1980 MHz, power limit 700 W, at most 62 °C"
    )


def test_cost_is_split_into_starts_and_measuring() -> None:
    cost = said(demo()[0]).cost
    assert (cost.gpu_seconds, cost.server_starts, cost.rounds) == (616, 6, 3)
    assert cost.starting == pytest.approx(17.8, abs=0.5)
    assert cost.measuring == pytest.approx(72, abs=1)
    assert cost.held == pytest.approx(154, abs=10)


def test_what_is_judged_again_has_cost_another_run() -> None:
    run = demo()[0]
    for entry in run["status"]["rounds"][:2]:
        entry["run"] = "the-one-before"
    run["status"]["cost"] = {"gpuSeconds": 205, "serverStarts": 2}
    found = said(run)
    assert found.cost.rounds == 1
    assert found.cost.held < 80
    assert dict(found.provenance)["Judged again"] == "2 of 3 rounds, measured by the-one-before"
    assert "Judged again" not in dict(said(demo()[0]).provenance)


def test_what_was_held_for_nothing_is_told() -> None:
    run = demo()[0]
    run["status"]["cost"]["idleGpuSeconds"] = 154
    assert dict(costs(said(run)))["Of it neither start nor measurement"] == "25% (154 GPU-seconds)"


def test_a_pool_that_is_to_be_two_is_told_so() -> None:
    run = demo()[0]
    run["status"]["verdict"]["crossing"] = "speculate up to 1, not at 8: split the pool by concurrency"
    assert said(run).advice == "Speculate up to 1, not at 8: split the pool by concurrency"


def test_the_margin_stands_beside_the_noise() -> None:
    run = demo()[0]
    run["status"]["armVerdicts"][0]["margin"] = "0.00614"
    assert ("Noise of a point", "0.27%", "margin 0.61% (wide)") in key_figures(said(run))


def test_the_first_figures_are_those_that_are_looked_for() -> None:
    names = [name for name, _, _ in key_figures(said(demo()[0]))]
    assert names == ["Speed-up", "Acceptance length", "Rounds", "GPU time", "Noise of a point"]


# What is no run.


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({}, "metadata.name"),
        ({"metadata": {"name": "x"}}, "x: spec.pool is missing"),
        (
            latency() | {"spec": latency()["spec"] | {"arms": [{"name": "wide"}]}},
            r"spec.arms\[0\].name must be baseline",
        ),
        (latency() | {"status": {"rounds": ["what"]}}, "is not as the API server stores a BenchmarkRun"),
    ],
)
def test_what_is_no_run_is_refused_by_name(manifest: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        report([manifest])


# Words.


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.836, "5.84"), (9.896, "9.90"), (9.996, "10.0"), (167.2, "167"), (2010.4, "2,010"), (0.05, "0.0500")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_changes_have_a_sign() -> None:
    assert [change(x) for x in (0.0412, -0.22, -0.00001, None)] == ["+4.1 %", "−22.0 %", "±0.0 %", ""]


def test_times_have_the_unit_that_suits_them() -> None:
    assert [span(x) for x in (44.2, 119, 150, 7200, 12000)] == ["44 s", "119 s", "2.5 min", "2.0 h", "3.3 h"]


def test_the_mark_says_that_nothing_was_measured() -> None:
    assert re.search(r"no model ran.*no measurements", EMULATED)


def test_how_a_round_was_sampled_and_of_how_many_prompts_is_part_of_the_provenance() -> None:
    run = latency()
    run["spec"]["workloads"][0] |= {"temperature": "model"}
    for entry in run["status"]["rounds"]:
        entry["prompts"] = {"code": 512}
    found = dict(said(run).provenance)
    assert found["Data of code@1"] == (
        "builtin://code, 160 of 512 prompts a round, others in each until they come again, "
        "no temperature asked for: the server's own, at most 96 tokens each, weight 1"
    )


def test_what_a_terminal_would_obey_is_in_no_report() -> None:
    """A server wrote it once, and `-o -` goes to a terminal; in HTML it would be no XML."""
    run = latency()
    escapes = "\x1b]0;owned\x07\x1b[2J\u202e"
    run["status"]["rounds"][0]["replicates"][0]["error"] = f"{escapes}gone"
    run["spec"]["target"]["servedName"] = f"name{escapes}"
    for format in FORMATS.values():
        text = format(report([run]))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\u001b|\\u202e", text)
