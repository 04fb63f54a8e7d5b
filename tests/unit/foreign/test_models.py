"""Files of models and of prompts, as a hub or a user's volume has them."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.speculator import speculator
from tests.unit.foreign.values import ANY, FEW, ODD, mangled, refused, said, spoiled

from paceline.core import Source, response_format
from paceline.core.source import FORMS
from paceline.fetching.facts import read_facts, write_facts
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError
from paceline.pods.prompt_file import DatasetError, read_prompts
from paceline.preflight import model_facts
from paceline_emulator.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_FP8

FILES = settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
CONFIGS = (QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_FP8, speculator(), {"text_config": QWEN3_CODER_NEXT, "architectures": []})
HEADER = json.dumps({"__metadata__": {"format": "pt"}, "model.fc.weight": {"dtype": "BF16", "shape": [2, 2]}}).encode()
INDEX = {"metadata": {"total_size": 8}, "weight_map": {"model.fc.weight": "model.safetensors"}}


def safetensors(header: bytes, length: int | None = None) -> bytes:
    return (len(header) if length is None else length).to_bytes(8, "little") + header


@given(
    config=st.sampled_from(CONFIGS).flatmap(spoiled).map(lambda value: said(value).encode())
    | mangled(said(CONFIGS[0]).encode()),
    weights=st.just(safetensors(HEADER))
    | mangled(safetensors(HEADER))
    | st.builds(safetensors, mangled(HEADER), st.none() | st.integers(0, (1 << 64) - 1)),
    index=st.none() | spoiled(INDEX).map(lambda value: said(value).encode()) | mangled(said(INDEX).encode()),
)
@FILES
def test_a_model_has_facts_or_is_refused(tmp_path: Path, config: bytes, weights: bytes, index: bytes | None) -> None:
    for name, content in {
        "config.json": config,
        "model.safetensors": weights,
        "model.safetensors.index.json": index,
    }.items():
        (tmp_path / name).unlink(missing_ok=True)
        if content is not None:
            (tmp_path / name).write_bytes(content)
    with refused(FetchError):
        facts = facts_of("hf://a/b", tmp_path)
        assert read_facts(json.loads(json.dumps(write_facts(facts), allow_nan=False))) == facts


@given(config=st.sampled_from(CONFIGS).flatmap(spoiled))
@settings(FEW, max_examples=200)
def test_a_value_of_another_type_counts_as_absent(config: dict[str, object]) -> None:
    """So no config.json is refused for what it says."""
    model_facts(config, 8, ("model.fc.weight",))


LINES = (
    b'{"messages": [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}], "timestamp": 1}\n'
    b'{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}\n'
    b'{"prompt": "Sort it", "timestamp": "2026-11-22T10:00:00Z", "tools": [{"type": "function", "function": {}}]}\n'
    b'{"turns": ["Why?"], "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}}\n'
)
ENTRIES = [json.loads(line) for line in LINES.splitlines()]
CSV = b'prompt,timestamp\n"Sort ""it""",1\n"[{""role"": ""user"", ""content"": ""Hi""}]",2026-11-22T10:00:00\n'


@pytest.mark.parametrize(
    ("ending", "good"),
    [
        ("jsonl", mangled(LINES) | st.lists(spoiled(ENTRIES[0]) | ANY, max_size=3).map(lambda them: lines(them))),
        ("json", (spoiled(ENTRIES) | st.lists(ANY, max_size=3)).map(lambda value: said(value).encode())),
        ("csv", mangled(CSV)),
        ("parquet", mangled(b"PAR1" + bytes(40) + b"PAR1")),
    ],
)
@given(data=st.data())
@settings(FILES, max_examples=25)
def test_a_file_of_prompts_is_read_or_refused(
    tmp_path: Path, data: st.DataObject, ending: str, good: st.SearchStrategy[bytes]
) -> None:
    file = tmp_path / f"prompts.{ending}"
    file.write_bytes(data.draw(good))
    with refused(DatasetError):
        turns = data.draw(st.sampled_from([1, 3]))
        for one in read_prompts.__wrapped__(file, Source.parse("pvc://ours/prompts.jsonl"), turns).conversations:
            one.body(0).encode()
            one.body(-1).encode()


def lines(entries: list[object]) -> bytes:
    return "\n".join(map(said, entries)).encode()


FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"$ref": "#/$defs/text"}},
            "required": ["a"],
            "$defs": {"text": {"type": "string", "pattern": "^x"}},
        },
    },
}


@given(form=spoiled(FORM) | ANY, answer=ANY.map(said) | st.text() | st.just('{"a": 1, "b": "xy"}'))
@FEW
def test_a_response_format_is_a_problem_or_can_be_held_against_an_answer(form: object, answer: str) -> None:
    if not response_format.problem(form):
        assert isinstance(form, dict)
        response_format.fits(answer, form)


def nested(levels: int, key: str = "not") -> dict[str, object]:
    schema: dict[str, object] = {}
    for _ in range(levels - 1):
        schema = {key: schema}
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}


def test_a_schema_that_is_too_deep_is_a_problem_whoever_asks() -> None:
    """In a spec it is text, so its depth is not bounded where the object is read."""
    assert response_format.problem(nested(response_format.DEEPEST_SCHEMA)) == ""
    for levels in (response_format.DEEPEST_SCHEMA + 1, 400):
        said_of_it = response_format.problem_of_text(json.dumps(nested(levels)))
        assert said_of_it.startswith("json_schema.schema is nested deeper than 50 levels; ")


def test_a_number_that_no_float_can_hold_has_no_form() -> None:
    """The client of a load dies of nothing that a server answers."""
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"multipleOf": 0.1}}}
    assert response_format.problem(form) == ""
    assert not response_format.fits("1" * 4000, form)


@given(text=st.text(max_size=60) | st.sampled_from([f"{form}{odd}" for form in FORMS.values() for odd in ODD]))
@FEW
def test_an_address_is_one_or_none(text: str) -> None:
    with refused(ValueError):
        assert str(Source.parse(text)) == text
