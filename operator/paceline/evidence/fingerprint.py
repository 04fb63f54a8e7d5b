"""Hashes of a run's spec: the fingerprint covers what is measured, the question also how it is judged (0033). Neither
covers the incumbent: it is what the answer is compared with, not what is asked."""

from collections.abc import Collection, Iterable

from paceline.core import BASELINE, INCUMBENT, Purpose, default_looks, purpose_of
from paceline.core.canonical import digest, without_empty
from paceline.core.kept import by_value
from paceline.core.manifest import Object

WHY = ("podLabels", "queueName", "measured")
"""Fields about how a run's pods are labelled and queued, and where its rounds come from. No hash covers them, nor
`gate.roundsOf`."""
ENOUGH = "minRequests"
"""Field of a workload: how few requests are enough after the first round. No hash covers it, because a round with fewer
requests is evidence for the same question."""
_RULE = ("gate", "search", "sweep", "budget")
"""Fields about how rounds are judged and how many there may be: part of the question only."""
SERVER_FIELDS = ("target", "engine", "accelerator", "cache", "nodeSelector", "tolerations")
"""Fields shared by all arms of a run. `maxConcurrency` is not one: it bounds the number of requests but does not shape
any."""
PRICE = "pricePerHour"
"""Field of the accelerator that only reports read. No hash covers it."""
_KEPT = 256
"""Maximum number of specs with cached hashes: one pass hashes its pools' specs and their runs' many times."""
RETRACTIONS = "retractions"
"""The only limit that applies while a point is measured (`RoundPlan.retractions`): part of the fingerprint too."""


@by_value(_KEPT)
def question(spec: Object) -> str:
    """Ten hex digits that identify a run's question. Specs that differ only in where rounds come from, or in empty
    fields, ask the same question; so a field added by a later release changes the hash only where it is used."""
    asked = _unpriced(without_incumbent(spec))
    gate = _without(asked.get("gate") or {}, ("roundsOf",))
    return _digest(
        {
            **_without(asked, WHY),
            "gate": gate,
            "arms": _arms(asked),
            "purpose": _purpose(spec),
            "workloads": _workloads(spec, ENOUGH),
        }
    )


@by_value(_KEPT)
def fingerprint(spec: Object) -> str:
    """Ten hex digits that identify what a run measures: server, arms, workloads and how a round is carried out. Another
    gate, budget or workload weight changes the question, not the fingerprint."""
    return _digest(_measured(spec))


def surroundings(spec: Object) -> str:
    """The fingerprint without the candidates. Runs that share it measured their common candidates alike, regardless of
    their other candidates."""
    return _digest(_without(_measured(spec), ("arms",)))


def same_arms(spec: Object, other: Object) -> tuple[str, ...]:
    """Names of the candidates of `spec` that `other` has too, with the same head, shape and arguments; and the
    incumbent, if it is the same."""
    arms = _arms(other)
    return tuple(arm["name"] for arm in _arms(spec) if arm["name"] != BASELINE and arm in arms)


def incumbent(spec: Object) -> Object | None:
    """The incumbent of a run's spec, which is the last of its arms; None without one."""
    last = spec["arms"][-1:]
    return next(iter(_arms({"arms": last})), None) if last and last[0]["name"] == INCUMBENT else None


def without_incumbent(spec: Object) -> Object:
    arms = spec.get("arms", ())
    return narrowed(spec, {arm["name"] for arm in arms[:-1]}) if arms and arms[-1]["name"] == INCUMBENT else spec


def same_server(spec: Object, other: Object) -> bool:
    """Whether both specs start their arms with the same arguments, except those for speculation."""
    one, two = _unpriced(spec), _unpriced(other)
    return all(without_empty(one.get(key)) == without_empty(two.get(key)) for key in SERVER_FIELDS)


def narrowed(spec: Object, names: Collection[str]) -> Object:
    """The spec with only the baseline and these candidates. Default looks become the default for the new number of
    arms."""
    arms = [arm for arm in spec["arms"] if arm["name"] == BASELINE or arm["name"] in names]
    looks = (spec.get("gate") or {}).get("decideAfterRounds")
    if looks is None or tuple(looks) != default_looks(len(spec["arms"])):
        return {**spec, "arms": arms}
    return {**spec, "arms": arms, "gate": {**spec["gate"], "decideAfterRounds": list(default_looks(len(arms)))}}


def _measured(spec: Object) -> Object:
    gate, search = spec.get("gate") or {}, spec.get("search") or {}
    limits = {limit.get("metric"): limit.get("max") for limit in gate.get("limits") or ()}
    return {
        **_without(_unpriced(spec), (*WHY, *_RULE)),
        "arms": _arms(without_incumbent(spec)),
        "purpose": _purpose(spec),
        "parity": gate.get("parity"),
        "workloads": _workloads(spec, ENOUGH, "weight"),
        RETRACTIONS: limits.get(RETRACTIONS) or search.get(RETRACTIONS) or None,
    }


def _unpriced(spec: Object) -> Object:
    return {**spec, "accelerator": _without(spec.get("accelerator") or {}, (PRICE,))}


def _arms(spec: Object) -> list[Object]:
    """Empty arguments of an arm's engine are kept: they replace the shared ones, unlike absent ones."""
    arms = list[Object]()
    for arm in spec.get("arms", ()):
        engine = arm.get("engine") or {}
        arms.append(
            without_empty({**arm, "engine": {**engine, "args": engine["args"] or "none"}} if "args" in engine else arm)
        )
    return arms


def _purpose(spec: Object) -> str:
    """The run's purpose, "" for a gate run; `search: {}` counts as a search although it is empty."""
    purpose = purpose_of(spec)
    return "" if purpose is Purpose.GATE else purpose


def _workloads(spec: Object, *without: str) -> list[Object]:
    return [_without(workload, without) for workload in spec.get("workloads", ())]


def _without(spec: Object, keys: Iterable[str]) -> Object:
    return {key: value for key, value in spec.items() if key not in keys}


def _digest(spec: Object) -> str:
    return digest(without_empty(spec), ensure_ascii=False)
