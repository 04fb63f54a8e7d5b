"""Where a candidate stops paying, from runs at one load or at several."""

from collections.abc import Mapping
from typing import Any

import pytest

from paceline.plan.deployment.crossover import crossover
from paceline.plan.objects import Object

SPEC: Mapping[str, Any] = {
    "target": {"source": "hf://a/b"},
    "engine": {"name": "SGLang"},
    "largestConcurrency": 1,
    "arms": [{"name": "baseline"}, {"name": "wide", "tree": {"numSteps": 3}}, {"name": "narrow"}],
}
OTHER_IMAGE = {**SPEC, "engine": {"name": "SGLang", "image": "another"}}
OTHER_LOAD = {**SPEC, "largestConcurrency": 32}
RENAMED = {**SPEC, "arms": [{"name": "baseline"}, {"name": "broad", "tree": {"numSteps": 3}}]}


def run(ratios: Mapping[str, float], spec: Mapping[str, Any] = SPEC, arm: str = "wide", ended: str = "1") -> Object:
    """Workload → ratio, with bounds 3 % on either side."""
    results = [
        {"arm": arm, "workload": load, "ratio": f"{x:.4f}", "lower": f"{x * 0.97:.4f}", "upper": f"{x * 1.03:.4f}"}
        for load, x in ratios.items()
    ]
    conditions = [{"type": "Complete", "status": "True"}]
    return {"spec": spec, "status": {"conditions": conditions, "results": results, "finishedAt": ended}}


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([run({"code@1": 1.25, "code@64": 0.8})], 8.0, id="as far from 1 on either side: half way"),
        pytest.param([run({"code@1": 1.25}), run({"code@64": 0.8}, OTHER_LOAD)], 8.0, id="one run a load"),
        pytest.param([run({"code@1": 1.25}), run({"code@64": 0.8}, RENAMED, "broad")], 8.0, id="under another name"),
        pytest.param([run({"code@1": 1.25}), run({"code@64": 0.8}, OTHER_IMAGE)], None, id="on another server"),
        pytest.param([run({"code@1": 1.25, "code@64": 0.8}, arm="narrow")], None, id="another candidate"),
        pytest.param([run({"code@1": 1.25, "code@64": 1.02})], None, id="not shown slower"),
        pytest.param([run({"code@1": 0.7, "code@64": 0.8})], None, id="never shown faster"),
        pytest.param([run({"code@1": 0.8, "code@64": 1.25})], None, id="faster only above"),
        pytest.param([run({"code@1": 1.5, "chat@1": 1.25 / 1.2, "code@64": 0.8})], 8.0, id="the mean of data sets"),
        pytest.param([run({"code@1": 1.25, "code@8/s": 0.5, "mean": 0.5})], None, id="a rate and a mean are no load"),
        pytest.param([run({"code@1": 1.25, "code@64": 1.3}), run({"code@64": 0.8}, ended="2")], 8.0, id="the latest"),
        pytest.param([run({"code@1": 1.25, "code@8": 1.01, "code@64": 0.8})], 8.0, id="open in between"),
    ],
)
def test_the_load_at_which_both_are_as_fast(runs: list[Object], expected: float | None) -> None:
    assert crossover(SPEC, "wide", runs) == (pytest.approx(expected, rel=0.001) if expected else None)


def test_a_run_that_goes_on_shows_nothing_yet() -> None:
    unfinished = run({"code@1": 1.25, "code@64": 0.8})
    assert crossover(SPEC, "wide", [{**unfinished, "status": {**unfinished["status"], "conditions": []}}]) is None
