"""What an engine refuses is told where a person finds it in the manifest."""

from copy import deepcopy
from typing import Any

import pytest
import yaml
from tests.unit.render.example import FILE

from paceline import api
from paceline.engines.places import refused

SMALL = {"algorithm": "STANDALONE", "source": "hf://a/b"}
MANIFEST: dict[str, Any] = yaml.safe_load(FILE.read_text())


def refusals(change: dict[str, Any]) -> list[tuple[str, str]]:
    """Rule and path, of the example with the keys of `change` (a dotted path each) replaced."""
    manifest = deepcopy(MANIFEST)
    for path, value in change.items():
        *way, last = path.split(".")
        node: Any = manifest
        for step in way:
            node = node[int(step)] if step.isdigit() else node[step]
        node[last] = value
    return [(one.rule, one.path) for one in refused(api.deployment(manifest), manifest["spec"])]


def test_the_example_is_not_refused() -> None:
    assert refusals({}) == []


@pytest.mark.parametrize(
    ("change", "rule", "path"),
    [
        ({"spec.engine.args": ["--attention-backend=triton", "--bogus"]}, "args-unknown", "spec.engine.args[1]"),
        ({"spec.pools.1.candidates.0.args": ["--page-size=1"]}, "args-compared", "spec.pools[1].candidates[0].args[0]"),
        ({"spec.pools.1.candidates.1.args": ["--page-size=1"]}, "args-compared", "spec.pools[1].candidates[1].args[0]"),
        ({"spec.engine.version": "0.3.6"}, "engine-version", "spec.engine.version"),
        (
            {"spec.pools.0.candidates.0.draft": SMALL, "spec.engine.version": "0.4.5"},
            "algorithm-version",
            "spec.pools[0].candidates[0].draft.algorithm",
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
