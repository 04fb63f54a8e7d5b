"""What `paceline render` makes of an example."""

import re
from typing import Any

from tests.support import example_files

from paceline.cli.render import rendered
from paceline.core import BASELINE

EXAMPLES = example_files.EXAMPLES
FILES = example_files.DEPLOYMENTS
SNAPSHOT = re.compile(r"/models/hub/models--([^/]+?)--([^/]+)/snapshots/0+")


def example(name: str) -> dict[str, Any]:
    """examples/NAME.yaml."""
    return example_files.ours(EXAMPLES / f"{name}.yaml")


def argv(name: str, pool: str, arm: str) -> list[str]:
    """The server's command."""
    (servers,) = [one for one in rendered(example(name), pool, arm) if one["kind"] == "Deployment"]
    command: list[str] = servers["spec"]["template"]["spec"]["containers"][0]["command"]
    return command


def arms(name: str) -> list[tuple[str, str]]:
    """Pool and arm, all that an example has."""
    spec = example(name)["spec"]
    every = [one["name"] for one in spec.get("candidates", ())]
    return [(pool["name"], arm) for pool in spec["pools"] for arm in (BASELINE, *pool.get("candidates", every))]


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
