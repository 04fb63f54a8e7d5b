"""Tables of depths by batch size: what SGLang's own code makes of them (dev/sglang/try_schedules.py), the emulator, and
what the operator asks for and refuses."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.running import Running
from tests.support.running import emulated as started
from tests.unit.engines.sglang.servers import BASE, arm, server

from paceline.core import Depth
from paceline.engines import ENGINES
from paceline_emulator import depth, flags, resolve, settings

CAPTURES = Path(__file__).parent / "captures"
LOADS = [json.loads(line) for line in (CAPTURES / "schedule_loads.jsonl").read_text().splitlines()]
FALLING = {1: 3, 3: 1, 5: 0}
"""The table of that server."""
ROWS = [json.loads(line) for line in (CAPTURES / "schedules.jsonl").read_text().splitlines()]
NEWEST = "0.5.23"
RESOLVED = [row for row in ROWS if "depths" not in row]
DEPTHS = [row for row in ROWS if "depths" in row]
STEPS = 60
"""Between the two depths of a row."""
SGLANG = ENGINES["SGLang"]


def written(row: dict[str, Any], folder: Path) -> str:
    file = folder / "table.json"
    if row["file"] is not None:
        file.write_text(row["file"])
    return str(file)


def emulated(row: dict[str, Any], target: str, head: str, folder: Path) -> dict[str, Any]:
    given = {"speculative_algorithm": "EAGLE3", **row["args"]}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    adaptive = ("--speculative-adaptive", "--speculative-adaptive-config", written(row, folder))
    argv = ["--model-path", target, "--speculative-draft-model-path", head, *adaptive, *words]
    told = settings.read({"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"})
    return dict(resolve.resolve(flags.parse(argv), told, lambda _: None).args)


@pytest.mark.parametrize("row", [row for row in RESOLVED if row["release"] == NEWEST], ids=str)
def test_the_emulator_resolves_as_sglang(row: dict[str, Any], target: str, head: str, tmp_path: Path) -> None:
    if "error" not in row:
        ours = emulated(row, target, head, tmp_path)
        assert {field: ours[field] for field in row["resolved"]} == row["resolved"]
        return
    with pytest.raises(Exception) as raised:
        emulated(row, target, head, tmp_path)
    kind, _, text = row["error"].partition(": ")
    assert type(raised.value).__name__ == kind
    assert kind == "FileNotFoundError" or str(raised.value) == text


@pytest.mark.parametrize("row", DEPTHS, ids=str)
def test_the_emulator_takes_the_depths_of_sglang(row: dict[str, Any], tmp_path: Path) -> None:
    for batch, (first, last) in row["depths"].items():
        moves = depth.Adaptive(lambda _: {}, depth.slots(depth.table(written(row, tmp_path)), row["begins"]))
        assert moves.of(int(batch)).proposed == first, batch
        for _ in range(STEPS):
            moves.learn(int(batch), [min(row["accepted"], moves.of(int(batch)).proposed)] * int(batch))
        assert moves.of(int(batch)).proposed == last, batch


def scheduled(row: dict[str, Any]) -> tuple[Depth, ...]:
    table = json.loads(row["file"]).items()
    return tuple(Depth(from_batch_size=int(size), num_steps=entry["candidate_steps"][0]) for size, entry in table)


def test_with_one_depth_an_entry_nothing_is_left_to_choose() -> None:
    """A schedule's depth follows the batch, whatever is accepted; a batch counts as the graph that it is padded to."""
    rows = [row for row in DEPTHS if all(len(e["candidate_steps"]) == 1 for e in _entries(row))]
    assert len(rows) == 9
    for row in rows:
        for batch, seen in row["depths"].items():
            padded = next((size for size in depth.GRAPHS if size >= int(batch)), int(batch))
            (*_, entry) = (one for one in scheduled(row) if one.from_batch_size <= padded)
            assert seen == [entry.num_steps] * 2


def _entries(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for size, entry in json.loads(row["file"]).items() if size.isdigit()]


OURS = {"speculative_eagle_topk", "speculative_num_steps"}
"""What the operator says beside the file."""


@pytest.mark.parametrize("release", ["0.5.12", "0.5.13", "0.5.14", "0.5.17", "0.5.23"])
def test_the_operator_asks_for_what_each_release_takes(release: str) -> None:
    """0.5.12 starts with any file, and reads no batch sizes in it (`AdaptiveSpeculativeParams.__init__`)."""
    asked = [
        row for row in RESOLVED
        if row["release"] == release and row["args"].keys() == OURS and row["args"]["speculative_eagle_topk"] == 1
        and row["file"] and _is_schedule(row)
    ]  # fmt: skip
    assert len(asked) == 3
    for row in asked:
        candidate, of = arm("EAGLE3", depth_by_batch_size=scheduled(row)), server(version=release)
        found = SGLANG.refusals(of, (BASE, candidate))
        assert bool(found) == ("error" in row or release == "0.5.12"), row
        if "resolved" in row:
            expected = SGLANG.expected(of, candidate)
            assert {field: expected[field] for field in row["resolved"]} == row["resolved"]


def _is_schedule(row: dict[str, Any]) -> bool:
    """As the operator would write it: it begins with the deepest, and somewhere there is one."""
    try:
        deepest = max(entry.num_steps for entry in scheduled(row))
    except (ValueError, AttributeError, TypeError, IndexError):
        return False
    return 0 < deepest == row["args"]["speculative_num_steps"] and "-1" not in row["file"]


@pytest.fixture(scope="module")
def running(target: str, head: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("schedule")
    table = folder / "table.json"
    table.write_text(json.dumps({size: {"candidate_steps": [steps]} for size, steps in FALLING.items()}))
    headed = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", head)
    ours = ("--speculative-adaptive", "--speculative-eagle-topk", "1", "--speculative-num-steps", "3")
    flags = (*headed, *ours, "--speculative-adaptive-config", str(table), "--decode-log-interval", "10")
    with started(target, folder / "log", *flags, SGLANG_SIMULATE_ACC_LEN="2.5") as server:
        yield server


@pytest.mark.parametrize("row", LOADS, ids=lambda row: f"{row['requests']} at a time")
def test_a_server_tells_its_depth_as_the_real_one(row: dict[str, Any], running: Running) -> None:
    """At the top of its page is the depth that it began with, whatever it is now: that is what a round compares."""
    requests, steps = row["requests"], FALLING[max(size for size in FALLING if size <= row["requests"])]
    probe = SGLANG.probe(NEWEST)
    assert probe.draft_tokens
    assert probe.draft_tokens("\n".join(row["metrics"])) == steps
    (state,) = row["server_info"].pop("internal_states")
    assert (row["server_info"]["speculative_num_steps"], state["speculative_num_steps"]) == (3, steps)

    body = {"text": "Hello", "sampling_params": {"max_new_tokens": 600, "ignore_eos": True}}
    with ThreadPoolExecutor(requests) as pool:
        answers = [pool.submit(running.post, "/generate", body) for _ in range(requests)]
        seen: dict[float | None, Any] = {}
        while steps not in seen and not all(answer.done() for answer in answers):
            time.sleep(0.05)
            before, told = probe.draft_tokens(running.get("/metrics").text), running.get("/server_info").json
            if before == probe.draft_tokens(running.get("/metrics").text):
                seen[before] = told
    ours = seen[steps]
    assert {key: ours[key] for key in SHAPE} == {key: row["server_info"][key] for key in SHAPE}
    assert {key: ours["internal_states"][0][key] for key in SHAPE} == {key: state[key] for key in SHAPE}


SHAPE = ("speculative_adaptive", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def test_the_file_is_the_table_that_was_tried() -> None:
    row = RESOLVED[0]
    candidate = arm("EAGLE3", depth_by_batch_size=scheduled(row))
    ((path, text),) = SGLANG.files(candidate).items()
    assert text == row["file"]
    argv = SGLANG.argv(server(), candidate)
    assert argv[argv.index("--speculative-adaptive-config") + 1] == path
