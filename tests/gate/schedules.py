"""The gate about a written schedule: how often a good one is not promoted, for the loads beside the pool's.

`python -m tests.gate.schedules` prints the table of campaigns.

A schedule that drafts below 16 simultaneous requests and not from there on, beside a tree and the engine's adaptive
mode. Every workload must be shown not to regress, so each further one is a further chance to stay undecided.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.support.campaigns import Truth

from paceline import core, gate
from paceline.core import WAVES, ArmOutcome, default_looks

POOL, SIDES, RAMP = ("1", "8", "32"), ("3", "4", "15", "16"), "ramp"
OFF = frozenset({"16", "32"})
"""Loads at which the schedule drafts nothing, so that its prompts have no gains of their own."""
TREE = {"1": 1.40, "3": 1.30, "4": 1.25, "8": 1.10, "15": 1.00, "16": 0.95, "32": 0.85, RAMP: 0.92}
ADAPTIVE = {"1": 1.35, "3": 1.25, "4": 1.20, "8": 1.10, "15": 1.03, "16": 1.00, "32": 0.97, RAMP: 1.03}
SCHEDULE = {"1": 1.40, "3": 1.30, "4": 1.25, "8": 1.12, "15": 1.04, "16": 1.00, "32": 1.00}
START, POINT, PROMPTS = 0.01, 0.005, 0.15
"""Of a server's start, of a point, and between the speed-ups of prompts (`gate.power`)."""
UNEVEN = 1.15
"""By how much more the prompts of a ramp vary in the mean: they count by their requests' times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    name: str
    beside: tuple[str, ...] = ()
    ramp: float = 1.03
    """What the schedule gives there."""
    off: float = 1.0
    """What it gives where it drafts nothing."""


ROWS = (
    Row(name="the pool's loads alone"),
    Row(name="and both sides of two thresholds", beside=SIDES),
    Row(name="and a ramp, at 1.03", beside=(*SIDES, RAMP)),
    Row(name="and a ramp, at 1.00", beside=(*SIDES, RAMP), ramp=1.0),
    Row(name="and a ramp, at 0.97 = the tolerance", beside=(*SIDES, RAMP), ramp=0.97),
    Row(name="the pool's loads alone; 0.99 where it does not draft", off=0.99),
    Row(name="with both sides and a ramp, at 1.03; 0.99 where it does not draft", beside=(*SIDES, RAMP), off=0.99),
)


def counted(row: Row, campaigns: int) -> Mapping[ArmOutcome, float]:
    """The shares of the schedule's outcomes."""
    weights = dict.fromkeys(POOL, 100.0) | dict.fromkeys(row.beside, 1.0)
    gives = SCHEDULE | dict.fromkeys(OFF, row.off) | {RAMP: row.ramp}
    arms = {"baseline": dict.fromkeys(weights, 1.0), "tree": TREE, "adaptive": ADAPTIVE, "schedule": gives}
    truth = {arm: {load: 100 * speeds[load] for load in weights} for arm, speeds in arms.items()}
    rule = core.Gate(decide_after_rounds=default_looks(len(arms)))
    outcomes = [
        gate.decide(rule, list(truth), weights, list(_campaign(truth, seed, rule.decide_after_rounds[-1]))).arms[
            "schedule"
        ]
        for seed in range(campaigns)
    ]
    return {each: sum(arm.outcome is each for arm in outcomes) / campaigns for each in ArmOutcome}


def _campaign(truth: Truth, seed: int, rounds: int) -> Iterator[core.Measurement]:
    dice = random.Random(seed)
    for number in range(rounds):
        for arm, speeds in truth.items():
            start = dice.gauss(0, START)
            for load, speed in speeds.items():
                prompts = 0.0 if arm == "baseline" or (arm == "schedule" and load in OFF) else _of_prompts(load)
                noise = start + dice.gauss(0, math.hypot(POINT, prompts))
                yield core.Measurement(round=number, arm=arm, workload=load, output_throughput=speed * math.exp(noise))


def _of_prompts(load: str) -> float:
    if load == RAMP:
        return UNEVEN * PROMPTS / math.sqrt(WAVES * int(POOL[-1]))
    return PROMPTS / math.sqrt(max(64, WAVES * int(load)))


def main() -> None:
    for row in ROWS:
        shares = counted(row, 1000)
        found = (shares[each] for each in (ArmOutcome.PROMOTABLE, ArmOutcome.UNDECIDED, ArmOutcome.REJECTED))
        print(f"| {row.name} | {' | '.join(f'{share:.3f}' for share in found)} |", flush=True)


if __name__ == "__main__":
    main()
