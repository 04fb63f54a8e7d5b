"""Input that is too large, or means harm, ends in a sentence about itself; what is beside it goes on."""

import json
import time
from typing import Any

import pytest
from tests.support import admitted
from tests.support.edits import example
from tests.support.runs import latency
from tests.support.stories import measuring
from tests.support.too_much import candidates, with_argument
from tests.support.world import World

from paceline.cli.validate import wrong
from paceline.evidence.result_log import PREFIX
from paceline.report import FORMATS, build_report

LONGEST = 4096
EMPTY = PREFIX + "0" * LONGEST
GARBAGE = ("\x00" * LONGEST, "x" * LONGEST, EMPTY, "<script>alert(1)</script>", "[" * LONGEST)


@pytest.mark.parametrize("message", GARBAGE, ids=range(len(GARBAGE)))
def test_a_round_that_leaves_garbage_is_lost_and_tried_again(message: str) -> None:
    world = World()
    measuring(world, "latency")
    world.round_dies("latency", 0, message)
    (run,) = world.runs("latency")
    (lost,) = run["rounds"]
    assert 0 < len(lost["error"]) <= LONGEST
    assert lost["error"].isprintable()
    admitted.check("BenchmarkRun", json.loads(json.dumps(run["status"])))
    world.wait(10)
    assert world.under_way("round"), "another try, which counts"
    world.round_ends()
    (run,) = world.runs("latency")
    assert [entry.get("error", "") == "" for entry in run["rounds"]] == [False, True]


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def with_template(template: dict[str, Any]) -> dict[str, Any]:
    manifest: dict[str, Any] = example()
    manifest["spec"]["engine"]["podTemplate"] = template
    return manifest


def named(name: str) -> dict[str, Any]:
    manifest: dict[str, Any] = example()
    manifest["spec"]["pools"][0]["name"] = name
    return manifest


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (candidates(10_000), "spec.candidates: "),
        (with_argument("--served-model-name=" + "x" * (1 << 20)), "spec.engine.args[0]: "),
        (with_template(deep(90)), "spec.engine.podTemplate"),
        (named("<img src=x onerror=alert(1)>"), "spec.pools[0].name: "),
        (named("\u202epool"), "spec.pools[0].name: "),
        (named("ñandú"), "spec.pools[0].name: "),
    ],
    ids=["10,000 candidates", "1 MB", "deep", "HTML", "right to left", "letters"],
)
def test_a_spec_beyond_the_limits_is_refused_by_its_field(manifest: dict[str, Any], says: str) -> None:
    told = "; ".join(map(str, wrong(manifest)))
    assert says in told
    assert len(told) < 2000


def of_points(points: int) -> dict[str, Any]:
    run: dict[str, Any] = latency()
    one = run["rounds"][0]
    rounds = points // len(one["points"])
    run["rounds"] = [{**one, "round": number, "job": f"job-{number}"} for number in range(rounds)]
    return run


def test_a_run_of_ten_thousand_points_is_reported_in_proportion() -> None:
    """A gate has at most fifty looks, a file any number of rounds: its page grows with it, and no faster."""
    seconds = list[float]()
    for points in (1_000, 10_000):
        run, began = of_points(points), time.process_time()
        told = build_report([run])
        pages = {form: write(told) for form, write in FORMATS.items()}
        seconds.append(time.process_time() - began)
        assert len(json.loads(pages["json"])["runs"]) == 1
        assert len(pages["md"]) < 10_000, "rounds are drawn, and no table has one each"
        assert len(pages["html"]) < 2 * len(json.dumps(run)) + 200_000
    assert seconds[1] < 25 * seconds[0]
