"""Which points of a round are valid. Pods only report numbers; validity is decided here and can be decided again later.

A rule is a function from a case to an `Objection`, or to None. A point without objections is valid; the first objection
gives the reason in status. A number that is absent or not finite never passes.
"""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from paceline.core import INCUMBENT, Workload
from paceline.core.text import count
from paceline.engines.release import release
from paceline.evidence.failures import Failure, of_server
from paceline.evidence.result import Point, Replicate, RoundResult
from paceline.evidence.round_plan import ArmCommand, RoundPlan

ABSURD_LENGTHS = 0.25
"""How many more tokens, as a fraction, one of two arms may write than the other in one round. Greedy answers that
diverge by rounding end at other lengths: totals vary by some percent per round, and the gate bounds them over all
rounds."""
FEW_ANSWERS = 1.2
"""For few answers the fraction is this divided by the square root of their number. In docs/reports/error-rates.md at
most 2 % of honest rounds of four workloads exceed it, for 6, 24, 64 or 96 answers and any diverging share."""
NOTHING_ACCEPTED_LENGTH = 1.005
FEWEST_VERIFY_CALLS = 100
MOST_MALFORMED = 0.05
"""Share of a point's answers that may violate the requested format; one answer always may."""
MOST_CPU = 0.8
"""Largest share of a CPU that the client may use: it needs the rest to keep its queue short."""
MOST_LAG = 0.02
"""Maximum mean wait of an event for the client, as a fraction of a request's mean time. A request waits twice: to be
sent, and for its end to be noticed. So, at this maximum, a true ratio r is measured as 1 + 0.96 (r - 1)."""
LAG_SECONDS = 0.02
"""Lag in seconds of any process on a busy machine: 1 to 9 ms were seen with five times as much work as cores."""
ROUNDED = 0.005
"""Tolerance for engines that report acceptance lengths in hundredths."""
UNDER_LOAD = frozenset({Failure.OutOfMemory, Failure.ServerCrashed, Failure.TimedOut})
"""Failures that a load causes; points measured before that load can stay valid."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a point is invalid: `failure` for programs, `message` for people."""

    failure: Failure
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One point of the plan. `point` is None if nothing was measured."""

    arm: str
    workload: str
    point: Point | None
    objections: tuple[Objection, ...] = ()
    """Objections of all rules, in the rules' order."""
    at_rest: bool = False
    """Nothing was accepted under this load because the engine chose not to draft; under another load it did."""

    @property
    def valid(self) -> bool:
        return not self.objections

    @property
    def why(self) -> str:
        """Why it is invalid; "" if it is valid."""
        return self.objections[0].message if self.objections else ""

    @property
    def nothing_accepted(self) -> bool:
        """A valid measurement shows that the head is useless."""
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
    """A rule's input for one point: its arm and replicate, and the baseline's. None: missing from the result."""

    arm: ArmCommand
    replicate: Replicate | None
    point: Point | None
    baseline: Replicate | None
    baseline_point: Point | None
    incumbent_point: Point | None = None
    at_a_rate: bool = False
    ramp: Workload | None = None
    """The workload, if it is a ramp."""
    parity: bool = False
    """Whether the arms' answers have to be compared."""
    retractions: int = 0
    """Maximum number of a point's requests that a server may retract."""
    apart: bool = False
    """Whether each workload is judged as a separate question."""
    alone: bool = False
    """Whether the round may lack the baseline's point, as in a search."""
    may_rest: bool = False
    """Whether some steps may propose nothing, so that there may be no verify call although speculation works."""


ReplicateRule = Callable[[Case], Objection | None]
PointRule = Callable[[Case, Point], Objection | None]


def _unmeasured(message: str) -> Objection:
    return Objection(Failure.NotMeasured, message)


def was_run(case: Case) -> Objection | None:
    return None if case.replicate else _unmeasured("the arm was not run")


def server_lived(case: Case) -> Objection | None:
    """If each workload is a separate question, a server that dies under one leaves the points before it valid."""
    if case.replicate is None:
        return None
    end = _end(case.replicate)
    spared = case.point and case.apart and end and end.failure in UNDER_LOAD
    return None if spared else end


def arguments_as_expected(case: Case) -> Objection | None:
    message = case.arm.other_than_expected(case.replicate.resolved) if case.replicate else None
    return _unmeasured(message) if message else None


def release_as_written(case: Case) -> Objection | None:
    """An arm with an engine of its own is measured for its release: another one, or the baseline's, shows nothing."""
    said, wanted = case.replicate.version if case.replicate else "", case.arm.engine_version
    if case.arm.held is None or not said or not release(wanted) or release(said) == release(wanted):
        return None
    return _unmeasured(f"the server is {said}, not {wanted} as in engine.version of {case.arm.name}")


def is_held(name: str, held: Collection[str]) -> bool:
    """A flag's name covers the arguments below it."""
    return name in held or any(name.startswith(f"{one}.") for one in held)


def arguments_equal(case: Case) -> Objection | None:
    """Only speculation, and arguments changed by it, may differ from the baseline; on an arm with an engine of its own,
    all but the held ones. A baseline that ended before it was measured is not compared."""
    if case.replicate is None or case.baseline is None or (_end(case.baseline) and not case.baseline_point):
        return None
    held, differs = case.arm.held, case.replicate.differs
    for key in case.arm.compared:
        if key not in case.replicate.resolved:
            return _unmeasured(f"the server does not report its {key}")
        value, baseline = case.replicate.resolved[key], case.baseline.resolved.get(key, "unsaid")
        if held is None and value != baseline:
            return _unmeasured(f"{key} is {value}, but {baseline} on the baseline")
    if wrong := [one for one in differs or () if held is None or is_held(one.name, held)]:
        more = f" (the first of {case.replicate.differing} that differ)" if case.replicate.differing > 1 else ""
        return _unmeasured(f"{wrong[0]}{more}")
    if held is None and differs is not None and case.replicate.rest_sha256 != case.baseline.rest_sha256:
        return _unmeasured(
            "an argument differs from the baseline's; the round's full lines on the cache volume show which"
        )
    return None


def was_measured(case: Case) -> Objection | None:
    return None if case.point else _unmeasured("nothing was measured")


def all_completed(_: Case, point: Point) -> Objection | None:
    if 0 < point.asked == point.completed:
        return None
    failure = Failure.RequestsFailed if point.completed < point.asked else Failure.NotMeasured
    return Objection(failure, f"{point.completed} of {point.asked} requests completed")


def no_errors(_: Case, point: Point) -> Objection | None:
    return Objection(Failure.RequestsFailed, f"{count(point.errors, 'request')} failed") if point.errors else None


def first_token_took_time(_: Case, point: Point) -> Objection | None:
    times = (point.mean_ttft, point.p95_ttft)
    return None if all(_positive(time) for time in times) else _unmeasured("no time to first token")


def throughput_is_a_number(case: Case, point: Point) -> Objection | None:
    """A closed loop needs the throughput of the steady window: the gate compares it (0025), and nothing replaces it."""
    if case.at_a_rate or case.ramp or _positive(point.steady_throughput):
        return None
    if point.steady_throughput is None:
        return _unmeasured("its requests were never steadily under way: no throughput")
    return _unmeasured(f"the throughput is {point.steady_throughput}")


def speed_is_a_number(case: Case, point: Point) -> Objection | None:
    """The gate compares a request's speed at a rate (0014) and on a ramp."""
    good = not (case.at_a_rate or case.ramp) or _positive(point.request_speed)
    return None if good else _unmeasured(f"the speed of a request is {point.request_speed}")


def ramp_reached_its_top(case: Case, point: Point) -> Objection | None:
    """A ramp that stops below its top proves nothing: the arm may collapse at the loads that were not reached. Fullness
    may be rounded to hundredths."""
    if not case.ramp or point.errors or (_positive(point.fullness) and point.fullness >= 1 - ROUNDED):
        return None
    top = case.ramp.concurrency
    reached = f"{point.fullness * top:.0f}" if _positive(point.fullness) else "an unknown number of"
    return _unmeasured(
        f"the ramp reached {reached} requests under way, not {top}: the client did not keep up; give its container "
        "more CPU, or let answers be longer (maxTokens)"
    )


def client_kept_up(_: Case, point: Point) -> Objection | None:
    """A saturated client pulls ratios towards 1: good drafts look bad, and slow changes pass."""
    cpu, lag, longest = point.client_cpu, point.client_lag, max(LAG_SECONDS, MOST_LAG * (point.mean_e2e or 0.0))
    if cpu is None or lag is None:
        return _unmeasured("it is unknown how busy the client was")
    if cpu <= MOST_CPU and lag <= longest:
        return None
    return Objection(
        Failure.ClientBusy,
        f"the client took {cpu:.0%} of a CPU (maximum {MOST_CPU:.0%}) and handled events {1000 * lag:.1f} ms late on "
        f"average (maximum {1000 * longest:.1f} ms): give the client's container more CPU, or lower the load",
    )


def largest_difference(answers: int) -> float:
    """Largest permitted difference of two arms' output tokens in one round with this number of answers, as a
    fraction."""
    return max(ABSURD_LENGTHS, FEW_ANSWERS / math.sqrt(max(1, answers)))


def tokens_are_comparable(case: Case, point: Point) -> Objection | None:
    name, other = ("baseline", case.baseline_point) if case.baseline_point else (INCUMBENT, case.incumbent_point)
    base = other.output_tokens if other else None
    if case.alone and case.baseline_point is None:
        return None
    if not _positive(base) or not _positive(point.output_tokens):
        return _unmeasured("the output tokens cannot be compared with the baseline's")
    most = largest_difference(point.completed)
    if max(point.output_tokens / base, base / point.output_tokens) > 1 + most:
        return _unmeasured(
            f"{point.output_tokens} output tokens, but {base} on the {name}: in {point.completed} answers they "
            f"may differ by {most:.0%}"
        )
    return None


def only_drafts_speculate(case: Case, point: Point) -> Objection | None:
    alone = {"the baseline": case.baseline_point, **({} if case.arm.speculates else {case.arm.name: point})}
    for name, one in alone.items():
        if one and (one.verify_calls or one.accept_length is not None):
            calls, length = one.verify_calls, one.accept_length
            told = count(calls, "verify call") if calls else f"acceptance length {length}"
            return _unmeasured(f"speculation was running on {name}: {told}")
    return None


def speculation_ran(case: Case, point: Point) -> Objection | None:
    if not case.arm.speculates:
        return None
    if case.may_rest and case.replicate and point.verify_calls == 0:
        if any(map(_ran, case.replicate.points)):
            return None
        return _unmeasured("no speculation was running on any workload: the engine proposed nothing at these loads")
    if "verify_calls" not in case.arm.unseen and not _positive(point.verify_calls):
        return _unmeasured("no speculation was running: no verify calls")
    if "accept_length" not in case.arm.unseen and not _positive(point.accept_length):
        return _unmeasured("no speculation was running: no acceptance length")
    return None


def length_is_possible(case: Case, point: Point) -> Objection | None:
    """A verify call yields one token plus at most all its draft tokens, whose number may be unknown."""
    length, drafts = point.accept_length, case.arm.drafts
    if not case.arm.speculates or not _positive(length):
        return None
    if length < 1 - ROUNDED:
        return _unmeasured(f"the acceptance length is {length:g} (minimum 1)")
    if drafts is not None and length > drafts + 1 + ROUNDED:
        return _unmeasured(f"the acceptance length is {length:g} (maximum {drafts + 1})")
    return None


def none_retracted(case: Case, point: Point) -> Objection | None:
    """No more retractions than the gate's limit permits."""
    if point.retractions is None:
        return None if "retractions" in case.arm.unseen else _unmeasured("retractions unknown")
    if point.retractions > case.retractions:
        return Objection(Failure.Retracted, f"the server retracted {count(point.retractions, 'request')}")
    return None


def answers_have_their_form(_: Case, point: Point) -> Objection | None:
    """Checked on every arm: a baseline whose answers are cut off does not measure structured output."""
    most = max(1, math.floor(MOST_MALFORMED * point.completed))
    if point.malformed is None or point.malformed <= most:
        return None
    return Objection(
        Failure.Malformed,
        f"{point.malformed} of {point.completed} answers do not have the form of responseFormat; at most {most} "
        "may: raise maxTokens if they are cut off",
    )


def outputs_compared(case: Case) -> Objection | None:
    """A round that should have compared answers but did not is invalid. The gate judges whether answers differ."""
    if not (case.parity and case.arm.candidate and case.replicate):
        return None
    outputs = case.replicate.outputs
    why = outputs.unknown if outputs else "the client did not ask for them"
    return _unmeasured(f"the outputs were not compared: {why}") if why else None


RULES: tuple[ReplicateRule, ...] = (
    was_run,
    server_lived,
    arguments_as_expected,
    release_as_written,
    arguments_equal,
    was_measured,
)
POINT_RULES: tuple[PointRule, ...] = (
    all_completed,
    no_errors,
    first_token_took_time,
    throughput_is_a_number,
    speed_is_a_number,
    ramp_reached_its_top,
    client_kept_up,
    only_drafts_speculate,
    speculation_ran,
    length_is_possible,
    none_retracted,
    answers_have_their_form,
    tokens_are_comparable,
)
"""Rules about numbers: they apply to points that were measured."""
LAST_RULES: tuple[ReplicateRule, ...] = (outputs_compared,)


def judge_points(plan: RoundPlan, result: RoundResult) -> tuple[Judged, ...]:
    """Judge every point of the plan, in the plan's order."""
    replicates = {replicate.arm: replicate for replicate in result.replicates}
    baseline = replicates.get(plan.baseline.name) if plan.baseline else None
    judged = []
    for arm in plan.arms:
        replicate = replicates.get(arm.name)
        for workload in plan.workloads_of(arm):
            case = Case(
                arm=arm,
                replicate=replicate,
                point=_point(replicate, workload.name),
                baseline=baseline,
                baseline_point=_point(baseline, workload.name),
                incumbent_point=_point(replicates.get(INCUMBENT), workload.name),
                at_a_rate=workload.rate is not None,
                ramp=workload if workload.levels else None,
                parity=plan.parity is not None and plan.parity_required,
                retractions=plan.retractions,
                apart=plan.apart,
                alone=bool(plan.cells),
                may_rest=arm.engine_chooses_depth or (arm.cuts_drafts and bool(workload.dataset.response_format)),
            )
            judged.append(
                Judged(
                    arm=arm.name,
                    workload=workload.name,
                    point=case.point,
                    objections=tuple(_objections(case)),
                    at_rest=_at_rest(case),
                )
            )
    return tuple(judged)


def _objections(case: Case) -> Iterator[Objection]:
    yield from filter(None, (rule(case) for rule in RULES))
    if case.point:
        yield from filter(None, (rule(case, case.point) for rule in POINT_RULES))
    yield from filter(None, (rule(case) for rule in LAST_RULES))


def _at_rest(case: Case) -> bool:
    """The server accepted tokens on another workload; without such a workload its head is useless."""
    if not (case.arm.engine_chooses_depth and case.point and case.replicate):
        return False
    return not _accepted(case.point) and any(map(_accepted, case.replicate.points))


def _ran(point: Point) -> bool:
    return point.verify_calls != 0 and (bool(point.verify_calls) or point.accept_length is not None)


def _accepted(point: Point) -> bool:
    return _ran(point) and _positive(point.accept_length) and point.accept_length > NOTHING_ACCEPTED_LENGTH


def _end(replicate: Replicate) -> Objection | None:
    """Why the server ended early; None if it did not."""
    failure = of_server(replicate.exit_code, replicate.error, replicate.failure)
    if failure is None:
        return None
    exited = "" if replicate.exit_code is None else f"the server exited with {replicate.exit_code}"
    return Objection(failure, ": ".join(filter(None, [exited, replicate.error])) or failure.value.message)


def _point(replicate: Replicate | None, workload: str) -> Point | None:
    return next((point for point in replicate.points if point.workload == workload), None) if replicate else None


def _positive(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value) and value > 0
