"""Seeded campaigns: measurements of which the truth is known."""

import math
import random
from collections.abc import Mapping

from paceline import core

WORKLOADS = ("code", "swe", "terminal", "chat")

# Output tokens per second, published for Qwen3-Coder-Next with its EAGLE3 head on four H200.
BASELINE_1 = {"code": 171.1, "swe": 163.9, "terminal": 166.0, "chat": 166.5}
WIDE_1 = {"code": 237.9, "swe": 249.7, "terminal": 231.0, "chat": 196.0}
BASELINE_32 = {"code": 1740.2, "swe": 2010.4, "terminal": 2310.5, "chat": 1529.1}
WIDE_32 = {"code": 1793.8, "swe": 2186.5, "terminal": 2057.1, "chat": 2009.4}
NARROW_32 = {"code": 1756.3, "swe": 1998.7, "terminal": 2379.8, "chat": 1688.6}

LATENCY = {"baseline": BASELINE_1, "wide": WIDE_1}
THROUGHPUT = {"baseline": BASELINE_32, "narrow": NARROW_32, "wide": WIDE_32}
THROUGHPUT_GATE = core.Gate(min_improvement=0.02, decide_after_rounds=core.default_looks(3))

Truth = Mapping[str, Mapping[str, float]]
"""Arm → workload → output tokens per second; the baseline first."""


def against(speed_ups: Mapping[str, float]) -> Truth:
    """One candidate that is so much faster on each workload."""
    return {"baseline": dict.fromkeys(speed_ups, 100.0), "candidate": {w: 100 * x for w, x in speed_ups.items()}}


def measure(
    truth: Truth, *, cv: float, seed: int, rounds: int = 9, tail: bool = False, start: float = 0.0, gpus: float = 0.0
) -> list[core.Measurement]:
    """Every point is the truth times a log-normal factor of coefficient of variation `cv`.

    `start`: that of another factor, which a server start has for all its workloads. `gpus`: that of a third one, which
    an arm keeps for all rounds, as if each had GPUs of its own (which a round of Paceline's never does). With `tail`,
    Student's t of three degrees of freedom, scaled to the same variance, takes the place of all normal distributions.
    """
    dice = random.Random(seed)

    def noise(variation: float) -> float:
        if not variation:
            return 0.0
        x = dice.gauss(0, 1)
        sd = math.sqrt(math.log1p(variation**2))
        return sd * (x / math.sqrt(dice.gammavariate(1.5, 2)) if tail else x)

    placed = {arm: noise(gpus) for arm in truth}
    measured = []
    for n in range(rounds):
        for arm, points in truth.items():
            shared = placed[arm] + noise(start)
            measured += [
                core.Measurement(round=n, arm=arm, workload=w, output_throughput=value * math.exp(shared + noise(cv)))
                for w, value in points.items()
            ]
    return measured
