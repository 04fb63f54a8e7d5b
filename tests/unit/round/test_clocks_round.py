"""A round on a node with a driver: the real wrapper, the real client, emulated servers and a driver that is played."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import fake_nvml
from tests.support.in_status import round_status
from tests.unit.round.pod import CHAT_8, CODE_1, Start
from tests.unit.round.test_round import published_pair

from paceline.evidence import judge_points

NVIDIA_SMI = """#!/bin/sh
case $1 in
*clocks.sm*)
  echo "$1" >>"{calls}"
  capped=$(($(wc -l <"{calls}") * 100000000))
  echo "GPU-0, 1980, 1980, 650.10, 700.00, 65, 0x0000000000000000, $capped, 0, 0, 0, 0"
  echo "GPU-1, 1755, 1980, 699.80, 700.00, 71, 0x0000000000000004, $capped, 0, 0, 0, 0" ;;
*driver_version*) echo 570.86.15 ;;
*name*) echo NVIDIA H200 ;;
*memory.used*) echo 12 ;;
esac
"""


def test_a_round_that_is_throttled_says_so(start: Start, models: Path, port: int) -> None:
    calls, smi = models / "calls", models / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(NVIDIA_SMI.format(calls=calls))
    smi.chmod(0o755)
    fake_nvml.python3_with(smi.parent, GPU_0={"energy": 10**9, "watts": 300}, GPU_1={"energy": 0, "watts": 60})
    pair = published_pair(models, port)
    path = f"{smi.parent}:{os.environ['PATH']}"
    outcome = start(pair, CODE_1, CHAT_8, change=lambda plan: replace(plan, own_gpus=2), PATH=path).finish()
    assert (outcome.client, outcome.wrapper) == (0, 0), outcome.log

    assert all(one.valid for one in outcome.judged.values())  # throttled, and believed
    kept = round_status(outcome.plan, outcome.result, judge_points(outcome.plan, outcome.result), "job", "gpu-0")
    for replicate in kept["replicates"]:
        assert replicate["clocks"] == {
            "smMHz": 1755,
            "mostSMMHz": 1980,
            "powerLimitWatts": 700,
            "celsius": 71,
            "throttled": [
                {"workload": name, "reasons": ["SwPowerCap"], "percent": 100} for name in ("code@1", "chat@8")
            ],
        }
    (note,) = [note for note in kept["notes"] if note.startswith("throttled")]
    assert note.startswith("throttled: SwPowerCap on code@1 of baseline (100 % of the time), SwPowerCap on chat@8 of")

    for point in kept["points"]:
        assert float(point["energyPerToken"]) == pytest.approx(360 / point["outputTokens"], rel=1e-3)

    # Twice by each arm to see what it can be asked and what there is without a server, then before and after each of
    # the four loads: not once beside one.
    assert len(calls.read_text().splitlines()) == 2 * 2 + 2 * 4
    with gzip.open(models / "results" / "2-0.jsonl.gz", "rt") as lines:
        looks = [line["gpus"] for line in map(json.loads, lines) if "report" in line]
    assert [[(one["uuid"], one["watts"], one["millijoules"]) for one in moment] for moment in looks[0]] == [
        [("GPU-0", 650.1, 10**9 + look * 300_000), ("GPU-1", 699.8, look * 60_000)] for look in (1, 2)
    ]
