"""Which points of a round may be believed. Pods report numbers; what is valid is decided here, and can be again.

A rule is a function from what is known to why the point is invalid, or "" if the rule has nothing against it. The
first rule that objects gives the reason. What is absent or not a number never passes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from paceline.evidence.failures import Failure, of_server
from paceline.evidence.result import Point, Replicate, RoundResult
from paceline.evidence.round_plan import ArmCommand, RoundPlan

ABSURD_LENGTHS = 0.25
"""By which fraction one of two arms may write more tokens than the other in one round. Greedy answers part by rounding
and then end elsewhere: that varies by some percent between rounds, which the gate looks at over all of them (0023)."""
FEW_ANSWERS = 1.2
"""Of few answers more: this over the root of their number. In the simulated rows of docs/validity.md at most 2 % of
honest rounds of four workloads are beyond it, whatever share of 6, 24, 64 or 96 answers parts."""
NOTHING_ACCEPTED_LENGTH = 1.005
FEWEST_VERIFY_CALLS = 100
ROUNDED = 0.005
"""An acceptance length may be said in hundredths."""
UNDER_LOAD = frozenset({Failure.OutOfMemory, Failure.ServerCrashed, Failure.TimedOut})
"""What a load does to a server. It begins with that load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One point of the plan. `point` is None where nothing was measured; `why` is empty if and only if it is valid."""

    arm: str
    workload: str
    valid: bool
    why: str
    point: Point | None
    at_rest: bool = False
    """Nothing was accepted under this load because the engine chose so: under another it got something (0028)."""

    @property
    def nothing_accepted(self) -> bool:
        """A measurement, not a fault: the head is no use on this target."""
        return (
            self.valid
            and not self.at_rest
            and self.point is not None
            and nothing_accepted(self.point.accept_length, self.point.verify_calls)
        )


def nothing_accepted(accept_length: float | None, verify_calls: float | None) -> bool:
    """Acceptance length ≤ 1.005 over at least 100 verify calls."""
    return (
        accept_length is not None
        and verify_calls is not None
        and accept_length <= NOTHING_ACCEPTED_LENGTH
        and verify_calls >= FEWEST_VERIFY_CALLS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that the rules see of one point: its arm and replicate, and the baseline's. None: not there."""

    arm: ArmCommand
    replicate: Replicate | None
    point: Point | None
    compared: tuple[str, ...]
    baseline: Replicate | None
    baseline_point: Point | None
    at_a_rate: bool = False
    unseen: tuple[str, ...] = ()
    """Numbers that this engine cannot show."""
    parity: bool = False
    """What the arms answer was asked for, too."""
    retractions: int = 0
    """Requests of a point that a server may take back."""
    apart: bool = False
    """Each workload stands alone."""


Rule = Callable[[Case], str]
Measured = Callable[[Case, Point], str]


def was_run(case: Case) -> str:
    return "" if case.replicate else "the arm was not run"


def server_lived(case: Case) -> str:
    """Where workloads stand alone, only those that it did not live through are spoilt by its end."""
    if case.replicate is None or (case.point and case.apart and _ended_under_load(case.replicate)):
        return ""
    return _end(case.replicate)


def arguments_as_expected(case: Case) -> str:
    return case.arm.other_than_expected(case.replicate.resolved) if case.replicate else ""


def arguments_equal(case: Case) -> str:
    """Nothing but the speculation, and what it moves, may differ from the baseline. One that ended before it was
    measured says nothing."""
    if case.replicate is None or case.baseline is None or (_end(case.baseline) and not case.baseline_point):
        return ""
    for key in case.compared:
        if key not in case.replicate.resolved:
            return f"the server does not report its {key}"
        mine, base = case.replicate.resolved[key], case.baseline.resolved.get(key, "unsaid")
        if mine != base:
            return f"{key} is {mine}, and {base} on the baseline"
    if differs := case.replicate.differs:
        more = f" (the first of {len(differs)} that differ)" if len(differs) > 1 else ""
        return f"{differs[0]}{more}"
    if differs is not None and case.replicate.rest_sha256 != case.baseline.rest_sha256:
        return "an argument differs from the baseline's; which one is in the round's full lines on the cache volume"
    return ""


def was_measured(case: Case) -> str:
    return "" if case.point else "nothing was measured"


def measured(rule: Measured) -> Rule:
    """A rule about numbers; says nothing where there are none (`was_measured` does)."""

    def of(case: Case) -> str:
        return rule(case, case.point) if case.point else ""

    of.__name__ = rule.__name__
    return of


@measured
def all_completed(_: Case, point: Point) -> str:
    return "" if 0 < point.asked == point.completed else f"{point.completed} of {point.asked} requests completed"


@measured
def no_errors(_: Case, point: Point) -> str:
    return "" if point.errors == 0 else f"{point.errors} requests failed"


@measured
def first_token_took_time(_: Case, point: Point) -> str:
    times = (point.mean_ttft, point.p95_ttft)
    return "" if all(_positive(time) for time in times) else "no time to first token"


@measured
def throughput_is_a_number(case: Case, point: Point) -> str:
    """In the steady window, which is what the gate compares of a closed loop (0025); nothing stands in for it."""
    if case.at_a_rate or _positive(point.steady_throughput):
        return ""
    if point.steady_throughput is None:
        return "there was no time at which its requests were steadily under way: no throughput"
    return f"the throughput is {point.steady_throughput}"


@measured
def speed_is_a_number(case: Case, point: Point) -> str:
    """At a rate it is what the gate compares (0014)."""
    good = not case.at_a_rate or _positive(point.request_speed)
    return "" if good else f"the speed of a request is {point.request_speed}"


def largest_difference(answers: int) -> float:
    """Of the output tokens of so many answers on two arms, as a fraction, before the round is no comparison."""
    return max(ABSURD_LENGTHS, FEW_ANSWERS / math.sqrt(max(1, answers)))


@measured
def tokens_are_comparable(case: Case, point: Point) -> str:
    base = case.baseline_point.output_tokens if case.baseline_point else None
    if not _positive(base) or not _positive(point.output_tokens):
        return "the output tokens cannot be compared with the baseline's"
    most = largest_difference(point.completed)
    if max(point.output_tokens / base, base / point.output_tokens) > 1 + most:
        return (
            f"{point.output_tokens} output tokens, and {base} on the baseline: in {point.completed} answers they may "
            f"differ by {most:.0%}"
        )
    return ""


@measured
def nothing_but_the_candidates_speculated(case: Case, point: Point) -> str:
    """What a candidate is compared with has no draft."""
    base = case.baseline_point
    if base and (base.verify_calls or base.accept_length is not None):
        return f"speculation was running on the baseline: {base.verify_calls} verify calls"
    return ""


@measured
def speculation_ran(case: Case, point: Point) -> str:
    if not case.arm.candidate:
        return ""
    if case.arm.engine_chooses_depth and case.replicate and point.verify_calls == 0:
        ran = any(map(_ran, case.replicate.points))
        return "" if ran else "no speculation was running on any workload: the engine proposed nothing at these loads"
    if "verify_calls" not in case.unseen and not _positive(point.verify_calls):
        return "no speculation was running: no verify calls"
    if "accept_length" not in case.unseen and not _positive(point.accept_length):
        return "no speculation was running: no acceptance length"
    return ""


@measured
def length_is_possible(case: Case, point: Point) -> str:
    """Every verify call adds a token of its own, and at most all of its drafts. These may not be known."""
    length, drafts = point.accept_length, case.arm.drafts
    if not case.arm.candidate or not _positive(length):
        return ""
    if length < 1 - ROUNDED:
        return f"the acceptance length is {length:g}, and the minimum is 1"
    if drafts is not None and length > drafts + 1 + ROUNDED:
        return f"the acceptance length is {length:g}, and {drafts + 1} is the maximum"
    return ""


@measured
def none_retracted(case: Case, point: Point) -> str:
    """Or as many as the gate's limit allows."""
    if point.retractions is None:
        return "" if "retractions" in case.unseen else "retractions unknown"
    return f"{point.retractions} requests were retracted" if retracted(case, point) else ""


def retracted(case: Case, point: Point) -> bool:
    return point.retractions is not None and point.retractions > case.retractions


def outputs_compared(case: Case) -> str:
    """A round answers the whole question or is no evidence. Whether outputs differ is the gate's affair."""
    if not (case.parity and case.arm.candidate and case.replicate):
        return ""
    found = case.replicate.outputs
    why = found.unknown if found else "the client did not ask for them"
    return f"the outputs were not compared: {why}" if why else ""


RULES: tuple[Rule, ...] = (
    was_run,
    server_lived,
    arguments_as_expected,
    arguments_equal,
    was_measured,
    all_completed,
    no_errors,
    first_token_took_time,
    throughput_is_a_number,
    speed_is_a_number,
    nothing_but_the_candidates_speculated,
    speculation_ran,
    length_is_possible,
    none_retracted,
    tokens_are_comparable,
    outputs_compared,
)


def judge(plan: RoundPlan, result: RoundResult) -> tuple[Judged, ...]:
    """Every point that the plan asked for, in its order, valid or not and why."""
    replicates = {replicate.arm: replicate for replicate in result.replicates}
    base = next((replicates.get(arm.name) for arm in plan.arms if not arm.candidate), None)
    judged = []
    for arm in plan.arms:
        replicate = replicates.get(arm.name)
        for workload in plan.workloads:
            case = Case(
                arm=arm,
                replicate=replicate,
                point=_point(replicate, workload.name),
                compared=plan.compared,
                baseline=base,
                baseline_point=_point(base, workload.name),
                at_a_rate=workload.rate is not None,
                unseen=plan.unseen,
                parity=plan.parity is not None,
                retractions=plan.retractions,
                apart=plan.apart,
            )
            why = next(filter(None, (rule(case) for rule in RULES)), "")
            judged.append(
                Judged(
                    arm=arm.name,
                    workload=workload.name,
                    valid=not why,
                    why=why,
                    point=case.point,
                    at_rest=_at_rest(case),
                )
            )
    return tuple(judged)


def _at_rest(case: Case) -> bool:
    """Beside a workload on which the same server got something accepted: without one, its head is no use."""
    if not (case.arm.engine_chooses_depth and case.point and case.replicate):
        return False
    return not _accepted(case.point) and any(map(_accepted, case.replicate.points))


def _ran(point: Point) -> bool:
    return point.verify_calls != 0 and (bool(point.verify_calls) or point.accept_length is not None)


def _accepted(point: Point) -> bool:
    return _ran(point) and _positive(point.accept_length) and point.accept_length > NOTHING_ACCEPTED_LENGTH


def _end(replicate: Replicate) -> str:
    """Why the server did not live to the end; "" if it did."""
    exited = "" if replicate.exit_code is None else f"the server exited with {replicate.exit_code}"
    return ": ".join(filter(None, [exited, replicate.error]))


def _ended_under_load(replicate: Replicate) -> bool:
    """Of whatever else goes wrong nobody knows since when it did (`pods/round/contamination.py`)."""
    return of_server(replicate.exit_code, replicate.error) in UNDER_LOAD


def _point(replicate: Replicate | None, workload: str) -> Point | None:
    return next((point for point in replicate.points if point.workload == workload), None) if replicate else None


def _positive(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0
