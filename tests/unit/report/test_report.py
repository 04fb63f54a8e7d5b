"""`paceline report`: what a person sees on the page."""

import argparse
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.report.runs import latency, lost_round, throughput

from paceline.api.status import BenchmarkRunStatus
from paceline.cli import report
from paceline.cli.report_view import view

VOID = {"meta", "link", "br", "line", "circle", "polyline"}


class Reader(HTMLParser):
    """Text and tags; refuses a document whose tags do not close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def shown(*runs: dict[str, Any]) -> str:
    return Reader(report.page(runs, "qwen3-coder-next")).text


def test_the_examples_have_the_status_that_the_operator_writes() -> None:
    for run in (latency(), throughput()):
        BenchmarkRunStatus.model_validate_json(json.dumps(run["status"]))


def test_every_pool_has_its_verdict_in_a_sentence() -> None:
    text = shown(latency(), throughput())
    assert re.search(r"wide is 1\.3\dx as fast as the baseline \(1\.3\d–1\.3\d\), shown in 3 rounds\.", text)
    assert re.search(r"narrow is 1\.0[34]x as fast as the baseline \(1\.0\d–1\.0\d\), shown in \d rounds\.", text)


def test_a_rejected_candidate_says_which_workload_and_by_how_much() -> None:
    assert re.search(r"wide rejected WorkloadRegressed: terminal 0\.8\d+x .* is below 0\.970x", shown(throughput()))


def test_speed_ups_acceptance_and_provenance_are_there() -> None:
    text = shown(throughput())
    for said in ("terminal@32", "accepts 2.81", "all, by weight", "gpu-0", "GPU-00003", "SGLang 0.5.23", "5f0c9a1b2d"):
        assert said in text
    assert "GPU-hours, 9 server starts" in text or "GPU-hours, 15 server starts" in text
    assert "lmsysorg/sglang:v0.5.23" in text
    assert "hf://Qwen/Qwen3-Coder-Next@a1b2c3d4a1b2" in text


def test_only_what_differs_between_the_arms_is_listed_of_the_servers_arguments() -> None:
    text = shown(throughput())
    assert "numSteps – 5 3" in text
    assert "server says speculative 5/1/6 3/4/8" in text
    assert "attention_backend" not in text


def test_dots_lie_within_their_intervals_and_intervals_within_the_chart() -> None:
    rows = [row for c in view(throughput()).candidates for row in c.rows]
    assert len(rows) == 10
    assert all(0 <= row.left < row.dot < row.right <= 100 for row in rows)


def test_colours_say_what_was_shown_of_each_workload() -> None:
    narrow, wide = view(throughput()).candidates
    assert {row.tone for row in narrow.rows} == {"good"}
    assert [row.label for row in wide.rows if row.tone == "bad"] == ["terminal@32"]


def test_drift_is_drawn_as_a_slope_that_the_arms_share() -> None:
    """The machine of the example gets slower by 0.2 % a round: the last dots lie lower than the first."""
    run = latency()
    for entry in run["status"]["rounds"]:
        for point in entry["points"]:
            point["outputThroughput"] = f"{100 * 0.99 ** entry['round']:.3f}"
    for panel in view(run).panels:
        for line in panel.lines:
            heights = [y for _, y in line.dots]
            assert heights == sorted(heights)
            assert heights[0] < heights[-1]


def test_an_emulated_engine_is_not_to_be_overlooked() -> None:
    banner = "The engine was emulated: these are not measurements"
    real = latency(emulated=False)
    for entry in real["status"]["rounds"]:
        entry["emulated"] = False
    assert banner in shown(latency())
    assert banner not in shown(real)
    assert banner in shown(real, throughput())


def test_what_was_not_used_is_shown_with_its_reason() -> None:
    run = latency()
    run["status"]["rounds"][1]["points"][0] |= {"valid": False, "why": "3 of 6 requests completed"}
    run["status"]["rounds"].append(lost_round(3, "the client fell silent and the wrapper ended the server"))
    text = shown(run)
    assert "3 of 6 requests completed" in text
    assert "4 the client fell silent and the wrapper ended the server" in text


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ({}, "Not decided yet: 0 rounds so far."),
        (
            {"verdict": {"outcome": "Reject", "winner": "", "rounds": 1}},
            "The baseline stays: no candidate does what is asked, shown in 1 round.",
        ),
        (
            {"verdict": {"outcome": "Inconclusive", "winner": "", "rounds": 8}},
            "The baseline stays: 8 rounds did not show enough to decide.",
        ),
        (
            {"verdict": {"outcome": "Error", "winner": "", "rounds": 0, "message": "the server exited with 2"}},
            "because the measurement failed: the server exited with 2",
        ),
        (
            {
                "conditions": [
                    {"type": "Failed", "status": "True", "reason": "Superseded", "message": "the question has changed"}
                ]
            },
            "Ended without a verdict: the question has changed",
        ),
    ],
)
def test_every_end_has_its_sentence(status: dict[str, Any], sentence: str) -> None:
    assert sentence in shown(latency() | {"status": status})


def test_a_run_that_has_not_begun_has_no_status() -> None:
    run = latency()
    del run["status"]
    assert "Not decided yet" in shown(run)


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    html = report.page([latency(), throughput()], "qwen3-coder-next")
    tags = Reader(html).tags
    assert not {tag for tag, _ in tags} & {"script", "img", "iframe", "object", "embed"}
    assert {attributes["href"] for _, attributes in tags if "href" in attributes} == {"data:,"}
    assert "url(" not in html
    assert "@import" not in html


def test_what_a_server_says_is_text_and_never_markup() -> None:
    run = latency()
    run["status"]["rounds"].append(lost_round(3, "<script>alert(1)</script>"))
    html = report.page([run], "<b>title</b>")
    assert "<script>" not in html
    assert "<b>" not in html
    assert "<script>alert(1)</script>" in Reader(html).text


def call(*words: str) -> int:
    parser = argparse.ArgumentParser()
    report.add(parser.add_subparsers())
    args = parser.parse_args(["report", *words])
    return int(args.run(args))


def test_runs_come_from_files_and_from_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = tmp_path / "latency.yaml"
    one.write_text(yaml.safe_dump(latency()), encoding="utf-8")
    other = {"kind": "ConfigMap", "metadata": {"name": "not-ours"}}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"kind": "List", "items": [throughput(), other]})))

    assert call(str(one), "-", "-o", str(tmp_path / "report.html")) == 0
    views = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [attributes["id"] for tag, attributes in views.tags if tag == "section"] == [
        "qwen3-coder-next-latency-5f0c9a1b2d-1",
        "qwen3-coder-next-throughput-5f0c9a1b2d-1",
    ]


def test_without_a_run_there_is_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.json"
    file.write_text('{"kind": "List", "items": []}', encoding="utf-8")
    assert call(str(file), "-o", str(tmp_path / "report.html")) == 1
    assert "no BenchmarkRun in" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_what_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"kind": ', encoding="utf-8")
    assert call(str(broken)) == 1
    assert call(str(tmp_path / "missing.yaml")) == 1
    assert capsys.readouterr().err.count("paceline report: ") == 2
