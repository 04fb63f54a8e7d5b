"""Reads a manifest of any release: missing or non-numeric values become None, never an exception."""

import math
from decimal import InvalidOperation
from typing import Any, TypeVar

from paceline.core import BASELINE, INCUMBENT, Bounds, Gate, Limit, default_looks
from paceline.core.manifest import Object
from paceline.core.record import finite, number
from paceline.core.text import fraction
from paceline.core.workload import workload_name

Default = TypeVar("Default")
NEEDED = ("pool", "target", "engine", "accelerator", "arms", "workloads")


def refuse(manifest: Object) -> None:
    """Raises ValueError, which names the field, for a manifest that is not a BenchmarkRun."""
    name = (manifest.get("metadata") or {}).get("name")
    if not name:
        raise ValueError("metadata.name: must be the name of a BenchmarkRun")
    spec = manifest.get("spec") or {}
    for field in NEEDED:
        if not spec.get(field):
            raise ValueError(f"{name}: spec.{field} is missing: this is not a BenchmarkRun as the API server stores it")
    if spec["arms"][0].get("name") != BASELINE:
        raise ValueError(f"{name}: spec.arms[0].name must be {BASELINE}: the others are compared with it")


def fraction_number(value: Any) -> float | None:
    """Specs have fractions as decimal strings."""
    try:
        read = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def ordered_bounds(ratio: float | None, lower: float | None, upper: float | None) -> Bounds | None:
    """Bounds if they are positive and in order, else None."""
    ratio, lower, upper = map(finite, (ratio, lower, upper))
    if ratio is None or lower is None or upper is None or not 0 < lower <= ratio <= upper:
        return None
    return Bounds(ratio=ratio, lower=lower, upper=upper)


def gate(spec: Object) -> Gate:
    """The run's gate; for a sweep, a gate with the sweep's confidence and its last round as the only look."""
    given, default, looks = spec.get("gate") or {}, Gate(), default_looks(len(spec["arms"]))
    if (sweep := spec.get("sweep")) is not None:
        last = sweep.get("rounds") or looks[-1]
        return Gate(confidence=_share(sweep.get("confidence"), default.confidence), decide_after_rounds=(last,))
    return Gate(
        min_improvement=_share(given.get("minImprovement"), default.min_improvement),
        max_regression=_share(given.get("maxRegression"), default.max_regression),
        max_slowdown=_share(given.get("maxSlowdown"), default.max_slowdown),
        confidence=_share(given.get("confidence"), default.confidence),
        limits=tuple(map(_limit, given.get("limits") or ())),
        decide_after_rounds=tuple(given.get("decideAfterRounds") or looks),
    )


def has_incumbent(spec: Object) -> bool:
    return any(arm["name"] == INCUMBENT for arm in spec["arms"])


def _share(text: Any, default: Default) -> float | Default:
    try:
        return fraction(text)
    except (AttributeError, InvalidOperation):
        return default


def _limit(entry: Object) -> Limit:
    return Limit(
        metric=entry["metric"],
        max_increase=_share(entry.get("maxIncrease"), None),
        max_decrease=_share(entry.get("maxDecrease"), None),
        max=entry.get("max"),
    )


def rated(spec: Object) -> tuple[str, ...]:
    """The workloads at a rate, by their names in results."""
    return tuple(named_workload(entry) for entry in spec["workloads"] if fraction_number(entry.get("requestRate")))


def named_workload(entry: Object) -> str:
    """The workload's name in results."""
    return workload_name(
        entry["name"], entry["concurrency"], fraction_number(entry.get("requestRate")), entry.get("rampFrom") or None
    )


def at_one_load(entry: Object) -> bool:
    """Whether it is a closed loop with constant concurrency: no ramp, and not at a rate."""
    return not entry.get("requestRate") and not entry.get("rampFrom")


def model_name(entry: Object) -> str:
    """hf://OWNER/NAME@COMMIT, with the revision if the commit is not known. Also for prompts."""
    at = (entry.get("commit") or "")[:12] or entry.get("revision", "")
    return "@".join(filter(None, [entry.get("source", ""), at]))


def gpus_of(spec: Object) -> int:
    """Accelerators of a server."""
    accelerator = spec["accelerator"]
    return max(1, (accelerator.get("count") or 1) * (accelerator.get("nodes") or 1))


def price(spec: Object) -> float | None:
    """Of one accelerator per hour, if it is written."""
    written = number(spec["accelerator"].get("pricePerHour"))
    return written if written > 0 else None
