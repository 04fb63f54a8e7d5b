"""The recipes of docs/automation.md for `kubectl wait`, at a real API server, on the operator's statuses."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.apiserver import Running

ROOT = Path(__file__).parents[2]
NAME = "qwen3-coder-next"
TEXT = (ROOT / "docs" / "automation.md").read_text().replace("\\\n", " ")
RECIPES = {
    re.split('condition=|type=="', recipe)[1].split(" ")[0].split('"')[0]: shlex.split(recipe)[1:]
    for recipe in re.findall(r"(?m)^    (kubectl wait specdep.*)$", TEXT)
    if "pools[" not in recipe
}
"""What each waits for: a condition, or Measuring for the end of all runs. Of one pool: tests/api/test_crds.py."""

PROMOTED = {"Ready": "True Serving", "Measuring": "False NothingToMeasure", "Decided": "True AllDecided"}
CASES = {
    "measuring": ({"Ready": "True Serving", "Measuring": "True Measuring", "Decided": "False Undecided"}, {"Ready"}),
    "promoted": ({**PROMOTED, "Promoted": "True AllPromoted"}, {"Ready", "Measuring", "Decided", "Promoted"}),
    "the baseline is faster": ({**PROMOTED, "Promoted": "False BaselineFaster"}, {"Ready", "Measuring", "Decided"}),
    "no verdict": (
        {**PROMOTED, "Decided": "False Inconclusive", "Promoted": "False NotDecided"},
        {"Ready", "Measuring"},
    ),
    "rolled out": (
        {**PROMOTED, "Ready": "False ServersStarting", "Promoted": "False Promoting"},
        {"Measuring", "Decided"},
    ),
}


@pytest.fixture(scope="module")
def deployed(apiserver: Running) -> Iterator[Running]:
    manifest = yaml.safe_load((ROOT / "examples" / f"{NAME}.yaml").read_text())
    apiserver.kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", given=manifest)
    yield apiserver
    apiserver.kubectl("delete", "specdep", NAME)


def seen(apiserver: Running, conditions: dict[str, str]) -> None:
    """The status of the present generation."""
    found = json.loads(apiserver.kubectl("get", "specdep", NAME, "-o", "json").stdout)
    of = {"observedGeneration": found["metadata"]["generation"]}
    more = {"message": "so", "lastTransitionTime": "2026-11-22T10:00:00Z", **of}
    said = {kind: dict(zip(("status", "reason"), each.split(), strict=True)) for kind, each in conditions.items()}
    status = {**of, "conditions": [{"type": kind, **each, **more} for kind, each in said.items()]}
    apiserver.kubectl(
        "patch", "specdep", NAME, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status})
    )


def returning(apiserver: Running) -> set[str]:
    """The recipes that return at once."""
    found = set()
    for goal, recipe in RECIPES.items():
        arguments = [re.sub("timeout=.*", "timeout=0s", word).replace("NAME", NAME) for word in recipe]
        if not apiserver.kubectl(*arguments, check=False).returncode:
            found.add(goal)
    return found


def test_there_is_a_recipe_for_each() -> None:
    assert RECIPES.keys() == {"Ready", "Decided", "Promoted", "Measuring"}


@pytest.mark.parametrize("case", CASES)
def test_it_returns_when_that_is_so_and_not_before(deployed: Running, case: str) -> None:
    conditions, goals = CASES[case]
    seen(deployed, conditions)
    assert returning(deployed) == goals


def test_none_returns_for_what_an_earlier_spec_came_to(deployed: Running) -> None:
    """But for the last one, as docs/automation.md says: a path in JSON has no generation."""
    seen(deployed, {**PROMOTED, "Promoted": "True AllPromoted"})
    deployed.kubectl("patch", "specdep", NAME, "--type=merge", "--patch", '{"spec": {"suspend": true}}')
    assert returning(deployed) == {"Measuring"}
