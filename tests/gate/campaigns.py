"""Seeded campaigns: what the gate says when the truth is known.

`python -m tests.gate.campaigns` prints the table of docs/gate.md.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import mean

from paceline import core, gate

WORKLOADS = ("code", "swe", "terminal", "chat")

# Output tokens per second, published for Qwen3-Coder-Next with its EAGLE3 head on four H200 (seeds/002).
BASELINE_1 = {"code": 171.1, "swe": 163.9, "terminal": 166.0, "chat": 166.5}
WIDE_1 = {"code": 237.9, "swe": 249.7, "terminal": 231.0, "chat": 196.0}
BASELINE_32 = {"code": 1740.2, "swe": 2010.4, "terminal": 2310.5, "chat": 1529.1}
WIDE_32 = {"code": 1793.8, "swe": 2186.5, "terminal": 2057.1, "chat": 2009.4}
NARROW_32 = {"code": 1756.3, "swe": 1998.7, "terminal": 2379.8, "chat": 1688.6}

LATENCY = {"baseline": BASELINE_1, "wide": WIDE_1}
THROUGHPUT = {"baseline": BASELINE_32, "narrow": NARROW_32, "wide": WIDE_32}
THROUGHPUT_GATE = core.Gate(minimum_improvement=0.02)

Truth = Mapping[str, Mapping[str, float]]
"""Arm → workload → output tokens per second; the baseline first."""


def against(speed_ups: Mapping[str, float]) -> Truth:
    """One candidate that is so much faster on each workload."""
    return {"baseline": dict.fromkeys(speed_ups, 100.0), "candidate": {w: 100 * x for w, x in speed_ups.items()}}


def measure(truth: Truth, *, cv: float, seed: int, rounds: int = 8, tail: bool = False) -> list[core.Measurement]:
    """Every point is the truth times a log-normal factor of this coefficient of variation; with `tail`, Student's t of
    three degrees of freedom scaled to the same variance takes the place of the normal distribution."""
    dice = random.Random(seed)
    sd = math.sqrt(math.log1p(cv**2))

    def noise() -> float:
        x = dice.gauss(0, 1)
        return x / math.sqrt(dice.gammavariate(1.5, 2)) if tail else x

    return [
        core.Measurement(round=n, arm=arm, workload=w, output_throughput=value * math.exp(sd * noise()))
        for n in range(rounds)
        for arm, points in truth.items()
        for w, value in points.items()
    ]


def verdicts(rule: core.Gate, truth: Truth, *, cv: float, seeds: range, tail: bool = False) -> Iterator[core.Verdict]:
    weights = dict.fromkeys(truth["baseline"], 1.0)
    for seed in seeds:
        yield gate.decide(rule, list(truth), weights, measure(truth, cv=cv, seed=seed, tail=tail))


def table(campaigns: int) -> Iterator[str]:
    """Rows of Markdown."""
    plain = core.Gate()
    uneven = {"code": 1.23, "swe": 1.23, "terminal": 0.94, "chat": 1.23}
    rows: list[tuple[str, core.Gate, Truth, float, bool]] = [
        *(("demo, `latency`", plain, LATENCY, cv, False) for cv in (0.003, 0.007, 0.01)),
        *(("demo, `throughput`", THROUGHPUT_GATE, THROUGHPUT, cv, False) for cv in (0.003, 0.005, 0.007, 0.01)),
        *(("+5 % = the minimum", plain, against(dict.fromkeys(WORKLOADS, 1.05)), cv, False) for cv in (0.005, 0.025)),
        ("+5 %, heavy tails (t3)", plain, against(dict.fromkeys(WORKLOADS, 1.05)), 0.025, True),
        ("equal arms", plain, against(dict.fromkeys(WORKLOADS, 1.0)), 0.025, False),
        ("+8 %", plain, against(dict.fromkeys(WORKLOADS, 1.08)), 0.01, False),
        ("+15 %, one workload −6 %", plain, against(uneven), 0.025, False),
    ]
    yield "| truth | CV of a point | promotes | rejects | inconclusive | rounds (mean) |"
    yield "|---|---|---|---|---|---|"
    for name, rule, truth, cv, tail in rows:
        found = list(verdicts(rule, truth, cv=cv, seeds=range(campaigns), tail=tail))
        promoted = Counter(v.winner for v in found if v.winner)
        outcomes = Counter(v.outcome for v in found)
        shares = ", ".join(f"{winner} {count / campaigns:.4f}" for winner, count in promoted.items()) or "0"
        rejected, open_ = (outcomes[o] / campaigns for o in (core.Outcome.REJECT, core.Outcome.INCONCLUSIVE))
        rounds = mean(v.rounds for v in found)
        yield f"| {name} | {cv:.1%} | {shares} | {rejected:.4f} | {open_:.4f} | {rounds:.1f} |"


if __name__ == "__main__":
    for row in table(campaigns=4000):
        print(row)
