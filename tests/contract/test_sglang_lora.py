"""Adapters, chats, tools and forms of answers: the emulated SGLang beside a capture of the real 0.5.23, whose draft is
an EAGLE3 head and whose adapter is called style."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract import answers
from tests.contract.test_surface import families
from tests.support.running import Running, emulated, events, refused, tree

from paceline.engines import ENGINES

CAPTURES = Path(__file__).parent / "captures" / "lora"
ROWS = {answers.name(row): row for row in answers.rows(CAPTURES / "answers.jsonl")}
ENDED_BY_ITSELF = {"object", "spec_details", "spec_details_stream", "adapter_bare"}
"""Within 24 tokens, of which the emulator's answers have more: they are compared in other ways."""
REFUSED_IN_A_STREAM = "refused_keyword_stream"


@pytest.fixture(scope="module")
def server(target: str, head: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    flags = ("--served-model-name", "big", "--lora-paths", "style=models/traffic/adapter")
    with emulated(target, tmp_path_factory.mktemp("lora") / "log", *flags, *tree(head, 3, 1, 4)) as running:
        yield running


@pytest.mark.parametrize("name", sorted(set(ROWS) - ENDED_BY_ITSELF - {REFUSED_IN_A_STREAM}))
def test_it_answers_as_the_real_one(server: Running, name: str) -> None:
    answers.compare(server.url, ROWS[name])


def test_a_schema_whose_keyword_would_be_ignored_is_refused_after_the_status(server: Running) -> None:
    row = ROWS[REFUSED_IN_A_STREAM]
    status, kind, text = answers.asked(server.url, row)
    assert (status, kind) == (row["status"], row["type"])
    assert text.endswith("data: [DONE]\n\n")
    ours, real = events(text), row["events"][:-1]
    assert ours[0] == real[0]
    assert [answers.shape(one) for one in ours] == [answers.shape(one) for one in real]


def test_what_drafts_came_to_is_told_as_the_real_one_tells_it(server: Running) -> None:
    whole = ROWS["spec_details"]
    ours = json.loads(answers.asked(server.url, whole)[2])
    assert answers.shape(ours["sglext"]) == answers.shape(whole["json"]["sglext"])
    streamed = ROWS["spec_details_stream"]
    found = [told(each) for each in (events(answers.asked(server.url, streamed)[2]), streamed["events"][:-1])]
    assert answers.shape(found[0]) == answers.shape(found[1])


def told(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    (one,) = [chunk for chunk in chunks if "sglext" in chunk]
    return one


def test_paceline_reads_the_real_ones_histogram() -> None:
    """17 of its 18 verify calls accepted nothing, and one a token."""
    asked = ENGINES["SGLang"].probe("0.5.23").histogram
    assert asked
    assert asked.read(ROWS["spec_details"]["json"]) == asked.read(told(ROWS["spec_details_stream"]["events"][:-1]))
    assert asked.read(ROWS["spec_details"]["json"]) == (17, 1)


def test_an_adapter_named_without_the_model_is_the_model(server: Running) -> None:
    """As vLLM names one. The real one answered word for word what it answers without: hence SERVED:ADAPTER."""
    plain, bare, style = (
        ROWS[name]["json"]["choices"][0]["message"] for name in ("spec_details", "adapter_bare", "adapter")
    )
    assert bare == plain != style
    assert answers.asked(server.url, ROWS["adapter_bare"])[0] == 200
    name = ENGINES["SGLang"].probe("0.5.23").adapter
    assert name
    assert name("big", "style") == ROWS["adapter"]["body"]["model"] == ROWS["adapter"]["json"]["model"]


def test_it_says_of_its_adapters_what_the_real_one_says(server: Running) -> None:
    """But for the backend, which was given, and an adapter's id, which is of its path."""
    real, ours = json.loads((CAPTURES / "server_info.json").read_text()), server.get("/server_info").json
    for said, captured in ((ours, real), (ours["internal_states"][0], real["internal_states"][0])):
        for key in set(captured) - {"lora_backend", "internal_states"}:
            assert without_ids(said[key]) == without_ids(captured[key]), key


def without_ids(value: Any) -> Any:
    return [{**one, "lora_id": len(one["lora_id"])} for one in value] if isinstance(value, list) else value


def test_metrics_of_adapters_and_forms_have_the_same_names_types_and_labels(server: Running) -> None:
    answers.asked(server.url, ROWS["form"])
    real, ours = families((CAPTURES / "metrics.txt").read_text()), families(server.get("/metrics").text)
    assert {name: ours[name] for name in real} == real


def test_a_draft_model_beside_an_adapter_is_refused_as_by_the_real_one(target: str, head: str, tmp_path: Path) -> None:
    """Paceline refuses it with the spec (the rule `lora` of engines/sglang/features.py)."""
    flags = ("--lora-paths", "style=models/traffic/adapter", *tree(head, 3, 1, 4, "STANDALONE"))
    code, log = refused(target, tmp_path / "log", *flags)
    real = (CAPTURES / "refused_standalone.log").read_text()
    assert (code, log.splitlines()[-1]) == (1, real.splitlines()[-1])
