"""Workloads that name a LoRA adapter: the server has to have loaded it."""

from typing import Any

import pytest
from tests.support.edits import example
from tests.support.messages import Says

from paceline import api
from paceline.engines import Refusal, refusals_of_spec
from paceline.engines.lora import RULE, loaded


def refused(engine: str, version: str, *args: str) -> list[Refusal]:
    manifest: dict[str, Any] = example()
    spec = manifest["spec"]
    spec["engine"] |= {"type": engine, "version": version, "image": "example.com/engine:1", "args": list(args)}
    chain = {"name": "chain", "tree": {"numSteps": 3, "topK": 1, "numDraftTokens": 4}}
    spec["pools"] = [{"name": "a", "replicas": 1, "load": [{"concurrency": [1]}]}]
    spec["candidates"] = [chain]
    spec["benchmark"] = {"datasets": [{"name": "sql", "source": "builtin://code", "adapter": "sql"}]}
    found = refusals_of_spec.refused(api.deployment(manifest), spec)
    return [one for one in found if one.rule == RULE]


@pytest.mark.parametrize(
    ("engine", "version", "args", "loads"),
    [
        ("SGLang", "0.5.23", (), False),
        ("SGLang", "0.5.23", ("--lora-paths", "chat=/models/chat"), False),
        ("SGLang", "0.5.23", ("--lora-paths", "chat=/models/chat", "sql=/models/sql"), True),
        ("SGLang", "0.5.23", ("--lora-paths=sql=/models/sql",), True),
        ("SGLang", "0.5.23", ("--lora-paths", '{"lora_name": "sql", "lora_path": "/models/sql"}'), True),
        ("SGLang", "0.5.17", ("--lora-paths", "sql=/models/sql"), True),
        ("SGLang", "0.5.6", ("--lora-paths", "sql=/models/sql"), False),
        ("vLLM", "0.33.0", ("--lora-modules", "sql=/models/sql"), False),
        ("vLLM", "0.33.0", ("--enable-lora", "--lora-modules", "sql=/models/sql"), True),
    ],
)
def test_an_adapter_has_to_be_loaded(engine: str, version: str, args: tuple[str, ...], loads: bool, says: Says) -> None:
    found = refused(engine, version, *args)
    assert [one.path for one in found] == ([] if loads else ["spec.engine.args"])
    says(*(one.message for one in found))


def test_a_flag_ends_where_the_next_begins() -> None:
    assert loaded(("--lora-paths", "a=/a", "/b", "--port", "1"), "--lora-paths") == ("a", "/b")
