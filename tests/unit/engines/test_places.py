"""What an engine refuses is told where a person finds it in the manifest."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.support.example import FILE, run

from paceline import api
from paceline.engines.refusals_of_spec import in_pool, refused

PINNED = ["--attention-backend=triton", "--mem-fraction-static=0.85"]
SECOND = "spec.candidates"
SMALL = {"algorithm": "STANDALONE", "source": "hf://a/b"}
MANIFEST: dict[str, Any] = yaml.safe_load(FILE.read_text())


def refusals(change: dict[str, Any]) -> list[tuple[str, str]]:
    """EngineRule and path, of the example with the keys of `change` (a dotted path each) replaced."""
    manifest = deepcopy(MANIFEST)
    for path, value in change.items():
        *way, last = path.split(".")
        node: Any = manifest
        for step in way:
            node = node[int(step)] if step.isdigit() else node[step]
        node[last] = value
    return [(refusal.rule, refusal.path) for refusal in refused(api.deployment(manifest), manifest["spec"])]


def test_the_example_is_not_refused() -> None:
    assert refusals({}) == []


@pytest.mark.parametrize(
    ("change", "rule", "path"),
    [
        ({"spec.engine.args": [*PINNED, "--bogus"]}, "args-unknown", "spec.engine.args[2]"),
        ({f"{SECOND}.0.args": ["--page-size=1"]}, "args-different", "spec.candidates[0].args[0]"),
        ({f"{SECOND}.1.args": ["--page-size=1"]}, "args-different", "spec.candidates[1].args[0]"),
        ({"spec.engine.version": "0.3.6"}, "engine-version", "spec.engine.version"),
        (
            {"spec.engine.env": [{"name": "SGLANG_SIMULATE_ACC_LEN", "value": "4"}]},
            "simulated-acceptance",
            "spec.engine.env[0].name",
        ),
        (
            {"spec.engine.args": [*MANIFEST["spec"]["engine"]["args"], "--max-running-requests=4"]},
            "requests-fit",
            f"spec.engine.args[{len(MANIFEST['spec']['engine']['args'])}]",
        ),
        (
            {"spec.candidates.0.draft": SMALL, "spec.engine.version": "0.4.5"},
            "algorithm-version",
            "spec.candidates[0].draft.algorithm",
        ),
        (
            {"spec.draft": SMALL, "spec.engine.version": "0.4.5"},
            "algorithm-version",
            "spec.draft.algorithm",
        ),
    ],
)  # fmt: skip
def test_a_path_is_the_persons(change: dict[str, Any], rule: str, path: str) -> None:
    """Candidates are counted as they are written, whatever their order in a run."""
    assert refusals(change) == [(rule, path)]


def test_a_runs_own_loads_and_environment_are_looked_at() -> None:
    spec = run()
    env = ({"name": "SIMULATE_ACC_LEN", "value": "4"},)
    engine = replace(spec.server.engine, env=env, args=(*spec.server.engine.args, "--context-length=512"))
    refusals = refused(replace(spec, server=replace(spec.server, engine=engine)), {})
    assert [refusal.rule for refusal in refusals] == ["simulated-acceptance", "context-fits"]


@pytest.mark.parametrize(
    ("below", "path"), [("draft.source", "spec.draft.source"), ("tree.numSteps", "spec.pools[0].search.tree.numSteps")]
)
def test_a_tree_that_a_search_may_find_is_written_nowhere(below: str, path: str) -> None:
    """What is wrong with its head is wrong with the spec's; the rest is of the search."""
    written = {"pools": [{"name": "latency", "search": {}}], "candidates": [{"name": "wide"}]}
    assert in_pool(written, "latency")("tree-3-4-8", below) == path
    assert in_pool(written, "latency")("wide", "tree.topK") == "spec.candidates[0].tree.topK"
