"""The promoted candidate: its evidence, and how long it stays (decision 0032). It ends with a rejection by a verdict on
the present question, in Manual mode by a person, or with a spec that asks for another server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paceline.api.run_status import Result
from paceline.api.status import Caveat, ServingEvidence, Target
from paceline.core import BASELINE, Arm, PromotionMode, Purpose
from paceline.engines import ENGINES
from paceline.evidence import same_server
from paceline.evidence.changes import summary
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run

ANYWAY = "PromotedAnyway"
"""Reason of a target promoted by promote-anyway: it stays although it has no evidence."""


def promoted_before(pool: Pool) -> Target | None:
    """The pool's target if it is a promoted candidate; if status was lost, the one that the servers run."""
    target = pool.remembered.target or _promoted_servers(pool)
    earned = target is not None and (target.evidence.run or target.reason == ANYWAY)
    return target if target and earned and target.arm != BASELINE else None


def _promoted_servers(pool: Pool) -> Target | None:
    """The target, from the candidate that the servers run and from the run that promoted it on the same server."""
    arm = _candidate_at(pool, pool.servers.revision) if pool.servers else None
    run = next((run for run in reversed(pool.runs) if arm and _had_promoted(run, arm, pool.wanted)), None)
    if pool.servers is None or arm is None or run is None:
        return None
    return Target(
        revision=pool.servers.revision,
        arm=arm.name,
        fingerprint=run.fingerprint,
        evidence=evidence_of(run, arm.name),
        message=result_sentence(run),
    )


def evidence_of(run: Run, winner: str) -> ServingEvidence:
    """The run as evidence for `winner`, with caveats; without a speed-up if the run has no result for it."""
    speed = run.ratio(winner)
    marks: dict[Caveat, bool] = {"Emulated": run.status.emulated is True, "Imported": run.status.imported}
    caveats = tuple(caveat for caveat, holds in marks.items() if holds)
    return ServingEvidence(run=run.name, speedup=speed.ratio if speed else None, caveats=caveats)


def _candidate_at(pool: Pool, revision: str) -> Arm | None:
    """The spec's candidate with this revision."""
    return next((arm for arm in pool.spec.arms[1:] if pool.revision(arm) == revision), None)


def _had_promoted(run: Run, arm: Arm, wanted: Mapping[str, Any]) -> bool:
    """Whether the run's winner is this arm, under any name, on the server that is wanted now."""
    then = next((entry for entry in run.spec["arms"] if entry["name"] == run.winner), None)
    now = next((entry for entry in wanted["arms"] if entry["name"] == arm.name), None)
    same = then is not None and (now is None or {**then, "name": ""} == {**now, "name": ""})
    return same and run.outcome == "Promote" and same_server(run.spec, wanted)


def result_sentence(run: Run) -> str:
    """The result of a run that promotes, in a sentence."""
    where = ", measured without a cluster" if run.status.imported else ""
    return f"{run.name}: {run.winner} is {speedup_text(run.ratio(run.winner))} as fast as the baseline{where}"


def speedup_text(speed: Result | None) -> str:
    """`1.36x (1.34–1.39)`."""
    if speed is None or speed.ratio is None or speed.lower is None or speed.upper is None:
        return "faster"
    return f"{speed.ratio:.2f}x ({speed.lower:.2f}–{speed.upper:.2f})"


def still_rendered(pool: Pool) -> Arm | None:
    """The spec's candidate that equals the promoted one, under any name."""
    target = promoted_before(pool)
    return _candidate_at(pool, target.revision) if target else None


def reshaped(pool: Pool) -> Arm | None:
    """The spec's candidate with the promoted one's name, head and server but another shape. The promoted one serves
    until the new shape is decided."""
    target = promoted_before(pool)
    if target is None:
        return None
    run = next((run for run in pool.runs if run.name == target.evidence.run), None)
    now = next((arm for arm in pool.wanted["arms"][1:] if arm["name"] == target.arm), None)
    then = next((arm for arm in run.spec["arms"] if arm["name"] == target.arm), None) if run else None
    if run is None or now is None or then is None or target.revision not in pool.kept:
        return None
    same = same_server(run.spec, pool.wanted) and now.get("draft") == then.get("draft")
    return pool.arms[now["name"]] if same and _has_room(pool, run.spec) else None


def _has_room(pool: Pool, before: Mapping[str, Any]) -> bool:
    """Whether the engine makes room for as many requests as at the load in a run's spec."""
    load = before.get("maxConcurrency") or max(workload["concurrency"] for workload in before["workloads"])
    room = ENGINES[pool.server.engine.type].running_requests
    return room(replace(pool.server, max_concurrency=load)) == room(pool.server)


def may_stay(pool: Pool) -> Arm | None:
    """The spec's candidate for which the promoted one keeps serving; None if it does not."""
    waits = manual(pool) or pool.decided is None or pool.decided.outcome == "Error"
    if arm := still_rendered(pool):
        stays = manual(pool) or overridden(pool) or not refuted(pool.decided, arm.name)
        return arm if stays else None
    return reshaped(pool) if waits else None


def overridden(pool: Pool) -> bool:
    """Whether a promote-anyway request overrides the verdict that counts now. It overrides every verdict on the same
    measurement: under another gate, for fewer candidates, or in another attempt."""
    target = promoted_before(pool)
    if target is None or target.reason != ANYWAY:
        return False
    return target.fingerprint == (pool.decided.fingerprint if pool.decided else pool.fingerprint)


def refuted(run: Run | None, arm: str) -> bool:
    """Whether the verdict rejects this candidate, or all of them. Error and Inconclusive reject none, and a gate about
    a search's result does not reject other candidates."""
    if run is None or run.outcome == "Error":
        return False
    verdicts = {verdict.arm: verdict.outcome for verdict in run.status.arm_verdicts or ()}
    compared = {entry["name"] for entry in run.spec["arms"]}
    return verdicts.get(arm) == "rejected" or (run.outcome == "Reject" and arm in compared and not run.searches)


def manual(pool: Pool) -> bool:
    return pool.deployment.promotion.mode is PromotionMode.MANUAL


def asked_anew(pool: Pool) -> str:
    """What changed from the last decided question to the present one; "" if none was decided."""
    last = _decided_last(pool)
    return summary(last.spec, pool.wanted) if last else ""


def _decided_last(pool: Pool) -> Run | None:
    """The run whose winner is served, if its question is not the present one; else the latest such run."""
    searches = pool.run_spec.purpose is Purpose.SEARCH
    alike = [run for run in pool.runs if run.searches == searches and (run.outcome or run.found)]
    others = [run for run in alike if run is not pool.decided and run.question != pool.question]
    evidence = pool.remembered.target.evidence.run if pool.remembered.target else None
    latest = sorted(others, key=lambda run: (run.name == evidence, run.completion_time))
    return latest[-1] if latest else None
