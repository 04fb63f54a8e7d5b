"""dev/gpu/report.py: what it makes of a run. The models beside it need torch, and are not made here."""

import math
import random
from typing import Any

import pytest
from dev.gpu.report import TWICE, Noise, noise, pairs, shares, written


def servers(count: int, *, point: float, start: float) -> list[tuple[float, float]]:
    """Throughputs of two points of each, about 100."""
    dice, made = random.Random(1), []
    for _ in range(count):
        own = dice.gauss(0, start)
        a, b = (100 * math.exp(own + dice.gauss(0, point)) for _ in range(2))
        made.append((a, b))
    return made


@pytest.mark.parametrize(("point", "start"), [(0.01, 0.03), (0.02, 0.0), (0.002, 0.004)])
def test_noise_of_points_is_told_from_that_of_starts(point: float, start: float) -> None:
    found = noise({arm: servers(4000, point=point, start=start) for arm in ("baseline", "copy")})
    assert found
    assert found.point == pytest.approx(point, rel=0.05)
    assert found.start == pytest.approx(start, rel=0.05, abs=point / 4)


def test_one_server_says_nothing_of_starts() -> None:
    assert noise({"baseline": [(100.0, 101.0)]}) is None


def a_round(number: int, tokens: int, **more: Any) -> dict[str, Any]:
    arms = ("baseline", "copy")
    points = [
        {"arm": arm, "workload": workload, "valid": True, "steadyThroughput": f"{100 + number + place}"}
        for arm in arms
        for place, workload in enumerate((*TWICE, "chat@32"))
    ]
    clocks = {"smMHz": 1755, "mostSMMHz": 1980, "powerLimitWatts": 700, "celsius": 71,
              "throttled": [{"workload": "chat@32", "reasons": ["SwPowerCap"]}]}  # fmt: skip
    replicates = [{"arm": arm, "startSeconds": "30", "kvTokens": tokens, "clocks": clocks} for arm in arms]
    return {"round": number, "heldSeconds": 200, "idleSeconds": 20, "points": points, "replicates": replicates, **more}


def run(**more: Any) -> dict[str, Any]:
    result = {"arm": "copy", "workload": "mean", "ratio": "1.7", "lower": "1.6", "upper": "1.8", "acceptLength": "3.9"}
    status = {
        "gpuModel": "NVIDIA H200", "driver": "580.1", "rounds": [a_round(0, 400_000), a_round(1, 300_000)],
        "verdict": {"outcome": "Promote", "winner": "copy", "message": "mean 1.7x"},
        "armVerdicts": [{"arm": "copy", "outcome": "promotable", "reason": ""}], "results": [result],
    }  # fmt: skip
    return {"spec": {"engine": {"name": "SGLang", "version": "0.5.17"}}, "status": {**status, **more}}


def test_the_page_has_what_only_a_gpu_shows() -> None:
    page = written(run(), "a machine", "0123456")
    for text in (
        "at commit 0123456, on a machine", "NVIDIA H200", "driver 580.1", "**Promote** copy: mean 1.7x",
        "| copy | promotable | mean | 1.7 (1.6 to 1.8) | 3.9 |", "1755 of 1980", "SwPowerCap on chat@32",
        "copy: the KV cache of its servers differs by 33.33% between rounds", "servers started for 30%",
    ):  # fmt: skip
        assert text in page


def test_an_emulated_run_is_never_taken_for_one_of_a_gpu() -> None:
    assert "nothing here is of a GPU" in written(run(emulated=True), "m", "c")


def test_a_round_without_a_result_and_an_invalid_point_count_for_nothing() -> None:
    rounds = [a_round(0, 1), a_round(1, 1, error="it broke"), a_round(2, 1)]
    rounds[2]["points"][0]["valid"] = False
    assert pairs(run(rounds=rounds)) == {"baseline": [(100.0, 101.0)], "copy": [(100.0, 101.0), (102.0, 103.0)]}
    assert shares(run(rounds=rounds)) == (0.3, 0.1)


def test_noise_by_hand() -> None:
    """Two servers: ln differs by 0.02 between points of the first and not of the second; means are 0.01 apart."""
    e = math.exp
    found = noise({"copy": [(e(0.02), e(0.0)), (e(0.02), e(0.02))]})
    assert found == Noise(point=pytest.approx(0.01), start=pytest.approx(0.0, abs=1e-6), servers=2)
