"""Workloads that name a LoRA adapter: the server has to have loaded it."""

from typing import Any

import pytest
from tests.support.edits import example

from paceline import api
from paceline.engines import refusals_of_spec
from paceline.engines.lora import RULE, loaded


def said(engine: str, version: str, *args: str) -> list[str]:
    manifest: dict[str, Any] = example()
    spec = manifest["spec"]
    spec["engine"] |= {"type": engine, "version": version, "image": "example.com/engine:1", "args": list(args)}
    chain = {"name": "chain", "tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}}
    spec["pools"] = [{"name": "a", "replicas": 1, "load": [{"concurrency": [1]}]}]
    spec["candidates"] = [chain]
    spec["benchmark"] = {"datasets": [{"name": "sql", "source": "builtin://code", "adapter": "sql"}]}
    found = refusals_of_spec.refused(api.deployment(manifest), spec)
    return [f"{one.path}: {one.message}" for one in found if one.rule == RULE]


@pytest.mark.parametrize(
    ("engine", "version", "args", "way_out"),
    [
        ("SGLang", "0.5.23", (), "load it, with --lora-paths sql=PATH in engine.args"),
        ("SGLang", "0.5.23", ("--lora-paths", "chat=/models/chat"), "load it, with --lora-paths sql=PATH"),
        ("SGLang", "0.5.23", ("--lora-paths", "chat=/models/chat", "sql=/models/sql"), ""),
        ("SGLang", "0.5.23", ("--lora-paths=sql=/models/sql",), ""),
        ("SGLang", "0.5.23", ("--lora-paths", '{"lora_name": "sql", "lora_path": "/models/sql"}'), ""),
        ("SGLang", "0.5.17", ("--lora-paths", "sql=/models/sql"), ""),
        ("SGLang", "0.5.6", ("--lora-paths", "sql=/models/sql"), "how requests to SGLang 0.5.6 name an adapter: leave"),
        ("vLLM", "0.33.0", ("--lora-modules", "sql=/models/sql"), "add --enable-lora to --lora-modules"),
        ("vLLM", "0.33.0", ("--enable-lora", "--lora-modules", "sql=/models/sql"), ""),
    ],
)
def test_an_adapter_that_no_argument_loads(engine: str, version: str, args: tuple[str, ...], way_out: str) -> None:
    found = said(engine, version, *args)
    assert bool(found) == bool(way_out)
    assert all(one.startswith("spec.engine.args: ") and way_out in one for one in found)


def test_a_flag_ends_where_the_next_begins() -> None:
    assert loaded(("--lora-paths", "a=/a", "/b", "--port", "1"), "--lora-paths") == ("a", "/b")
