"""What a run measures is one thing, by which rule that is judged another (0033): names for both, from a run's spec."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from paceline.core import BASELINE, default_looks

Spec = Mapping[str, Any]
"""Of a BenchmarkRun, as `run_manifest_spec` writes it."""

WHY = ("attempt", "trigger", "token", "podLabels", "roundsOf")
"""Why a run was started, and how its pods are called: no part of anything that is asked."""
RULE = ("gate", "budget")
"""How rounds are judged, and how many of them there may be."""
SERVER = ("target", "engine", "accelerator", "cache", "nodeSelector", "largestConcurrency")
"""What all arms of a run share."""
RETRACTIONS = "retractions"
"""The one limit that is held against a point when it is measured (`RoundPlan.retractions`), not when it is judged."""


def question(spec: Spec) -> str:
    """Ten hex digits that name what a run is asked: equal for specs that differ only in why they were started, or in
    what is empty (a field that a later release adds moves no question as long as nobody uses it)."""
    return _digest(_without(spec, WHY))


def fingerprint(spec: Spec) -> str:
    """Ten hex digits that name what a run measures: server, arms, workloads and how a round is carried out. Another
    gate, another budget or another weight of a workload is another question to the same rounds."""
    return _digest(_measured(spec))


def surroundings(spec: Spec) -> str:
    """The fingerprint but for the candidates: where it is the same, a candidate was measured alike whoever else was."""
    return _digest(_without(_measured(spec), ("arms",)))


def same_arms(spec: Spec, other: Spec) -> tuple[str, ...]:
    """Names of the candidates of `spec` that `other` has too, each with the same head, shape and arguments."""
    theirs = [_said(arm) for arm in other["arms"]]
    return tuple(arm["name"] for arm in spec["arms"] if arm["name"] != BASELINE and _said(arm) in theirs)


def same_server(spec: Spec, other: Spec) -> bool:
    """What the arms of both are started with is the same but for what each of them speculates with."""
    return all(_said(spec.get(key)) == _said(other.get(key)) for key in SERVER)


def narrowed(spec: Spec, names: Collection[str]) -> Spec:
    """The question about the baseline and these candidates alone. Looks that nobody chose are those of so many arms."""
    arms = [arm for arm in spec["arms"] if arm["name"] == BASELINE or arm["name"] in names]
    looks = spec["gate"].get("decideAfterRounds")
    if looks is None or tuple(looks) != default_looks(len(spec["arms"])):
        return {**spec, "arms": arms}
    return {**spec, "arms": arms, "gate": {**spec["gate"], "decideAfterRounds": list(default_looks(len(arms)))}}


def _measured(spec: Spec) -> Spec:
    limits = (spec.get("gate") or {}).get("limits") or ()
    counted = next((limit.get("maximum") for limit in limits if limit.get("metric") == RETRACTIONS), None)
    workloads = [_without(workload, ("weight",)) for workload in spec.get("workloads", ())]
    return {**_without(spec, (*WHY, *RULE)), "workloads": workloads, RETRACTIONS: counted or None}


def _without(said: Spec, keys: Iterable[str]) -> Spec:
    return {key: value for key, value in said.items() if key not in keys}


def _digest(spec: Spec) -> str:
    canonical = json.dumps(_said(spec), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:10]


def _said(value: Any) -> Any:
    """Without the fields that are empty; the items of a list all count."""
    if isinstance(value, Mapping):
        kept = {key: _said(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None and inner not in ({}, [], "")}
    return [_said(inner) for inner in value] if isinstance(value, list | tuple) else value
