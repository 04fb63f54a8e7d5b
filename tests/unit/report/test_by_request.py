"""Goodput, speed-ups prompt by prompt, lengths, and throughput over latency: their numbers, and where they stand."""

import json
import re
from typing import Any

import pytest
from tests.support.reports import GB10, said, shared_out
from tests.support.runs import latency

from paceline.report import FORMATS, build_report
from paceline.report.sections import contexts_section, goodput_section, lengths_section, prompts_section


def told(**of: dict[str, Any]) -> dict[str, Any]:
    """A run of four rounds whose points of code@1 say so much more, by arm; two more seconds each round."""
    run = latency()
    run["spec"]["workloads"][0]["slo"] = {"ttft": "500ms", "itl": "50ms"}
    for entry in run["rounds"]:
        seconds = 10 + 2 * entry["round"]
        for point in entry["points"]:
            if point["workload"] == "code@1" and point["arm"] in of:
                rate = point["goodRequests"] / seconds if (point := point | of[point["arm"]]).get("goodRequests") else 0
                found = next(p for p in entry["points"] if (p["workload"], p["arm"]) == ("code@1", point["arm"]))
                found |= point | {
                    "outputTokens": 1000,
                    "outputThroughput": f"{1000 / seconds}",
                    "goodput": f"{rate}",
                    "goodThroughput": f"{10 * rate}",
                }
        entry["inputs"] = [{"workload": "code@1", "mean": "171.5", "p50": 160, "p99": 350}]
    return run


def test_goodput_is_over_all_rounds_those_without_a_good_request_too() -> None:
    run = told(baseline={"asked": 10, "goodRequests": 2}, wide={"asked": 10, "goodRequests": 8})
    first = next(p for p in run["rounds"][0]["points"] if (p["workload"], p["arm"]) == ("code@1", "baseline"))
    first |= {"goodRequests": 0, "goodput": "0", "goodThroughput": "0"}
    base, wide = said(run).goodput
    assert (base.slo, base.good, base.asked) == ("TTFT ≤ 500ms, ITL ≤ 50ms", 6, 40)
    assert base.requests == pytest.approx(6 / (10 + 12 + 14 + 16))
    assert (wide.good, wide.requests, wide.tokens) == (32, pytest.approx(32 / 52), pytest.approx(320 / 52))
    text = [[f"{cell.text} {cell.note}".strip() for cell in row] for row in goodput_section(said(run)).rows]
    assert text == [
        ["code@1", "baseline", "TTFT ≤ 500ms, ITL ≤ 50ms", "15.0% 6 of 40", "0.115", "1.15"],
        ["code@1", "wide", "TTFT ≤ 500ms, ITL ≤ 50ms", "80.0% 32 of 40", "0.615", "6.15"],
    ]


def test_where_a_message_had_no_room_for_the_time_goodput_is_a_share() -> None:
    run = told(wide={"asked": 10, "goodRequests": 8})
    for point in run["rounds"][2]["points"]:
        point.pop("outputThroughput", None)
        point.pop("goodput", None)
    (wide,) = said(run).goodput
    assert (wide.good, wide.asked, wide.requests) == (32, 40, None)


def test_without_an_slo_there_is_no_goodput() -> None:
    run = told(wide={"asked": 10, "goodRequests": 8})
    del run["spec"]["workloads"][0]["slo"]
    assert said(run).goodput == ()
    for form in FORMATS:
        assert "Goodput" not in FORMATS[form](build_report([latency()]))


PROMPTS = {"worstDecile": "0.8", "medianPrompt": "1.3", "bestDecile": "1.9", "slowerPrompts": "0.14"}


def test_the_worst_tenth_of_prompts_stands_in_the_report() -> None:
    run = told(wide=PROMPTS, baseline={})
    assert [[cell.text for cell in row] for row in prompts_section(said(run)).rows] == [
        ["code@1", "wide", "0.80x", "1.30x", "1.90x", "14%"],
    ]
    assert "| code@1 | wide | 0.80x | 1.30x | 1.90x | 14% |" in FORMATS["md"](build_report([run]))
    assert "code@1 wide 0.80x 1.30x 1.90x 14%" in words(FORMATS["html"](build_report([run])))
    (found,) = json.loads(FORMATS["json"](build_report([run])))["runs"][0]["prompts"]
    assert found["worst"] == pytest.approx(0.8)
    assert "prompt by prompt" not in FORMATS["html"](build_report([latency()]))


def test_lengths_stand_by_arm() -> None:
    run = told(wide={"p50Output": 96, "p99Output": 128, "completed": 10}, baseline={"completed": 10})
    rows = [[cell.text for cell in row] for row in lengths_section(said(run)).rows]
    assert rows == [
        ["code@1", "baseline", "172", "160", "350", "100", "–", "–"],
        ["code@1", "wide", "172", "160", "350", "100", "96.0", "128"],
    ]


def test_speeds_stand_by_the_length_of_the_context() -> None:
    """Of four rounds; an arm's speed over the baseline's is of the rounds that both have."""

    def contexts(short: str, long: str) -> dict[str, Any]:
        numbers = {"requests": 5, "meanTTFT": "0.02", "tokensPerChunk": "2.5"}
        return {"contexts": [{"over": 0, "speed": short, **numbers}, {"over": 16384, "speed": long, **numbers}]}

    run = told(baseline=contexts("100", "80"), wide=contexts("150", "40"))
    last = next(p for p in run["rounds"][3]["points"] if (p["workload"], p["arm"]) == ("code@1", "baseline"))
    del last["contexts"]
    rows = [[cell.text for cell in row] for row in contexts_section(said(run)).rows]
    assert rows == [
        ["code@1", "from 0", "baseline", "15", "100", "–", "20.0 ms", "2.50"],
        ["code@1", "from 0", "wide", "20", "150", "1.50x", "20.0 ms", "2.50"],
        ["code@1", "from 16,384", "baseline", "15", "80.0", "–", "20.0 ms", "2.50"],
        ["code@1", "from 16,384", "wide", "20", "40.0", "0.50x", "20.0 ms", "2.50"],
    ]
    assert "Length of the context" not in FORMATS["html"](build_report([latency()]))


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_throughput_over_latency_is_a_line_an_arm() -> None:
    (found,) = said(shared_out(*GB10)).trade_offs
    assert found.dataset == "code"
    assert list(found.lines) == ["baseline", "wide"]
    assert [(load.concurrency, load.per_gpu, load.per_user) for load in found.lines["wide"]] == [
        (1, pytest.approx(35 / 4, rel=1e-2), pytest.approx(35, rel=1e-2)),
        (8, pytest.approx(270 / 4, rel=1e-2), pytest.approx(270 / 8, rel=1e-2)),
    ]
    html = FORMATS["html"](build_report([shared_out(*GB10)]))
    assert "Throughput over latency" in words(html)
    assert re.search(r"wide at 8: 67\.\d tokens/s per GPU, 33\.\d per user", html)


def test_one_load_is_no_line() -> None:
    assert said(latency()).trade_offs == ()
    assert "Throughput over latency" not in FORMATS["html"](build_report([latency()]))


def test_a_load_that_was_not_measured_is_left_out() -> None:
    run = shared_out(*GB10)
    for entry in run["rounds"]:
        entry["points"] = [p for p in entry["points"] if (p["arm"], p["workload"]) != ("wide", "code@8")]
    (found,) = said(run).trade_offs
    assert list(found.lines) == ["baseline"]
