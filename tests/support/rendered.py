"""What `paceline render` makes of an example."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.support import example_files

from paceline import api
from paceline.cli.render import rendered_objects
from paceline.core import BASELINE

EXAMPLES = example_files.EXAMPLES
FILES = example_files.DEPLOYMENTS
DEFAULT = {"name": "chain"}
POD_OF: Mapping[str, Callable[[Any], Any]] = {
    "Deployment": lambda spec: spec["template"],
    "LeaderWorkerSet": lambda spec: spec["leaderWorkerTemplate"]["leaderTemplate"],
}
SNAPSHOT = re.compile(r"/models/hub/models--([^/]+?)--([^/]+)/snapshots/0+")


def example(name: str) -> dict[str, Any]:
    """examples/NAME.yaml."""
    return example_files.ours(EXAMPLES / f"{name}.yaml")


def argv(name: str, pool: str, arm: str) -> list[str]:
    """The server's command."""
    every = rendered_objects(example(name), pool, arm)
    (pod,) = [POD_OF[one["kind"]](one["spec"]) for one in every if one["kind"] in POD_OF]
    command: list[str] = pod["spec"]["containers"][0]["command"]
    return command


def arms(name: str) -> list[tuple[str, str]]:
    """Pool and arm, all that an example has."""
    names = [BASELINE, *(one["name"] for one in example(name)["spec"].get("candidates", (DEFAULT,)))]
    arms_of = {pool.name: {arm.name for arm in pool.arms} for pool in api.deployment(example(name)).pools}
    return [(pool, arm) for pool, arms in arms_of.items() for arm in names if arm in arms]


def readable(argument: str) -> str:
    """A model in the cache by its repository's name."""
    return SNAPSHOT.sub(r"\1/\2", argument)


def flags(words: list[str]) -> dict[str, str]:
    """Flag → value of a command line, "" for none."""
    found, words = {}, [word for argument in words for word in argument.split("=", 1)]
    for word, following in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            value = "" if following.startswith("--") else following
            found[word] = readable(value)
    return found
