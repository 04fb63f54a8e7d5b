"""Tables of depths by batch size: what SGLang's own code makes of them (dev/sglang/try_schedules.py), the emulator, and
what the operator asks for and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.engines.sglang.servers import BASE, arm, server

from paceline.core import Depth
from paceline.engines import ENGINES
from paceline_emulator import depth, flags, resolve, settings

ROWS = [json.loads(line) for line in (Path(__file__).parent / "captures/schedules.jsonl").read_text().splitlines()]
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
        candidate, of = arm("EAGLE3", schedule=scheduled(row)), server(version=release)
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


def test_the_file_is_the_table_that_was_tried() -> None:
    row = RESOLVED[0]
    candidate = arm("EAGLE3", schedule=scheduled(row))
    ((path, text),) = SGLANG.files(candidate).items()
    assert text == row["file"]
    argv = SGLANG.argv(server(), candidate)
    assert argv[argv.index("--speculative-adaptive-config") + 1] == path
