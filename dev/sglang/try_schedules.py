"""try_schedules.py RELEASE… > tests/contract/captures/schedules.jsonl: what SGLang makes of tables of depths.

Each release's published wheel is unpacked (pip; nothing is installed). `resolved`: its own resolution of arguments with
a table (`resolved.py`). `depths`: the depth that its own slots have for batches of some sizes, before and after steps
in which so many tokens were accepted; CUDA graphs are there of the sizes in GRAPHS. Needs msgspec and orjson.
"""

import contextlib
import importlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import resolved
from extract_moves import BY_PACELINE, HEAD, HEADED, targets

FIELDS = ("speculative_adaptive", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
FALLING, RISING, RESTS = ((1, 5), (8, 1), (32, 0)), ((1, 0), (8, 3)), ((1, 0), (8, 0))
WITHOUT_REST = ((1, 5), (8, 2), (33, 1), (36, 4))
DEEPEST = {"speculative_eagle_topk": 1, "speculative_num_steps": 5}
ASKED: Sequence[tuple[Any, Mapping[str, Any]]] = (
    (FALLING, DEEPEST),
    (WITHOUT_REST, DEEPEST),
    (FALLING, {"speculative_eagle_topk": 1}),
    (FALLING, {"speculative_num_steps": 5}),
    (FALLING, {}),
    (FALLING, {**DEEPEST, "speculative_num_steps": 0}),
    (FALLING, {**DEEPEST, "speculative_num_steps": 3}),
    (FALLING, {**DEEPEST, "speculative_eagle_topk": 2, "speculative_num_draft_tokens": 8}),
    (FALLING, {**DEEPEST, "speculative_algorithm": "STANDALONE"}),
    (RISING, {"speculative_eagle_topk": 1, "speculative_num_steps": 3}),
    (RESTS, {"speculative_eagle_topk": 1, "speculative_num_steps": 0}),
    (RESTS, {"speculative_eagle_topk": 1}),
    ('{"1": {"candidate_steps": [5]}, "8": {"candidate_steps": []}}', DEEPEST),
    ('{"1": {"candidate_steps": [5]}, "8": {"candidate_steps": [-1]}}', DEEPEST),
    ('{"1": {"candidate_steps": 5}}', DEEPEST),
    ('{"1": [5]}', DEEPEST),
    ('{"candidate_steps": [5]}', DEEPEST),
    ("[5]", DEEPEST),
    ("{", DEEPEST),
    (None, DEEPEST),
)
"""Tables, or texts of a file (None: there is none), with the other arguments."""
GRAPHS = (*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8))
BATCHES = (1, 2, 7, 8, 9, 31, 32, 33, 35, 36, 41, 64, 300)
STEPS = 60


def text_of(table: Any) -> str:
    if isinstance(table, str):
        return table
    return json.dumps({str(size): {"candidate_steps": [steps]} for size, steps in table})


def unpacked(release: str, to: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(to), f"sglang=={release}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    (wheel,) = to.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(to / "wheel", [name for name in archive.namelist() if name.endswith((".py", ".json"))])
    return to / "wheel"


def resolutions(release: str, root: Path, folder: Path) -> Iterator[dict[str, Any]]:
    asked = []
    for number, (table, args) in enumerate(ASKED):
        file = folder / f"{number}.json"
        if table is not None:
            file.write_text(text_of(table))
        own = {"speculative_adaptive": True, "speculative_adaptive_config": str(file), **HEADED}
        every = {"speculative_algorithm": "EAGLE3", **BY_PACELINE, **own, **args}
        asked.append({"config": targets()["Qwen3"], "head": HEAD, "args": every})
    program = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("resolved.py")), str(root), "H100"]
    done = subprocess.run(program, input=json.dumps(asked), capture_output=True, text=True, check=True)
    for (table, args), said in zip(ASKED, json.loads(done.stdout), strict=True):
        row = {"release": release, "file": None if table is None else text_of(table), "args": args}
        if "error" in said:
            yield {**row, "error": said["error"].replace(f"{folder}/", "")}
        else:
            yield {**row, "resolved": {field: said["resolved"][field] for field in FIELDS}}


def depths(root: Path, table: Any, begins: int, accepted: int) -> dict[str, Any]:
    """Run in a process of its own: `stubs` take its imports over."""
    module = importlib.import_module("sglang.srt.speculative.adaptive_spec_params")
    file = root / "table.json"
    file.write_text(text_of(table))
    seen: dict[int, list[int]] = {}
    for batch in BATCHES:
        policy = module.AdaptiveSpeculativeParams(initial_steps=begins, cfg_path=str(file))
        policy.set_cuda_graph_bs(list(GRAPHS))
        seen[batch] = [policy.get_steps_for_batch(batch)]
        for _ in range(STEPS):
            now = policy.get_steps_for_batch(batch)
            policy.on_verify_complete([min(accepted, now)] * batch, batch)
        seen[batch].append(policy.get_steps_for_batch(batch))
    return {"file": text_of(table), "begins": begins, "accepted": accepted, "depths": seen}


OWN = '{"1": {"candidate_steps": [1, 3, 5]}, "8": {"candidate_steps": [0, 1, 3], "down_hysteresis": 0.0}}'
CEILING = '{"ceiling_coeff": 1, "ema_alpha": 0.5, "1": {"candidate_steps": [1, 3, 7]}, "32": {"candidate_steps": [0]}}'


def slots(root: str) -> list[dict[str, Any]]:
    with contextlib.redirect_stdout(sys.stderr):
        resolved.prepare(root, "H100")
    tables = ((FALLING, 5), (WITHOUT_REST, 5), (RISING, 3), (OWN, 0), (OWN, 3), (CEILING, 7))
    return [depths(Path(root), table, begins, accepted) for table, begins in tables for accepted in (0, 2, 7)]


def main(releases: Sequence[str]) -> None:
    for release in releases:
        with tempfile.TemporaryDirectory() as folder:
            root = unpacked(release, Path(folder))
            for row in resolutions(release, root, Path(folder)):
                print(json.dumps(row))
            if release == releases[-1]:
                program = [sys.executable, "-W", "ignore", __file__, "--slots", str(root)]
                done = subprocess.run(program, capture_output=True, text=True, check=True)
                for row in json.loads(done.stdout):
                    print(json.dumps({"release": release, **row}))


if __name__ == "__main__":
    if sys.argv[1] == "--slots":
        print(json.dumps(slots(sys.argv[2])))
    else:
        main(sys.argv[1:])
