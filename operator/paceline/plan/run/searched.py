"""Status and end of a search run. Its scores are optimistic, so it promotes nothing: a gate decides about its result on
other prompts."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from paceline.api import Reason
from paceline.api.run_status import Result, RunVerdict, SearchedArm, SearchProgress
from paceline.core import BASELINE, Bounds, Outcome
from paceline.core.text import count
from paceline.evidence.failures import Failure
from paceline.evidence.round_status import judged_speed
from paceline.plan.run.budget import exhausted
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.no_more_rounds import given_up
from paceline.plan.run.origin import own
from paceline.plan.run.scope import sampled

if TYPE_CHECKING:
    from paceline.search import Found

MEAN = "mean"
FOUND, NOTHING_FASTER = "Found", "NothingFaster"


def conclusion(evidence: Evidence) -> Conclusion | None:
    """The run's end; None while another round is needed."""
    from paceline.search import Found

    if why := given_up(evidence) or _nothing_runs(evidence):
        return error(*why)
    step, spent = evidence.searching.step, exhausted(evidence)
    if isinstance(step, Found):
        spent = None
    elif not spent:
        return None
    elif not evidence.results:
        return _ended(evidence, Outcome.INCONCLUSIVE, *spent)
    else:
        step = evidence.searching.ended_now
    if spent and (step.winner == BASELINE or step.speed_up is None):
        return _ended(evidence, Outcome.INCONCLUSIVE, f"{spent[0]}; {_took(evidence)}", spent[1])
    if step.winner is None or (not step.measured_on and step.winner == BASELINE):
        failed = next((arm.error for arm in evidence.searching.arms_so_far if arm.error), "no arm was measured")
        return error(f"nothing could be measured: {failed}", Failure.NotMeasured.name)
    told = _told(evidence, step, spent[0] if spent else "")
    if step.winner == BASELINE:
        return _ended(evidence, Outcome.REJECT, told, NOTHING_FASTER)
    verdict = RunVerdict(
        winner=step.winner,
        rounds=len(evidence.results),
        reason=spent[1] if spent else FOUND,
        message=told,
        speedup=step.speed_up.ratio if step.speed_up else None,
    )
    return Conclusion(reason=Reason.Found, message=told, verdict=verdict)


MOST_FAILED = 4
"""Candidates that keep failing before any is measured on all workloads: the head, or a common argument, is to blame."""


def _nothing_runs(evidence: Evidence) -> tuple[str, str] | None:
    """Why the search need not try further arms: message and reason."""
    failed = [arm for arm in evidence.searching.arms_so_far if arm.error]
    everywhere = len(evidence.spec.workloads)
    measured = any(arm.points >= everywhere for arm in evidence.searching.arms_so_far if arm.name != BASELINE)
    if measured or len(failed) < MOST_FAILED:
        return None
    return f"{len(failed)} candidates failed, and none was measured: {failed[0].error}", Failure.NotMeasured.name


def _ended(evidence: Evidence, outcome: Outcome, message: str, reason: str) -> Conclusion:
    verdict = RunVerdict(outcome=outcome.value, winner="", rounds=len(evidence.results), reason=reason, message=message)
    reasons = {Outcome.INCONCLUSIVE: Reason.Inconclusively, Outcome.REJECT: Reason.Reject}
    return Conclusion(reason=reasons[outcome], message=message, verdict=verdict)


def _told(evidence: Evidence, found: "Found", spent: str) -> str:
    """The result, its certainty, and its cost."""
    took = _took(evidence)
    if found.winner == BASELINE:
        best = next((arm for arm in evidence.searching.arms_so_far if arm.speed), None)
        behind = f"; the best of them, {best.name}, is {_bounds(best.speed)}" if best and best.speed else ""
        sentence = f"no candidate is faster than the baseline{behind}"
    else:
        speed = f" {_bounds(found.speed_up)} as fast as the baseline," if found.speed_up else ""
        sentence = f"{found.winner} is{speed} the best that was found"
    cut = f"the search was not finished: {spent}" if spent else ""
    notes = (sentence, took, cut, *found.notes, sampled(evidence.spec))
    return "; ".join(filter(None, notes))


def _took(evidence: Evidence) -> str:
    measured = [arm for arm in evidence.searching.arms_so_far if arm.points and arm.name != BASELINE]
    points = len(evidence.searching.points)
    return f"{len(measured)} of {len(evidence.spec.arms) - 1} candidates were measured, in {count(points, 'point')}"


def _bounds(bounds: Bounds | None) -> str:
    return f"{bounds.ratio:.2f}x ({bounds.lower:.2f}–{bounds.upper:.2f})" if bounds else "of unknown speed"


# Status


def search_progress(evidence: Evidence) -> SearchProgress:
    """`status.search`."""
    standing = evidence.searching.arms_so_far
    return SearchProgress(
        candidates=len(evidence.spec.arms) - 1,
        points=len(evidence.searching.points),
        server_starts=sum(len(record.replicates) for record in own(evidence.results)),
        next=evidence.searching.why,
        arms=tuple(
            SearchedArm(
                arm=arm.name,
                state=arm.state.value,
                points=arm.points,
                ratio=arm.speed.ratio if arm.speed else None,
                lower=arm.speed.lower if arm.speed else None,
                upper=arm.speed.upper if arm.speed else None,
                why=arm.error,
            )
            for arm in standing
        ),
    )


def search_results(evidence: Evidence) -> tuple[Result, ...]:
    """Each candidate's ratio to the baseline, on workloads on which both were measured, and its estimated mean. Ratios
    of single workloads have no bounds, because they compare points of different rounds."""
    means = [
        Result(arm=arm.name, workload=MEAN, ratio=arm.speed.ratio, lower=arm.speed.lower, upper=arm.speed.upper)
        for arm in evidence.searching.arms_so_far
        if arm.speed
    ]
    return (*means, *_by_workload(evidence))


def _by_workload(evidence: Evidence) -> Iterator[Result]:
    speeds = _speeds(evidence)
    for arm in evidence.spec.arms[1:]:
        for workload in evidence.spec.workloads:
            own, base = speeds.get((arm.name, workload.name)), speeds.get((BASELINE, workload.name))
            if own and base:
                length = evidence.accept_lengths.get((arm.name, workload.name))
                ratio = _mean(own) / _mean(base)
                yield Result(arm=arm.name, workload=workload.name, ratio=ratio, accept_length=length)


def _speeds(evidence: Evidence) -> dict[tuple[str, str], list[float]]:
    """Arm and workload → tokens per second of its valid points."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in evidence.results:
        for point in record.points:
            if point.valid and (speed := judged_speed(point)):
                found.setdefault((point.arm, point.workload), []).append(speed)
    return found


def _mean(values: Iterable[float]) -> float:
    each = list(values)
    return sum(each) / len(each)
