"""What the rounds so far show before the gate looks, for a person who watches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from paceline.core import Answers, ArmVerdict, Gate, Measurement
from paceline.gate.rule import decide

FEWEST = 2
"""Rounds of which an interval can be made."""


def so_far(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers] = (),
    rated: Collection[str] = (),
) -> Mapping[str, ArmVerdict]:
    """Candidate → the verdict that it would have if the gate looked now in place of its next look; empty before two
    rounds. Provisional: nothing is decided by it. Arguments as `decide`."""
    rounds, looks = len({one.round for one in measurements}), gate.decide_after_rounds
    if rounds < FEWEST:
        return {}
    following = next((look for look in looks if look >= rounds), None)
    now = replace(gate, decide_after_rounds=tuple(rounds if look == following else look for look in looks))
    return decide(now, arms, workloads, measurements, answers, rated).arms
