"""What a run shows: results per arm and workload, its cost, and Events when a round or the run has ended."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import ArmVerdict, Bounds
from paceline.evidence import fingerprint, measurements
from paceline.gate import explain
from paceline.plan.run import sweep
from paceline.plan.run.look import Evidence, Snapshot
from paceline.plan.run.own_args import own_args
from paceline.plan.run.parity import parity
from paceline.plan.run.taken import own
from paceline.plan.terms import Happening

MEAN = "mean"
MEAN_AT_A_RATE = "mean@rate"
"""Of a run that has closed loops, too. No workload is called so: a rate is a number."""
IMAGES = {"server": "image", "client": "clientImage"}
"""Container → where its image's digest stands in a round."""


def results(evidence: Evidence, snapshot: Snapshot) -> dict[str, Any]:
    """Ratios as the gate sees them at its latest look, provenance from the rounds."""
    told: dict[str, Any] = {"fingerprint": fingerprint(snapshot.manifest["spec"])}
    if not evidence.results:
        return told
    told |= _swept(evidence) if evidence.sweep else _judged(evidence)
    told |= sweep.spots(evidence)
    last = evidence.results[-1]
    told |= {
        "engineVersion": last["engineVersion"],
        "emulated": any(record.get("emulated") for record in evidence.results),
        "gpus": last["gpus"],
        **{key: last[key] for key in ("gpuModel", "driver") if key in last},
    }
    if digests := {container: last[key] for container, key in IMAGES.items() if key in last}:
        told["imageDigests"] = digests
    if releases := dict.fromkeys(record["paceline"] for record in evidence.results if "paceline" in record):
        told["paceline"] = ", ".join(releases)
    return told


def cost(evidence: Evidence) -> dict[str, Any]:
    """What its rounds took, those that gave no result included, and how many servers were started for results. What
    another run has measured has cost that one."""
    if not evidence.records:
        return {}
    gpus, mine = evidence.spec.server.accelerator.count, own(evidence.records)
    held, idle = (sum(record.get(key, 0) for record in mine) for key in ("heldSeconds", "idleSeconds"))
    starts = sum(len(record["replicates"]) for record in mine if not record.get("error"))
    return {"cost": {"gpuSeconds": held * gpus, "idleGpuSeconds": idle * gpus, "serverStarts": starts}}


def _margin(arm: ArmVerdict) -> dict[str, str]:
    return {"margin": f"{arm.margin:.5f}"} if arm.margin is not None and math.isfinite(arm.margin) else {}


def _args(evidence: Evidence, name: str) -> dict[str, list[str]]:
    args = next((own_args(arm) for arm in evidence.spec.arms if arm.name == name), ())
    return {"args": list(args)} if args else {}


def _judged(evidence: Evidence) -> dict[str, Any]:
    verdict = evidence.verdict
    return {
        "results": [entry for name in verdict.arms for entry in _arm(evidence, name)],
        "armVerdicts": [
            {
                "arm": name,
                "outcome": arm.outcome.value,
                "reason": explain(arm),
                **_margin(arm),
                **_args(evidence, name),
                **parity(evidence, name),
            }
            for name, arm in verdict.arms.items()
        ],
    }


def _swept(evidence: Evidence) -> dict[str, Any]:
    """Without a mean over concurrencies, which would be of no load at all."""
    table = sweep.found(evidence)
    return {"results": [_result(evidence, *one) for one in (sweep.effects(table) if table else ())]}


def _arm(evidence: Evidence, name: str) -> Iterator[dict[str, Any]]:
    arm = evidence.verdict.arms[name]
    if arm.mean is not None:
        yield {"arm": name, "workload": MEAN, **sweep.as_status(arm.mean)}
    if arm.rated is not None:
        yield {"arm": name, "workload": MEAN_AT_A_RATE, **sweep.as_status(arm.rated)}
    for workload, bounds in arm.workloads.items():
        yield _result(evidence, name, workload, bounds)


def _result(evidence: Evidence, arm: str, workload: str, bounds: Bounds) -> dict[str, Any]:
    lengths = _accept_lengths(evidence, arm)
    length = {"acceptLength": f"{lengths[workload]:.3f}"} if workload in lengths else {}
    return {"arm": arm, "workload": workload, **sweep.as_status(bounds), **length, **_tokens(evidence, arm, workload)}


def _tokens(evidence: Evidence, arm: str, workload: str) -> dict[str, str]:
    """How long its answers are, as far as the gate knows: not of a sweep, which it does not judge."""
    found = None if evidence.sweep else evidence.verdict.arms[arm].lengths.get(workload)
    if found is None:
        return {}
    said = sweep.as_status(found)
    return {"tokens": said["ratio"], "tokensLower": said["lower"], "tokensUpper": said["upper"]}


def _accept_lengths(evidence: Evidence, name: str) -> Mapping[str, float]:
    """Workload → mean over valid measurements."""
    found: dict[str, list[float]] = {}
    for one in measurements(evidence.records):
        if one.arm == name and one.valid and "acceptLength" in one.metrics:
            found.setdefault(one.workload, []).append(one.metrics["acceptLength"])
    return {workload: sum(lengths) / len(lengths) for workload, lengths in found.items()}


def happenings(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Happening, ...]:
    known = {record["job"] for record in before.get("rounds", ())}
    rounds = [_round(record) for record in own(after.get("rounds", ())) if record["job"] not in known]
    if "verdict" not in after or "verdict" in before:
        return tuple(rounds)
    verdict = after["verdict"]
    outcome = verdict.get("outcome", "Swept")
    bad = outcome == "Error"
    told = Happening(reason=outcome, note=verdict["message"], type="Warning" if bad else "Normal")
    return (*rounds, told)


def _round(record: Mapping[str, Any]) -> Happening:
    number = record["round"] + 1
    if record.get("error"):
        note = f"round {number}: {record['reason']}: {record['error']}"
        return Happening(reason="RoundFailed", note=note, type="Warning")
    invalid = [point for point in record["points"] if not point["valid"]]
    if invalid:
        first = invalid[0]
        note = (
            f"round {number}: {len(invalid)} points are invalid; {first['arm']} on {first['workload']}: {first['why']}"
        )
        return Happening(reason="RoundInvalid", note=note, type="Warning")
    arms = ", ".join(replicate["arm"] for replicate in record["replicates"])
    return Happening(reason="RoundMeasured", note=f"round {number} on {record['node']}: {arms}")
