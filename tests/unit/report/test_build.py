"""What a report says of a run in words: its sentence, its first figures, and what is no run."""

import re
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.reports import demo, said
from tests.support.runs import latency, throughput

from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.record import from_status, to_status
from paceline.report import FORMATS, build_report
from paceline.report.tables import costs_table
from paceline.report.text import change, duration_words, key_figures, significant


def test_the_examples_have_the_status_that_the_operator_writes() -> None:
    for run in (latency(), throughput(), *demo()):
        assert to_status(from_status(BenchmarkRunStatus, run["status"])) == run["status"]


def test_the_decision_stands_beside_the_speed_up_and_the_worst_workload(says: Says) -> None:
    run = said(demo()[0])
    assert (run.outcome, run.winner) == ("Promote", "wide")
    assert "1.37x (1.36–1.37)" in run.found
    assert run.sentence.endswith(f"{run.decision}: {run.found}")
    says(run.sentence)


def test_a_run_under_way_says_how_it_stands(says: Says) -> None:
    run = said(demo()[1])
    assert run.outcome == "Measuring"
    assert "1.07x (1.05–1.08)" in run.found
    says(run.sentence)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ({}, "Measuring"),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 1},
                "armVerdicts": [{"arm": "wide", "outcome": "rejected", "reason": "NothingAccepted: on code"}],
            },
            "Reject",
        ),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 3},
                "results": [{"arm": "wide", "workload": "mean", "ratio": "0.9", "lower": "0.89", "upper": "0.91"}],
            },
            "Reject",
        ),
        ({"verdict": {"outcome": "Inconclusive", "rounds": 8}}, "Inconclusive"),
        ({"verdict": {"outcome": "Error", "reason": "ServerFailed", "message": "the server exited with 2"}}, "Error"),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "Superseded", "message": "it has changed"}]},
            "Ended",
        ),
    ],
)
def test_every_end_has_its_sentence(status: dict[str, Any], outcome: str, says: Says) -> None:
    run = said(latency() | {"status": status, "rounds": []})
    assert run.outcome == outcome
    says(run.sentence)


def test_a_run_that_has_not_begun_has_no_status() -> None:
    run = latency()
    del run["status"]
    assert said(run).outcome == "Measuring"


def test_one_emulated_round_makes_the_run_emulated() -> None:
    run = latency(emulated=False)
    assert said(run).sentence.startswith("Emulated: ")
    for entry in run["rounds"]:
        entry["emulated"] = False
    assert not said(run).emulated
    assert not said(run).sentence.startswith("Emulated: ")


def test_rounds_of_a_run_without_a_cluster_are_counted(says: Says) -> None:
    """One in four, beside three that the cluster measured."""
    manifest = latency()
    manifest["rounds"][0]["imported"] = True
    sentence = said(manifest).sentence
    assert "1 of 4" in sentence
    says(sentence)


def test_a_pool_that_is_to_be_two_is_told_so() -> None:
    run = demo()[0]
    run["status"]["verdict"]["internal"] = {"crossing": "speculate up to 1, not at 8: split the pool by concurrency"}
    assert said(run).advice == "Speculate up to 1, not at 8: split the pool by concurrency"


def test_the_margin_stands_beside_the_noise() -> None:
    run = demo()[0]
    run["status"]["armVerdicts"][0]["margin"] = "0.00614"
    assert dict(costs_table(said(run)))["Noise of a point between rounds"] == "0.27%, margin 0.61% (wide)"


def test_the_head_says_how_fast_on_what_and_when() -> None:
    assert list(key_figures(said(demo()[0]))) == [
        ("Output tokens/s", "167 → 228", "baseline → wide, mean of 4 workloads"),
        ("Hardware", "4 × NVIDIA H200", ""),
        ("Engine", "SGLang 0.5.23+emulated", ""),
        ("Model", "Qwen/Qwen3-Coder-Next", "41afb1561aca"),
        ("Measured", "2026-11-21", "3 rounds, 0.17 GPU-hours"),
    ]


def test_tokens_per_second_are_weighted_as_the_ratio_is() -> None:
    """Otherwise the head would have two speed-ups."""
    run = demo()[0]
    speeds = said(run).speeds
    bounds = said(run).speed_up
    assert bounds
    assert speeds["wide"] / speeds["baseline"] == pytest.approx(bounds.ratio, abs=1e-3)
    run["spec"]["workloads"][0]["weight"] = "100"
    code = {one.arm: one.typical for one in said(run).series if one.workload == "code@1"}
    assert said(run).speeds["wide"] == pytest.approx(code["wide"], rel=0.02)


@pytest.mark.parametrize(
    ("manifest", "named"),
    [
        ({}, "metadata.name"),
        ({"metadata": {"name": "x"}}, "x: spec.pool"),
        (latency() | {"spec": latency()["spec"] | {"arms": [{"name": "wide"}]}}, r"spec.arms\[0\].name"),
        (latency() | {"metadata": {"name": "x"}, "spec": latency()["spec"] | {"workloads": [7]}}, "x"),
    ],
)
def test_what_is_no_run_is_refused_by_name(manifest: dict[str, Any], named: str, says: Says) -> None:
    with pytest.raises(ValueError, match=named) as refused:
        build_report([manifest])
    says(refused.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.836, "5.84"), (9.896, "9.90"), (9.996, "10.0"), (167.2, "167"), (2010.4, "2,010"), (0.05, "0.0500")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_changes_have_a_sign() -> None:
    assert [change(x) for x in (0.0412, -0.22, -0.00001, None)] == ["+4.1 %", "−22.0 %", "±0.0 %", ""]


def test_times_have_the_unit_that_suits_them() -> None:
    assert [duration_words(x) for x in (44.2, 119, 150, 7200, 12000)] == ["44 s", "119 s", "2.5 min", "2.0 h", "3.3 h"]


def test_what_a_terminal_would_obey_is_in_no_report() -> None:
    """A server wrote it once, and `-o -` goes to a terminal; in HTML it would be no XML."""
    run = latency()
    escapes = "\x1b]0;owned\x07\x1b[2J\u202e"
    run["rounds"][0]["replicates"][0]["error"] = f"{escapes}gone"
    run["spec"]["target"]["servedName"] = f"name{escapes}"
    for format in FORMATS.values():
        text = format(build_report([run]))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\u001b|\\u202e", text)
