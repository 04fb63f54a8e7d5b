"""The stories reach every reason there is, and every golden file is told by a story."""

from importlib import import_module
from pathlib import Path

import yaml
from tests.support.stories import STORIES

from paceline.api import Reason


def test_every_reason_is_reached_by_a_story() -> None:
    shown = {
        (condition, " ".join(said.split(":")[0].split()[1:]))
        for file in STORIES.glob("*.yaml")
        for one in yaml.safe_load(file.read_text())
        for condition, said in one.get("conditions", {}).items()
    }
    unreached = {reason for reason in Reason if (reason.value.condition, reason.text) not in shown}
    assert unreached == set()


def test_every_golden_file_has_its_story() -> None:
    modules = [import_module(f"tests.plan.{file.stem}") for file in Path(__file__).parent.glob("test_*.py")]
    stories = {name.removeprefix("test_") for module in modules for name in vars(module)}
    assert {file.stem for file in STORIES.glob("*.yaml")} <= stories
