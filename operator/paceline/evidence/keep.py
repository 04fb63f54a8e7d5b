"""What a run's status keeps of its rounds, and what is made of it again: measurements for the gate, the noise.

Kubernetes has no floats in a schema, so numbers with a fraction are decimal strings of at most six digits.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from paceline.core import BASELINE, Measurement, Workload
from paceline.evidence import clocks
from paceline.evidence.answer import Replicate, RoundResult
from paceline.evidence.failures import BLAMES_THE_SERVER, Failure, of_server
from paceline.evidence.judge import Judged, nothing_accepted
from paceline.evidence.loads import decimal, load_notes, of_load
from paceline.evidence.outputs import outputs_status
from paceline.evidence.prompts import repeated_note
from paceline.evidence.question import RoundPlan, Scalar

FIELDS = {
    "asked": "asked",
    "completed": "completed",
    "outputTokens": "output_tokens",
    "outputThroughput": "output_throughput",
    "steadyThroughput": "steady_throughput",
    "keptRate": "kept_rate",
    "meanTTFT": "mean_ttft",
    "p50TTFT": "p50_ttft",
    "p95TTFT": "p95_ttft",
    "p99TTFT": "p99_ttft",
    "meanTPOT": "mean_tpot",
    "p50TPOT": "p50_tpot",
    "p95TPOT": "p95_tpot",
    "p99TPOT": "p99_tpot",
    "p99ITL": "p99_itl",
    "meanE2E": "mean_e2e",
    "p95E2E": "p95_e2e",
    "errors": "errors",
    "acceptLength": "accept_length",
    "verifyCalls": "verify_calls",
    "retractions": "retractions",
    "draftTokens": "draft_tokens",
}
"""Of a point in status: its field → the `Point`'s."""
COUNTS = frozenset({"asked", "completed", "errors", "outputTokens", "verifyCalls", "retractions"})
METRICS = (
    "steadyThroughput",
    "meanTTFT",
    "p95TTFT",
    "meanTPOT",
    "p95TPOT",
    "p99ITL",
    "meanE2E",
    "p95E2E",
    "acceptLength",
    "outputTokens",
    "retractions",
)
"""What a measurement carries of a point beside the throughput; `Gate.limits` name them, and `kvTokens`, which is the
replicate's."""
UNSEEN = {
    "accept_length": "acceptance is unavailable: whether anything was accepted was not checked",
    "verify_calls": "verify calls are unavailable: whether speculation ran and accepted anything was not checked",
    "retractions": "retractions are unavailable: whether requests lost their place was not checked",
    "draft_tokens": "proposed tokens are unavailable: how deep the engine drafted was not seen",
    "accepted_at": "acceptance by position is unavailable: this engine does not tell it",
}
"""What is said of a number that the engine cannot show (`RoundPlan.unseen`)."""


def round_status(
    plan: RoundPlan,
    result: RoundResult,
    judged: Sequence[Judged],
    job: str,
    node: str,
    image: str = "",
    held_seconds: float | None = None,
    client_image: str = "",
) -> dict[str, Any]:
    """The entry of `status.rounds` of a round that gave a result (docs/architecture.md). Images are those that ran, by
    digest; `held_seconds` how long the round's pod held accelerators, by the client's own clock if nobody says."""
    lasted = result.finished - result.started
    held = lasted if held_seconds is None else max(held_seconds, lasted)
    asked = {workload.name: workload for workload in plan.workloads}
    drafts = {arm.name: arm.drafts for arm in plan.arms}
    retracted = {one.arm for one in judged if one.point and (one.point.retractions or 0) > plan.retractions}
    failed = {one.arm for one in judged if one.point and (one.point.errors or one.point.completed < one.point.asked)}
    suffered = {**dict.fromkeys(failed, Failure.RequestsFailed), **dict.fromkeys(retracted, Failure.Retracted)}
    entry: dict[str, Any] = {
        "round": plan.round,
        "try": plan.attempt,
        "job": job,
        "node": node,
        "startedAt": _rfc3339(result.started),
        "finishedAt": _rfc3339(result.finished),
        "heldSeconds": round(held),
        "idleSeconds": round(max(0.0, held - lasted + result.overhead_seconds)),
        "gpus": list(result.gpus),
    }
    told = {
        "gpuModel": result.gpu_model,
        "driver": result.driver,
        "image": image,
        "clientImage": client_image,
        "paceline": result.paceline,
    }
    entry |= {name: said for name, said in told.items() if said}
    if result.datasets:
        entry["datasets"] = dict(result.datasets)
    if result.prompts:
        entry["prompts"] = dict(result.prompts)
    if result.lines_sha256:
        entry["raw"] = {"path": plan.lines_path, "sha256": result.lines_sha256, "bytes": result.lines_bytes}
    notes = [
        *(UNSEEN[name] for name in plan.unseen if name in UNSEEN),
        *_all_cut(plan, judged),
        *_rests(judged),
        *load_notes(plan, judged),
        *repeated_note(plan.workloads, plan.round, result.prompts),
        *clocks.note((one.arm, one.clocks) for one in result.replicates),
        *result.notes,
    ]
    if notes:
        entry["notes"] = notes
    return entry | {
        "engineVersion": result.engine_version,
        "emulated": result.emulated,
        "replicates": [_replicate(replicate, suffered.get(replicate.arm)) for replicate in result.replicates],
        "points": [_point(one, asked[one.workload], drafts[one.arm]) for one in judged],
        "error": "",
    }


def _rests(judged: Sequence[Judged]) -> list[str]:
    """By arm, where its engine chose not to speculate (0028)."""
    where: dict[str, list[str]] = defaultdict(list)
    for one in judged:
        if one.at_rest:
            where[one.arm].append(one.workload)
    return [
        f"{arm} rested on {', '.join(workloads)}: its engine chose that nothing is drafted under these loads"
        for arm, workloads in where.items()
    ]


def _all_cut(plan: RoundPlan, judged: Sequence[Judged]) -> list[str]:
    """Where answers are cut, all arms write as many tokens whatever they write: the judge's comparison is an empty
    one."""
    most = {one.name: one.dataset.requests * one.dataset.max_tokens for one in plan.workloads}
    points = [one.point for one in judged if one.valid and one.point]
    cut = [name for name in most if all(one.output_tokens == most[name] for one in points if one.workload == name)]
    cut = [name for name in cut if any(one.workload == name for one in points)]
    if not cut:
        return []
    return [f"every answer was cut at its most tokens on {', '.join(cut)}: that arms wrote as many shows nothing there"]


def failed_round(
    *,
    round: int,
    attempt: int,
    job: str,
    node: str,
    error: str,
    reason: Failure,
    held_seconds: int | None = None,
    ended: datetime | None = None,
) -> dict[str, Any]:
    """The entry of a round that gave no result: it counts as a try and measures nothing; all of its time was idle.
    `ended` is when that was known: the next try keeps a distance from it."""
    held = {"heldSeconds": held_seconds, "idleSeconds": held_seconds} if held_seconds is not None else {}
    over = {"finishedAt": _rfc3339(ended.timestamp())} if ended else {}
    return {
        "round": round,
        "try": attempt,
        "job": job,
        "node": node,
        **over,
        **held,
        "replicates": [],
        "points": [],
        "reason": reason.name,
        "error": error,
    }


def measurements(rounds: Iterable[Mapping[str, Any]]) -> list[Measurement]:
    """What the gate reads: every point of the last try of each round that gave a result, in order.

    Its speed is `judged_speed`: of a closed loop in its steady window, at a rate that of a request."""
    kept = {entry["round"]: entry for entry in sorted(rounds, key=_order) if not entry.get("error")}
    return [
        _measurement(number, point, _of_arm(entry, point["arm"]))
        for number, entry in kept.items()
        for point in entry.get("points", ())
    ]


def _of_arm(entry: Mapping[str, Any], arm: str) -> Mapping[str, Any]:
    """Its replicate in that round."""
    return next((one for one in entry.get("replicates", ()) if one["arm"] == arm), {})


def point_noise(rounds: Iterable[Mapping[str, Any]]) -> float | None:
    """The noise of a point: pooled standard deviation of ln throughput over rounds, per arm and workload.

    Near the coefficient of variation for small values (0.003 is 0.3 %). None before anything was measured twice.
    """
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in measurements(rounds):
        if one.valid and one.output_throughput:
            groups[one.arm, one.workload].append(math.log(one.output_throughput))
    repeated = [logs for logs in groups.values() if len(logs) > 1]
    freedom = sum(len(logs) - 1 for logs in repeated)
    if not freedom:
        return None
    means = [math.fsum(logs) / len(logs) for logs in repeated]
    squares = math.fsum((x - mean) ** 2 for logs, mean in zip(repeated, means, strict=True) for x in logs)
    return math.sqrt(squares / freedom)


def _replicate(replicate: Replicate, suffered: Failure | None) -> dict[str, Any]:
    """`suffered` is what its requests came to; its own end, or what it was not, is the better reason."""
    entry: dict[str, Any] = {"arm": replicate.arm}
    if replicate.start_seconds is not None:
        entry["startSeconds"] = decimal(replicate.start_seconds)
    if replicate.exit_code is not None:
        entry["exitCode"] = replicate.exit_code
    if replicate.error:
        entry["error"] = replicate.error
    if failure := of_server(replicate.exit_code, replicate.error) or suffered:
        entry["reason"] = failure.name
    resolved = {key: _text(value) for key, value in replicate.resolved.items()}
    kv = {"kvTokens": replicate.kv_tokens} if replicate.kv_tokens else {}
    gpus = {"clocks": clocks.clocks_status(replicate.clocks)} if replicate.clocks else {}
    parity = {"parity": outputs_status(replicate.outputs)} if replicate.outputs else {}
    differs = {"differs": [str(one) for one in replicate.differs]} if replicate.differs else {}
    return entry | kv | gpus | {"resolved": resolved, "restSHA256": replicate.rest_sha256} | differs | parity


def _point(judged: Judged, workload: Workload, drafts: int | None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "arm": judged.arm,
        "workload": judged.workload,
        "valid": judged.valid,
        "why": judged.why,
    }
    for name, attribute in FIELDS.items():
        value = getattr(judged.point, attribute) if judged.point else None
        if value is not None and math.isfinite(value):
            entry[name] = int(value) if name in COUNTS else decimal(value)
    if judged.at_rest:
        entry["atRest"] = True
    proposed = drafts or (judged.point.draft_tokens if judged.point else None)
    if judged.point and judged.point.accept_length and proposed:
        entry["acceptRate"] = decimal((judged.point.accept_length - 1) / proposed)
    if judged.point and judged.point.accepted_at:
        entry["acceptedAt"] = [decimal(fraction) for fraction in judged.point.accepted_at]
    return entry | (of_load(judged.point, workload) if judged.point else {})


def judged_speed(point: Mapping[str, Any]) -> float | None:
    """Of a point in status, what the gate compares, in output tokens per second: of a request under way where requests
    arrived at a rate (0014), else of all together in the steady window (0025). None, and nothing else in its place,
    where that is not there."""
    return _parsed(point.get("requestSpeed", point.get("steadyThroughput")))


def _measurement(number: int, point: Mapping[str, Any], replicate: Mapping[str, Any]) -> Measurement:
    throughput = judged_speed(point)
    metrics = {name: _parsed(point[name]) for name in METRICS if name in point}
    if "kvTokens" in replicate:
        metrics["kvTokens"] = _parsed(replicate["kvTokens"])
    garbage = throughput is None or throughput <= 0 or None in metrics.values()
    read = {name: value for name, value in metrics.items() if value is not None}
    valid = point.get("valid") is True and not garbage
    length, calls = read.get("acceptLength"), _parsed(point.get("verifyCalls"))
    accepted_nothing = nothing_accepted(length, calls) and not point.get("atRest")
    return Measurement(
        round=number,
        arm=point["arm"],
        workload=point["workload"],
        output_throughput=throughput,
        valid=valid,
        nothing_accepted=valid and point["arm"] != BASELINE and accepted_nothing,
        ended=_ended(replicate),
        saturated=point.get("saturated") is True,
        metrics=read,
    )


def _ended(replicate: Mapping[str, Any]) -> str:
    """Why its server did not get through the round: of the baseline whatever happened to it, of a candidate what
    blames its own server and not the one who asked."""
    reason = str(replicate.get("reason", ""))
    blamed = replicate.get("arm") == BASELINE or reason in {failure.name for failure in BLAMES_THE_SERVER}
    return reason if blamed else ""


def _parsed(value: Any) -> float | None:
    """A finite number, from a number or its text; None for anything else."""
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Scalar) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _rfc3339(epoch: float) -> str:
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _order(entry: Mapping[str, Any]) -> tuple[int, int]:
    return entry["round"], entry["try"]
