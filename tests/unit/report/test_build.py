"""What a report says of a run in words: its sentence, its first figures, and what is no run."""

import re
from typing import Any

import pytest
from tests.support.reports import demo, said
from tests.support.runs import latency, throughput

from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.record import from_status, to_status
from paceline.report import FORMATS, build_report
from paceline.report.tables import costs_table
from paceline.report.text import EMULATED_NOTICE, change, duration_words, key_figures, significant


def test_the_examples_have_the_status_that_the_operator_writes() -> None:
    for run in (latency(), throughput(), *demo()):
        assert to_status(from_status(BenchmarkRunStatus, run["status"])) == run["status"]


def test_the_decision_stands_beside_the_speed_up_and_the_worst_workload() -> None:
    run = said(demo()[0])
    assert (run.decision, run.found) == ("Promote wide", "1.37x (1.36–1.37); worst workload chat@1 1.17x (1.16–1.19).")
    assert run.sentence == f"Emulated: Promote wide: {run.found}"


def test_a_run_under_way_says_how_it_stands() -> None:
    run = said(demo()[1])
    assert run.outcome == "Measuring"
    assert run.decision == "No decision yet"
    assert run.found == ("4 rounds so far: narrow 1.03x (1.02–1.03) provisional, wide 1.07x (1.05–1.08) rejected.")


@pytest.mark.parametrize(
    ("status", "outcome", "sentence"),
    [
        ({}, "Measuring", "No decision yet: 0 rounds so far."),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 1},
                "armVerdicts": [{"arm": "wide", "outcome": "rejected", "reason": "NothingAccepted: on code"}],
            },
            "Reject",
            "Keep the baseline: wide: NothingAccepted: on code.",
        ),
        (
            {
                "verdict": {"outcome": "Reject", "rounds": 3},
                "results": [{"arm": "wide", "workload": "mean", "ratio": "0.9", "lower": "0.89", "upper": "0.91"}],
            },
            "Reject",
            "Keep the baseline: wide 0.90x (0.89–0.91).",
        ),
        (
            {"verdict": {"outcome": "Inconclusive", "rounds": 8}},
            "Inconclusive",
            "No decision: after 8 rounds.",
        ),
        (
            {"verdict": {"outcome": "Error", "reason": "ServerFailed", "message": "the server exited with 2"}},
            "Error",
            "Error: ServerFailed: the measurement failed, which says nothing about the candidates: the server exited "
            "with 2",
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "Superseded", "message": "it has changed"}]},
            "Ended",
            "Ended without a verdict: it has changed",
        ),
    ],
)
def test_every_end_has_its_sentence(status: dict[str, Any], outcome: str, sentence: str) -> None:
    run = said(latency() | {"status": status, "rounds": []})
    assert (run.outcome, run.sentence) == (outcome, sentence)


def test_a_run_that_has_not_begun_has_no_status() -> None:
    run = latency()
    del run["status"]
    assert said(run).decision == "No decision yet"


def test_one_emulated_round_makes_the_run_emulated() -> None:
    run = latency(emulated=False)
    assert said(run).sentence.startswith("Emulated: ")
    for entry in run["rounds"]:
        entry["emulated"] = False
    assert not said(run).emulated
    assert said(run).sentence.startswith("Promote wide: ")


def test_rounds_of_a_run_without_a_cluster_are_counted() -> None:
    """One in four, beside three that the cluster measured."""
    manifest = latency()
    manifest["rounds"][0]["imported"] = True
    (run,) = build_report([manifest]).runs
    assert run.sentence.endswith(" 1 of 4 rounds were measured without a cluster.")


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
    ("manifest", "why"),
    [
        ({}, "metadata.name"),
        ({"metadata": {"name": "x"}}, "x: spec.pool is missing"),
        (
            latency() | {"spec": latency()["spec"] | {"arms": [{"name": "wide"}]}},
            r"spec.arms\[0\].name must be baseline",
        ),
        (
            latency()
            | {"rounds": ["what"]}
            | {"metadata": {"name": "x"}, "spec": latency()["spec"] | {"workloads": [7]}},
            "is not as the API server stores a BenchmarkRun",
        ),
    ],
)
def test_what_is_no_run_is_refused_by_name(manifest: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        build_report([manifest])


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


def test_the_mark_says_that_nothing_was_measured() -> None:
    assert re.search(r"no model ran.*no measurements", EMULATED_NOTICE)


def test_what_a_terminal_would_obey_is_in_no_report() -> None:
    """A server wrote it once, and `-o -` goes to a terminal; in HTML it would be no XML."""
    run = latency()
    escapes = "\x1b]0;owned\x07\x1b[2J\u202e"
    run["rounds"][0]["replicates"][0]["error"] = f"{escapes}gone"
    run["spec"]["target"]["servedName"] = f"name{escapes}"
    for format in FORMATS.values():
        text = format(build_report([run]))
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\u001b|\\u202e", text)
