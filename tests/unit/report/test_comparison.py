"""Two runs of one question: which may be compared, what is said of them, and what is not computed."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.pages import compared, evil_comparison, later, releases
from tests.support.reports import demo, said
from tests.support.runs import latency
from tests.unit.report.test_formats import Reader
from tests.unit.report.test_search import ended

from paceline.report import FORMATS, Report, comparison
from paceline.report.comparison_model import Comparison, Moved

Run = dict[str, Any]


def of(report: Report) -> Comparison:
    assert report.comparison
    return report.comparison


def test_a_head_that_gives_a_tenth_less_is_said_to() -> None:
    found = of(compared(wide=0.9))
    assert found.moved == {"wide": Moved.FELL}
    assert found.heading == "wide's speed-up fell from 1.36x to 1.23x"
    assert found.sentence == "wide: a change of −10.8 % to −9.2 %."
    assert [row.workload for row in found.speed_ups] == ["mean", "code@1", "swe@1", "terminal@1", "chat@1"]


def test_a_release_that_is_a_tenth_slower_with_and_without_speculation_changes_no_speed_up() -> None:
    """The candidate's own tokens per second fell, too, and nothing is made of that."""
    found = of(compared(wide=0.9, baseline=0.9))
    assert found.moved == {"wide": Moved.OPEN}
    assert found.heading == "no change of wide's speed-up is shown (from 1.36x to 1.36x)"
    slow = next(row for row in found.absolute if (row.arm, row.workload) == ("wide", "code@1"))
    assert slow.first
    assert slow.second
    assert slow.second.typical == pytest.approx(0.9 * slow.first.typical, rel=1e-4)


def test_of_a_run_without_a_round_nothing_is_shown_and_nothing_is_said_of_its_model() -> None:
    """It waits, or its servers never started: that no model ran is not known."""
    then, now = latency(), later(latency())
    del now["status"], now["rounds"]
    found = of(comparison(then, now))
    assert found.heading == "nothing is shown of wide: the second run has 0 complete rounds of it"


def test_a_workload_that_goes_another_way_than_the_mean_is_named() -> None:
    def slower_at_chat(run: Run) -> None:
        for entry in run["rounds"]:
            point = next(p for p in entry["points"] if (p["arm"], p["workload"]) == ("wide", "chat@1"))
            point["steadyThroughput"] = f"{0.7 * float(point['steadyThroughput'])}"

    assert "Of single workloads: wide on chat@1 fell." in of(compared(slower_at_chat, wide=1.2)).sentence


def test_each_ratio_is_that_of_its_own_run() -> None:
    """To the digits of status."""
    then, _ = runs = (latency(), later(latency(), wide=0.9))
    (candidate,) = said(then).candidates
    rows = {row.workload: row.first for row in of(comparison(*runs)).speed_ups}
    for effect in candidate.effects:
        own = rows[effect.workload]
        assert own
        assert (own.ratio, own.lower, own.upper) == pytest.approx(
            (effect.bounds.ratio, effect.bounds.lower, effect.bounds.upper), abs=6e-5
        )


def test_what_was_recorded_on_two_images() -> None:
    """On a busy machine speeds show little; acceptance counts tokens, and shows what happened."""
    found = of(comparison(*releases()))
    assert [(row.workload, row.moved) for row in found.acceptance] == [
        ("code@1", Moved.FELL),
        ("chat@1", Moved.FELL),
    ]
    assert {row.workload: row.moved for row in found.speed_ups} == {
        "mean": Moved.FELL,
        "code@1": Moved.FELL,
        "chat@1": Moved.OPEN,
    }
    assert [row.name for row in found.differs] == ["Image", "Started"]


def test_one_round_is_no_comparison_and_says_which_run_it_is_of() -> None:
    def cut(run: Run) -> None:
        run["rounds"] = run["rounds"][:1]

    found = of(compared(cut))
    assert found.heading == "nothing is shown of wide: the second run has 1 complete round of it"
    assert all(row.change is None for row in found.speed_ups)


def test_what_differs_between_the_runs_is_listed() -> None:
    def elsewhere(run: Run) -> None:
        run["status"]["node"] = "gpu-7"
        for entry in run["rounds"]:
            entry["node"] = "gpu-7"
            for replicate in entry["replicates"]:
                replicate["resolved"]["attention_backend"] = "fa3"
                if replicate["arm"] == "wide":
                    replicate["resolved"]["draft_backend"] = "new"

    found = of(compared(elsewhere))
    assert {(row.name, row.first, row.second) for row in (*found.differs, *found.resolved)} == {
        ("Engine", "SGLang 0.5.23", "SGLang 0.5.24"),
        ("Image", "lmsysorg/sglang:v0.5.23", "lmsysorg/sglang:v0.5.24"),
        ("Node", "gpu-0", "gpu-7"),
        ("attention_backend", "triton", "fa3"),
        ("wide: draft_backend", "", "new"),
    }


def shorter(run: Run) -> None:
    run["spec"]["workloads"][0]["maxTokens"] = 24


def deeper(run: Run) -> None:
    run["spec"]["arms"][1]["tree"]["numSteps"] = 4


def other_args(run: Run) -> None:
    run["spec"]["engine"]["args"] = ["--attention-backend=fa3", "--mem-fraction-static=0.85"]


def other_gate(run: Run) -> None:
    run["spec"]["gate"]["minImprovement"] = "2%"


def a_sweep(run: Run) -> None:
    run["spec"]["sweep"] = {"rounds": 8}
    del run["spec"]["gate"]


def real(run: Run) -> None:
    run["status"]["emulated"] = False
    for entry in run["rounds"]:
        entry["emulated"] = False


def judged_again(run: Run) -> None:
    for entry in run["rounds"]:
        entry["run"] = latency()["metadata"]["name"]


def other_prompts(run: Run) -> None:
    run["rounds"][0]["datasets"] = {"code": "b" * 12}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (shorter, "workload code@1: maxTokens changed: 96 to 24"),
        (deeper, "candidate wide: tree.numSteps changed: 3 to 4"),
        (other_args, "engine.args changed: --attention-backend"),
        (other_gate, "gate.minImprovement changed: 5% to 2%"),
        (a_sweep, "purpose changed"),
        (real, "is emulated and the other is not"),
        (judged_again, "judge the same rounds, measured by qwen3-coder-next-latency-5f0c9a1b2d-1"),
        (other_prompts, "the prompts of code are another file: sha256 aaaaaaaaaaaa and bbbbbbbbbbbb"),
    ],
)
def test_another_question_is_refused_with_what_differs(change: Callable[[Run], None], why: str) -> None:
    then = latency()
    then["rounds"][0]["datasets"] = {"code": "a" * 12}
    now = later(then)
    change(now)
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        comparison(then, now)


def test_neither_a_run_and_itself_nor_a_search_is_compared() -> None:
    with pytest.raises(ValueError, match="is the same run twice"):
        comparison(latency(), latency())
    with pytest.raises(ValueError, match="a search ranks by estimates"):
        comparison(ended(), latency())


def test_the_earlier_run_is_the_one_compared_against() -> None:
    then, now = latency(), later(latency())
    then["status"]["startTime"], now["status"]["startTime"] = "2026-11-01T10:00:00Z", "2026-11-02T10:00:00Z"
    assert comparison(then, now)
    with pytest.raises(ValueError, match=r"began after .*: name the earlier one with --against"):
        comparison(now, then)


def test_pipelines_read_whether_it_moved() -> None:
    told = json.loads(FORMATS["json"](compared(wide=0.9)))["comparison"]
    assert told["moved"] == {"wide": "fell"}
    mean = told["speedUps"][0]
    assert mean["change"]["upper"] < 1 < mean["second"]["lower"] < mean["first"]["lower"]
    assert not {"change", "ratio"} & set(told["absolute"][0])


def test_the_page_and_markdown_say_the_same_and_mark_it() -> None:
    report = compared(wide=0.9)
    page = Reader(FORMATS["html"](report))
    for text in (page.text, FORMATS["md"](report)):
        assert re.search(r"Emulated:? wide's speed-up fell from 1\.36x to 1\.23x", text)
        assert "these columns may be read and not be subtracted" in text
        assert "no interval says" in text
    targets = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = {str(attributes["href"])[1:] for tag, attributes in page.tags if tag == "a"}
    assert links == {"run-1", "run-2"}
    assert links <= targets


def test_the_runs_of_the_demo_ask_two_questions() -> None:
    with pytest.raises(ValueError, match="candidate narrow was added"):
        comparison(*demo())


def test_no_text_of_a_run_becomes_markup() -> None:
    report = evil_comparison()
    assert not {"script", "img"} & {tag for tag, _ in Reader(FORMATS["html"](report)).tags}
    assert not re.search(r"(?<!\\)<", FORMATS["md"](report))
