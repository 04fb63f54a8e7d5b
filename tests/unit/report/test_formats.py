"""HTML, Markdown and JSON: what is in them, and what can never get in."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.reports import EVIL, GB10, demo, evil, over
from tests.support.runs import latency, throughput

from paceline.report import FORMATS, build_report
from paceline.report.text import EMULATED_NOTICE

VOID = {"meta", "link", "br", "path", "use", "rect"}


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


def page(*runs: dict[str, Any], title: str = "") -> Reader:
    return Reader(FORMATS["html"](build_report(runs, title)))


@pytest.fixture(scope="module")
def shown() -> Reader:
    return page(*demo())


def test_every_section_is_there(shown: Reader) -> None:
    for heading in (
        "Promote wide 1.37x (1.36–1.37); worst workload chat@1 1.17x (1.16–1.19).",
        "Speed-up over the baseline",
        "Outputs",
        "Latency and acceptance",
        "Time to first token",
        "Time per output token",
        "Acceptance length",
        "Rounds",
        "What differs between the arms",
        "Cost and provenance",
    ):
        assert heading in shown.text


def test_what_was_asked_for_stands_beside_what_was_found(shown: Reader) -> None:
    assert "all, by weight 1.357–1.374 1.366x" in shown.text
    assert "> 1.05x" in shown.text
    assert "> 0.97x" in shown.text
    assert "WorkloadRegressed: terminal@32 0.890x (0.871 to 0.909) is below 0.970x" in shown.text


PARITY = {
    **{"identical": 44, "nearTies": 3, "diverged": 1},
    "internal": {"rounds": 3, "samples": 16, "settled": 15, "firstDivergence": 41, "largestGap": "1.70"},
}


def test_what_was_not_compared_is_said(shown: Reader, says: Says) -> None:
    """No page may be read as if outputs were known to be the same."""
    sentence = json.loads(FORMATS["json"](build_report(demo())))["runs"][0]["outputs"]["sentence"]
    assert sentence in shown.text
    assert sentence in FORMATS["md"](build_report(demo()))
    says(sentence)


def test_what_was_compared_is_counted() -> None:
    run = latency()
    run["spec"]["gate"]["parity"] = {"samples": 16, "maxTokens": 128}
    run["status"]["armVerdicts"][0]["parity"] = PARITY
    asked = "the first 16 prompts of code, one after another at temperature 0, at most 128 tokens each"
    for text in (page(run).text, FORMATS["md"](build_report([run]))):
        assert asked in text
        assert "up to 0.25 nats" in text
        assert "not compared" not in text
    assert "wide 3 15 of 16 44 3 1 41 1.70" in page(run).text
    assert "| wide | 3 | 15 (of 16) | 44 | 3 | 1 | 41 | 1.70 |" in FORMATS["md"](build_report([run]))


def test_what_could_not_be_compared_says_why() -> None:
    run = latency()
    run["spec"]["gate"]["parity"] = {"samples": 16}
    run["status"]["armVerdicts"][0]["parity"] = {"rounds": 0, "unknown": "HTTP 400: no logprobs"}
    assert "wide HTTP 400: no logprobs" in page(run).text
    del run["status"]["armVerdicts"][0]["parity"]
    assert "Nothing was compared so far." in page(run).text


def test_charts_have_text_a_name_and_colours_of_the_page(shown: Reader) -> None:
    charts = [attributes for tag, attributes in shown.tags if tag == "svg"]
    assert len(charts) >= 2 * (2 + 4 + 4)
    assert all(chart["role"] == "img" and len(chart["aria-label"] or "") > 20 for chart in charts)
    styles = " ".join(attributes.get("style") or "" for tag, attributes in shown.tags)
    assert "var(--arm1)" in styles
    assert not re.search(r"(fill|stroke): #", styles)
    assert "font-family" not in styles


def test_ids_are_unique(shown: Reader) -> None:
    ids = [attributes["id"] for _, attributes in shown.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_drift_is_told_round_by_round(shown: Reader) -> None:
    labels = [attributes["aria-label"] or "" for tag, attributes in shown.tags if tag == "svg"]
    drawn = next(label for label in labels if label.startswith("swe@1: throughput over rounds"))
    assert re.search(r"baseline round 1 −0\.5 %, round 2 \+0\.4 %, round 3 \+0\.\d %; wide round 1", drawn)


def test_an_invalid_point_is_drawn_with_its_reason() -> None:
    run = demo()[0]
    run["rounds"][1]["points"][0] |= {"valid": False, "why": "3 of 6 requests completed"}
    text = page(run).text
    assert "wide, round 2 " in text
    assert "not used: 3 of 6 requests completed" in text
    assert "Round 2, wide on code@1: 3 of 6 requests completed" in text


def told_by_position() -> dict[str, Any]:
    """Two rounds of code, of three draft tokens; the other workloads' rounds had no room for it."""
    run = latency()
    for entry, shares in zip(run["rounds"], (["0.8", "0.5", "0.1"], ["0.9", "0.7", "0.3"]), strict=False):
        point = next(p for p in entry["points"] if (p["arm"], p["workload"]) == ("wide", "code@1"))
        point["acceptedAt"] = shares
    return run


def test_requests_errors_and_retractions_are_added_up_over_rounds() -> None:
    """Those of a round that was not used, too: 4 rounds of 160 requests, one of them with two errors."""
    run = latency()
    first = next(p for p in run["rounds"][0]["points"] if (p["arm"], p["workload"]) == ("wide", "code@1"))
    first |= {"valid": False, "why": "2 requests failed", "completed": 158, "errors": 2, "retractions": 0}
    (found,) = [one for one in build_report([run]).runs[0].counts if (one.arm, one.workload) == ("wide", "code@1")]
    assert (found.rounds, found.asked, found.completed, found.errors) == (4, 640, 638, 2)
    assert (found.retractions, found.output_tokens) == (0, None)
    assert "| code@1 | wide | 4 | 640 | 638 | 2 | 0 | – | – |" in FORMATS["md"](build_report([run]))
    assert "code@1 wide 4 640 638 2 0 – –" in page(run).text


def test_acceptance_by_position_is_a_table_where_it_is_told() -> None:
    assert (
        "Acceptance by position Workload Arm 1 2 3 code@1 wide 85% 60% 20% Of an arm" in page(told_by_position()).text
    )
    text = FORMATS["md"](build_report([told_by_position()]))
    assert (
        "| Workload | Arm | 1 | 2 | 3 |\n| --- | --- | --: | --: | --: |\n| code@1 | wide | 85% | 60% | 20% |" in text
    )
    (run,) = json.loads(FORMATS["json"](build_report([told_by_position()])))["runs"]
    assert run["positions"] == [
        {"arm": "wide", "workload": "code@1", "accepted": pytest.approx([0.85, 0.6, 0.2])},
    ]
    for form in FORMATS:
        assert "by position" not in FORMATS[form](build_report([latency()])).lower()


def test_the_crossover_is_drawn_where_there_is_one() -> None:
    text = page(over(*GB10)).text
    assert "Over concurrencies Speculate up to 1, not at 8" in text
    assert re.search(r"wide at 8: 0\.854x, 0\.8\d\d–0\.8\d\d", text)
    assert "Over concurrencies" not in page(latency()).text


def test_a_run_that_has_not_begun_is_a_page() -> None:
    run = latency()
    del run["status"]
    assert "Nothing has been compared yet." in page(run).text


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_run_is_the_same_text(form: str) -> None:
    assert FORMATS[form](build_report(demo())) == FORMATS[form](build_report(demo()))


@pytest.mark.parametrize("form", ["html", "md"])
def test_an_emulated_engine_is_not_to_be_overlooked(form: str) -> None:
    real = latency(emulated=False)
    for entry in real["rounds"]:
        entry["emulated"] = False
    assert FORMATS[form](build_report([latency()])).count(EMULATED_NOTICE) >= (2 if form == "html" else 1)
    assert "mulated" not in re.sub(r"<style>.*?</style>", "", FORMATS[form](build_report([real])), flags=re.DOTALL)
    assert EMULATED_NOTICE in FORMATS[form](build_report([real, throughput()]))


def test_every_chart_of_an_emulated_run_is_marked(shown: Reader) -> None:
    assert shown.words.count("EMULATED") == len([tag for tag, _ in shown.tags if tag == "svg"])


def test_the_page_fetches_nothing_and_runs_nothing(shown: Reader) -> None:
    html = FORMATS["html"](build_report(demo()))
    assert not {tag for tag, _ in shown.tags} & {"script", "img", "iframe", "object", "embed", "foreignObject"}
    links = {attributes.get("href") or attributes.get("xlink:href") or "#" for _, attributes in shown.tags}
    assert all(link == "data:," or link.startswith("#") for link in links)
    assert not any(name.startswith("on") for _, attributes in shown.tags for name in attributes)
    assert not re.search(r"url\((?!#)", html)
    assert "@import" not in html
    policy = next(attributes["content"] for tag, attributes in shown.tags if "http-equiv" in attributes)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_what_a_cluster_says_is_text_and_never_markup() -> None:
    found = page(evil(), title=EVIL)
    assert not {tag for tag, _ in found.tags} & {"script", "img"}
    assert "<script>alert(1)</script>" in found.text
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


def test_markdown_has_it_as_text_too() -> None:
    text = FORMATS["md"](build_report([evil()], EVIL))
    assert not re.search(r"(?<!\\)<", text)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} <= {4, 6, 7, 8, 10, 12}
    assert len([line for line in text.splitlines() if line.startswith("# ")]) == 1


def test_markdown_has_the_tables() -> None:
    text = FORMATS["md"](build_report(demo()))
    assert "| wide | terminal@32 | \\> 0.97x (broken) | 0.890x | 0.871–0.909 |" in text
    assert "- wide rejected: WorkloadRegressed: terminal@32" in text
    assert "- Target: hf://Qwen/Qwen3-Coder-Next@41afb1561aca" in text


def test_json_has_the_numbers() -> None:
    found = json.loads(FORMATS["json"](build_report(demo())))
    run = found["runs"][0]
    assert (found["emulated"], run["emulated"], run["outcome"], run["winner"]) == (True, True, "Promote", "wide")
    assert run["speedUp"] == {"ratio": 1.3656, "lower": 1.3572, "upper": 1.3741}
    assert run["candidates"][0]["effects"][0]["threshold"] == 1.05
    assert run["cost"]["gpuSeconds"] == 616
