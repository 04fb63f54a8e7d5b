"""What a run shows: results per arm and workload, its cost, and Events when a round or the run has ended."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import ArmVerdict, Bounds
from paceline.evidence import fingerprint, measurements
from paceline.gate import explain
from paceline.plan.run.look import Evidence, Snapshot
from paceline.plan.terms import Happening, parse_time

MEAN = "mean"


def results(evidence: Evidence, snapshot: Snapshot) -> dict[str, Any]:
    """Ratios as the gate sees them at its latest look, provenance from the rounds."""
    told: dict[str, Any] = {"fingerprint": fingerprint(snapshot.manifest["spec"])}
    if not evidence.results:
        return told
    verdict = evidence.verdict
    told["results"] = [entry for name in verdict.arms for entry in _arm(evidence, name)]
    told["armVerdicts"] = [
        {"arm": name, "outcome": arm.outcome.value, "reason": explain(arm), **_aa_floor(arm)}
        for name, arm in verdict.arms.items()
    ]
    last = evidence.results[-1]
    told |= {
        "node": last["node"],
        "engineVersion": last["engineVersion"],
        "emulated": any(record.get("emulated") for record in evidence.results),
        "gpus": last["gpus"],
    }
    return told


def cost(evidence: Evidence) -> dict[str, Any]:
    """GPU-seconds held by rounds that gave a result, and how many servers were started for them."""
    if not evidence.results:
        return {}
    gpus = evidence.spec.server.accelerator.count
    held = sum(
        (parse_time(r["finishedAt"]) - parse_time(r["startedAt"])).total_seconds() * gpus for r in evidence.results
    )
    starts = sum(len(record["replicates"]) for record in evidence.results)
    return {"cost": {"gpuSeconds": round(held), "serverStarts": starts}}


def _aa_floor(arm: ArmVerdict) -> dict[str, str]:
    return {"aaFloor": f"{arm.aa_floor:.5f}"} if arm.aa_floor is not None and math.isfinite(arm.aa_floor) else {}


def _arm(evidence: Evidence, name: str) -> Iterator[dict[str, Any]]:
    arm = evidence.verdict.arms[name]
    if arm.mean is not None:
        yield {"arm": name, "workload": MEAN, **_bounds(arm.mean)}
    lengths = _accept_lengths(evidence, name)
    for workload, bounds in arm.workloads.items():
        length = {"acceptLength": f"{lengths[workload]:.3f}"} if workload in lengths else {}
        yield {"arm": name, "workload": workload, **_bounds(bounds), **length}


def _bounds(bounds: Bounds) -> dict[str, str]:
    return {"ratio": f"{bounds.ratio:.4f}", "lower": f"{bounds.lower:.4f}", "upper": f"{bounds.upper:.4f}"}


def _accept_lengths(evidence: Evidence, name: str) -> Mapping[str, float]:
    """Workload → mean over valid measurements."""
    found: dict[str, list[float]] = {}
    for one in measurements(evidence.records):
        if one.arm == name and one.valid and "acceptLength" in one.metrics:
            found.setdefault(one.workload, []).append(one.metrics["acceptLength"])
    return {workload: sum(lengths) / len(lengths) for workload, lengths in found.items()}


def happenings(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Happening, ...]:
    known = {record["job"] for record in before.get("rounds", ())}
    rounds = [_round(record) for record in after.get("rounds", ()) if record["job"] not in known]
    if "verdict" not in after or "verdict" in before:
        return tuple(rounds)
    verdict = after["verdict"]
    bad = verdict["outcome"] == "Error"
    told = Happening(reason=verdict["outcome"], note=verdict["message"], type="Warning" if bad else "Normal")
    return (*rounds, told)


def _round(record: Mapping[str, Any]) -> Happening:
    number = record["round"] + 1
    if record.get("error"):
        return Happening(reason="RoundFailed", note=f"round {number}: {record['error']}", type="Warning")
    invalid = [point for point in record["points"] if not point["valid"]]
    if invalid:
        first = invalid[0]
        note = (
            f"round {number}: {len(invalid)} points are invalid; {first['arm']} on {first['workload']}: {first['why']}"
        )
        return Happening(reason="RoundInvalid", note=note, type="Warning")
    arms = ", ".join(replicate["arm"] for replicate in record["replicates"])
    return Happening(reason="RoundMeasured", note=f"round {number} on {record['node']}: {arms}")
