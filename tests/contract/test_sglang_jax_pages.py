"""Every page of the emulated sglang-jax against that of the real 0.1.0rc0 (captured on a CPU)."""

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract import answers
from tests.contract.test_sglang_jax import CAPTURES, CHAT, HEAD, PAGES, TARGET, running, speculating
from tests.support.running import Running, model

ANSWERS = {answers.name(row): row for row in answers.rows(CAPTURES / "answers.jsonl")}
FLAGS = ("--served-model-name", "models/target", "--context-length", "2048", "--max-total-tokens", "8192")
GIVEN = {
    "model_path", "tokenizer_path", "device", "port", "dtype", "mem_fraction_static", "max_running_requests",
    "chunked_prefill_size", "max_prefill_tokens", "precompile_token_paddings", "precompile_bs_paddings",
    "decode_log_interval", "watchdog_timeout", "max_req_input_len",
}  # fmt: skip
"""Of the captured server alone."""


@pytest.fixture(scope="module")
def real_flags(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """As the captured one was started."""
    directory = tmp_path_factory.mktemp("jax")
    target = model(directory / "target", TARGET)
    with running(target, directory / "server.log", *FLAGS, "--enable-metrics") as found:
        yield found


@pytest.mark.parametrize("row", ANSWERS.values(), ids=answers.name)
def test_it_answers_as_the_real_one(real_flags: Running, row: answers.Row) -> None:
    answers.compare(real_flags.url, row)


def test_its_state_has_every_key_of_the_real_one(real_flags: Running) -> None:
    """And every argument; of an idle server."""
    ours = real_flags.get("/get_server_info").json
    theirs = json.loads((CAPTURES / "base" / "server_info.json").read_text())
    assert set(ours) == set(theirs)
    assert ours["status"] == theirs["status"] == "ready"
    assert ours["dsa_use_pallas"] is theirs["dsa_use_pallas"] is True
    (state,), (captured,) = ours["internal_states"], theirs["internal_states"]
    assert answers.shape(state) == answers.shape(captured)


def test_arguments_that_nobody_gave_are_those_of_the_real_one(real_flags: Running) -> None:
    ours = real_flags.get("/get_server_info").json
    theirs = json.loads((CAPTURES / "base" / "server_info.json").read_text())
    differing = {name for name in theirs if ours[name] != theirs[name]}
    assert differing <= {*GIVEN, "internal_states", "version"}


def test_a_flush_tells_why_it_is_refused(real_flags: Running) -> None:
    captured = json.loads((CAPTURES / "flush_busy.json").read_text())
    asking = threading.Thread(target=lambda: real_flags.post("/v1/chat/completions", {**CHAT, "max_tokens": 300}))
    asking.start()
    deadline = time.monotonic() + answers.PATIENCE
    while not real_flags.get("/get_server_info").json["internal_states"][0]["running_batch_size"]:
        assert time.monotonic() < deadline
    status, kind, text = answers.asked(real_flags.url, captured)
    asking.join()
    assert (status, kind) == (captured["status"], captured["type"])
    assert answers.worded(text) == answers.worded(captured["text"])


FORM = {"type": "json_object"}
TOOLS = [{"type": "function", "function": {"name": "search"}}]


def test_a_form_is_kept_until_it_speculates(tmp_path: Path, log: Path, real_flags: Running) -> None:
    """As the source has it (managers/scheduler.py:1416, speculative/overlap_utils.py:35)."""
    target, head = model(tmp_path / "target", TARGET), model(tmp_path / "head", HEAD)
    asked = {**CHAT, "response_format": FORM, "max_tokens": 400, "ignore_eos": False}
    with running(target, log, *speculating(head), *PAGES) as speculates:
        said = [one.post("/v1/chat/completions", asked).json for one in (real_flags, speculates)]
    texts = [one["choices"][0]["message"]["content"] for one in said]
    assert isinstance(json.loads(texts[0]), dict)
    assert not texts[1].startswith("{")


@pytest.mark.parametrize(("choice", "status"), [({}, 500), ({"tool_choice": "none"}, 200)])
def test_tools_need_a_parser(real_flags: Running, choice: dict[str, str], status: int) -> None:
    """function_call/function_call_parser.py:45."""
    answer = real_flags.post("/v1/chat/completions", {**CHAT, "tools": TOOLS, **choice})
    assert answer.status == status
    assert status == 200 or answer.json["message"] == "Internal server error: Unsupported tool_call_parser: None"


@pytest.mark.parametrize("arm", ["base", "eagle3"])
def test_its_log_begins_as_that_of_the_real_one(tmp_path: Path, log: Path, arm: str) -> None:
    """From the moment it listens: it warms itself up, and answers /health meanwhile."""
    target, head = model(tmp_path / "target", TARGET), model(tmp_path / "head", HEAD)
    with running(target, log, *(speculating(head) if arm == "eagle3" else ()), *PAGES):
        ours = kinds(log.read_text())
    real = kinds((CAPTURES / arm / "start.log").read_text())
    assert ours[: len(real)] == real


def kinds(log: str) -> list[str]:
    """The lines of steps, and the last of the start: without numbers, and without what asks."""
    said = [re.sub(r"^\[[^]]*\] ", "", line) for line in log.splitlines()]
    told = [line for line in said if re.match(r"(Prefill|Decode) batch\.|The server is fired up", line)]
    return [re.sub(r"-?\d+(\.\d+)?", "0", line) for line in told]


def test_a_request_has_a_line_as_the_real_one_writes_it(real_flags: Running) -> None:
    real_flags.get("/nowhere")
    line = next(line for line in real_flags.log.read_text().splitlines() if "/nowhere" in line)
    assert re.fullmatch(r'\[[^]]+\] INFO:     127\.0\.0\.1:\d+ - "GET /nowhere HTTP/1\.1" 404 Not Found', line)
