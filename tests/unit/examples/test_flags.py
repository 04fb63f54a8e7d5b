"""Every argv that an example renders is read by a parser with the flags of its engine's release, nothing left over."""

import argparse
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from tests.support.rendered import FILES, argv, arms, example

from paceline import api

LISTS = {"SGLang": "sglang/data/flags", "SGLangJAX": "sglang_jax/data/flags-0.1.0rc0", "vLLM": "vllm/data/flags-0.33.0"}
TYPES = {"int": int, "float": float, "json": json.loads}
PROGRAM = {"SGLang": 3, "SGLangJAX": 4, "vLLM": 2}
"""So many words start the server: python3 -m MODULE, python3 -u -m MODULE, vllm serve."""

EVERY = [
    pytest.param(path.stem, pool, arm, id=f"{path.stem}-{pool}-{arm}")
    for path in FILES
    for pool, arm in arms(path.stem)
]


def parser(engine: str, version: str) -> argparse.ArgumentParser:
    """Of the flag list that was extracted from that release."""
    made = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    if engine == "vLLM":
        made.add_argument("model")
    for flag in rows(engine, version):
        if flag["kind"] == "switch":
            made.add_argument(*flag["names"], action="store_true")
        else:
            many = {"nargs": flag["many"]} if flag.get("many") else {}
            made.add_argument(*flag["names"], type=TYPES.get(flag["kind"], str), choices=flag.get("choices"), **many)
    return made


def rows(engine: str, version: str) -> Iterator[dict[str, Any]]:
    """SGLang's say in which releases they are, and which of their choices: from the first of a span to the last."""
    data = json.loads((resources.files("paceline.engines") / f"{LISTS[engine]}.json").read_text())
    place = {one: number for number, one in enumerate(data.get("releases", ()))}

    def has(spans: list[list[str]]) -> bool:
        return any(place[first] <= place[version] <= place[(last or list(place))[-1]] for first, *last in spans)

    for row in data["flags"]:
        if "in" not in row or has(row["in"]):
            some = [word for word, spans in row.get("sometimes", {}).items() if has(spans)]
            yield {**row, "choices": row["choices"] + some} if some else row


@pytest.mark.parametrize(("name", "pool", "arm"), EVERY)
def test_its_release_has_every_flag(name: str, pool: str, arm: str) -> None:
    engine = api.deployment(example(name)).server.engine
    words = [word.replace("$(LWS_WORKER_INDEX)", "0") for word in argv(name, pool, arm)[PROGRAM[engine.type] :]]
    _, left = parser(engine.type, engine.version).parse_known_args(words)
    assert left == []
