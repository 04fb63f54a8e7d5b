"""Whether two runs of one question agree: the same question, the same arms in the same order, the same verdict, and
what each has found within the other's interval."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.support.kubernetes import Manifest

from paceline import api
from paceline.core import BASELINE, Bounds
from paceline.evidence import question
from paceline.gate.interval import interval

ABOUT = ("measured",)
"""Fields of the spec in which they may differ: what was measured beforehand."""
Key = tuple[str, str]
"""Arm and workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`ratios` as the verdict has them, `mean` among the workloads; `speeds` in output tokens per second, with bounds
    made as the gate makes its own, at the same confidence."""

    ratios: Mapping[Key, Bounds]
    speeds: Mapping[Key, Bounds]


def found(run: Manifest) -> Found:
    ratios = {
        (one["arm"], one["workload"]): Bounds(
            ratio=float(one["ratio"]), lower=float(one["lower"]), upper=float(one["upper"])
        )
        for one in run["status"]["results"]
    }
    spec = api.run(run)
    looks = len(spec.gate.decide_after_rounds) * (len(spec.arms) - 1)
    error, floor = (1 - spec.gate.confidence) / looks, spec.gate.variance_floor
    logs: dict[Key, list[float]] = {}
    for point in (point for entry in run["rounds"] for point in entry["points"] if point["valid"]):
        speed = point.get("steadyThroughput") or point["requestSpeed"]
        logs.setdefault((point["arm"], point["workload"]), []).append(math.log(float(speed)))
    speeds = {key: interval(values, error=error, floor=floor).bounds for key, values in logs.items()}
    return Found(ratios=ratios, speeds=speeds)


def disagreements(one: Manifest, other: Manifest) -> list[str]:
    """In sentences; none if they agree."""
    return [*_of_the_question(one, other), *_of_the_numbers(found(one), found(other))]


def _of_the_question(one: Manifest, other: Manifest) -> Iterator[str]:
    specs = [{key: value for key, value in run["spec"].items() if key not in ABOUT} for run in (one, other)]
    if differ := sorted({key for spec in specs for key in spec if specs[0].get(key) != specs[1].get(key)}):
        yield f"their specs differ in {', '.join(differ)}"
    for what, pair in {
        "question": [question(run["spec"]) for run in (one, other)],
        "fingerprint": [run["status"]["fingerprint"] for run in (one, other)],
        "outcome": [run["status"]["verdict"]["outcome"] for run in (one, other)],
        "winner": [run["status"]["verdict"].get("winner") for run in (one, other)],
        "order of arms": [_order(run) for run in (one, other)],
        "resolved arguments": [_resolved(run) for run in (one, other)],
        "prompts": [_prompts(run) for run in (one, other)],
        "invalid points": [_invalid(run) for run in (one, other)],
    }.items():
        if pair[0] != pair[1]:
            yield f"{what}: {pair[0]} and {pair[1]}"


def _order(run: Manifest) -> list[list[str]]:
    return [[server["arm"] for server in entry["replicates"]] for entry in run["rounds"]]


def _resolved(run: Manifest) -> dict[str, Mapping[str, str]]:
    """Of the last server of each arm: what both the operator and a person can see of its command."""
    return {server["arm"]: server["resolved"] for entry in run["rounds"] for server in entry["replicates"]}


def _prompts(run: Manifest) -> list[Mapping[str, str]]:
    return [entry.get("datasets", {}) for entry in run["rounds"]]


def _invalid(run: Manifest) -> list[str]:
    return [point["why"] for entry in run["rounds"] for point in entry["points"] if not point["valid"]]


def _of_the_numbers(one: Found, other: Found) -> Iterator[str]:
    for what, mine, theirs in (("ratio", one.ratios, other.ratios), ("speed", one.speeds, other.speeds)):
        if mine.keys() != theirs.keys():
            yield f"{what}s of {sorted(mine)} and of {sorted(theirs)}"
        for key in mine.keys() & theirs.keys():
            if not (_within(mine[key], theirs[key]) and _within(theirs[key], mine[key])):
                yield f"{what} of {' on '.join(key)}: {_shown(mine[key])} and {_shown(theirs[key])}"


def _within(one: Bounds, other: Bounds) -> bool:
    return other.lower <= one.ratio <= other.upper


def _shown(bounds: Bounds) -> str:
    return f"{bounds.ratio:.4g} ({bounds.lower:.4g} to {bounds.upper:.4g})"


def markdown(one: Manifest, other: Manifest, names: tuple[str, str]) -> str:
    """A table: a line for each arm and workload."""
    first, second = found(one), found(other)
    lines = [f"| arm | workload | {names[0]} | {names[1]} |", "|---|---|---|---|"]
    for key in sorted(first.speeds, key=lambda key: (key[0] != BASELINE, *key)):
        shown = " | ".join(_shown(run.speeds[key]) for run in (first, second))
        lines.append(f"| {key[0]} | {key[1]}, tokens a second | {shown} |")
    for key in sorted(first.ratios):
        shown = " | ".join(_shown(run.ratios[key]) for run in (first, second))
        lines.append(f"| {key[0]} | {key[1]}, ratio | {shown} |")
    return "\n".join(lines)
