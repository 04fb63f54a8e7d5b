"""Rounds on emulated engines whose clock is the test's: minutes of load in a second.

A client asks the engine as the client would and reports what that one reports; from there on all is the
operator's own: the point of a report, which points are valid, their records, and the gate.
"""

import heapq
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tests.support.rounds import arm_command

from paceline import core, gate
from paceline.api.round import Round
from paceline.core import BASELINE, Dataset, Workload
from paceline.engines import Speculation
from paceline.evidence import Point, Replicate, RoundPlan, RoundResult, judge_points
from paceline.evidence.round_status import measurements, round_record
from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.report import point
from paceline_emulator import noise
from paceline_emulator.engine import Engine, Request

TURN_AROUND = 0.003
"""Seconds between an answer and the same client's next request."""
NOISE = 0.003
IDLE = {"client_cpu": 0.0, "client_lag": 0.0}


@dataclass(slots=True)
class Answer:
    """When its tokens came, and how many each time."""

    asked: float
    came: list[tuple[float, int]] = field(default_factory=list)

    @property
    def first_token(self) -> float:
        return self.came[0][0] - self.asked

    @property
    def seconds(self) -> float:
        return self.came[-1][0] - self.asked

    @property
    def per_token(self) -> float:
        """Seconds of each token after the first."""
        return (self.seconds - self.first_token) / (sum(count for _, count in self.came) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    answers: Sequence[Answer]
    requests: Sequence[Request]

    @property
    def seconds(self) -> float:
        return max(answer.came[-1][0] for answer in self.answers)

    @property
    def throughput(self) -> float:
        """Output tokens per second of all of the time."""
        return sum(request.length for request in self.requests) / self.seconds

    def throughput_between(self, start: float, end: float) -> float:
        """Output tokens per second that came in this time."""
        return sum(count for one in self.answers for at, count in one.came if start < at <= end) / (end - start)

    @property
    def median_tpot(self) -> float:
        return median(answer.per_token for answer in self.answers)

    def report(self) -> dict[str, Any]:
        answered = [
            Answered(
                start=one.asked,
                first=one.first_token,
                gaps=tuple(b - a for (a, _), (b, _) in itertools.pairwise(one.came)),
                whole=one.seconds,
                tokens=request.length,
            )
            for one, request in zip(self.answers, self.requests, strict=True)
        ]
        return {**load_report(answered, self.seconds), **IDLE}

    @property
    def speculation(self) -> Speculation:
        calls = sum(request.verify_calls for request in self.requests)
        if not calls:
            return Speculation(retractions=0, verify_calls=0)
        accepted = sum(request.accepted for request in self.requests)
        return Speculation(accept_length=accepted / calls, verify_calls=calls, retractions=0)


def served(
    engine: Engine,
    lengths: Sequence[int],
    *,
    concurrency: int = 0,
    arrivals: Sequence[float] = (),
    levels: Sequence[int] = (),
) -> Load:
    """Requests for so many tokens: of so many clients, each of whom asks again when answered; at these times; or each
    as soon as with it no more are under way than its level."""
    starts = arrivals or [0.0] * (levels[0] if levels else concurrency)
    events = [(at, index) for index, at in enumerate(starts[: len(lengths)])]
    following = itertools.count(len(events))
    answers: dict[int, Answer] = {}
    requests: dict[int, Request] = {}
    now = 0.0

    under_way, waiting = len(events), list(range(len(lengths)))[len(events) :]

    def ended(at: float) -> None:
        nonlocal under_way
        under_way -= 1
        while waiting and under_way < levels[waiting[0]]:
            under_way += 1
            heapq.heappush(events, (at, waiting.pop(0)))

    def ask(index: int) -> None:
        answers[index] = answer = Answer(asked=now)

        def deliver(tokens: int, finish: str | None) -> None:
            answer.came.append((now, tokens))
            if finish and levels:
                ended(now + TURN_AROUND)
            elif finish and not arrivals and (after := next(following)) < len(lengths):
                heapq.heappush(events, (now + TURN_AROUND, after))

        requests[index] = Request(
            id=str(index), dataset=None, prompt_tokens=1, cached_tokens=0, length=lengths[index], finish="length",
            deliver=deliver,
        )  # fmt: skip
        engine.submit(requests[index], now)

    while True:
        ends = engine.advance(now)
        if events and (ends is None or events[0][0] <= ends):
            now, index = heapq.heappop(events)
            engine.advance(now)
            ask(index)
        elif ends is None:
            return Load(answers=list(answers.values()), requests=list(requests.values()))
        else:
            now = ends


Engines = Mapping[str, Callable[[int], Engine]]
"""Arm → a fresh engine of its round of that number; the baseline first."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A workload and the mean length of its answers: all are as long in a closed loop, and at a rate they are normal
    with a standard deviation of half of it."""

    workload: Workload
    tokens: int


def closed(concurrency: int, tokens: int) -> Sent:
    return Sent(Workload(dataset=_dataset(core.WAVES * concurrency, tokens), concurrency=concurrency), tokens)


def moving(first: int, top: int, tokens: int) -> Sent:
    """A ramp."""
    dataset = replace(_dataset(core.WAVES * top, tokens), name="code-ramp", ramp_from=first)
    return Sent(Workload(dataset=dataset, concurrency=top), tokens)


def rated(rate: float, tokens: int, seconds: int = 60) -> Sent:
    return Sent(Workload(dataset=_dataset(round(rate * seconds), tokens, rate), concurrency=1), tokens)


def measured(engines: Engines, loads: Sequence[Sent], rule: core.Gate) -> list[core.Measurement]:
    """Round after round until the verdict is final, or to the gate's last look."""
    workloads, found = [load.workload for load in loads], list[core.Measurement]()
    plan, records = _plan(list(engines), workloads), list[Round]()
    for number in range(rule.decide_after_rounds[-1]):
        of_round = replace(plan, round=number)
        result = _round(of_round, loads, engines)
        records.append(round_record(of_round, result, judge_points(of_round, result), job="job", node="node"))
        found = measurements(records)
        assert all(one.valid for one in found), records[-1].points
        if number + 1 in rule.decide_after_rounds and decided(list(engines), loads, rule, found).final:
            break
    return found


def decided(
    arms: Sequence[str], loads: Sequence[Sent], rule: core.Gate, found: Sequence[core.Measurement]
) -> core.Verdict:
    weights = {load.workload.name: load.workload.weight for load in loads}
    return gate.decide(rule, arms, weights, found, rated=[load.workload.name for load in loads if load.workload.rate])


def _plan(arms: Sequence[str], workloads: Sequence[Workload]) -> RoundPlan:
    return RoundPlan(
        run="published", round=0, try_=0, served_name="m",
        arms=tuple(arm_command(arm, engine="vLLM", candidate=arm != BASELINE, engine_chooses_depth=True, compared=(),
                               unseen=("draft_tokens", "accepted_at"))
                   for arm in arms),
        workloads=tuple(workloads), results_dir="/results",
    )  # fmt: skip


def _round(plan: RoundPlan, loads: Sequence[Sent], engines: Engines) -> RoundResult:
    """Each arm on all workloads: the same prompts for all arms, others in each round."""
    replicates = (
        Replicate(
            arm=arm,
            start_seconds=60.0,
            points=tuple(_point(load, plan.round, arm, fresh(plan.round)) for load in loads),
        )
        for arm, fresh in engines.items()
    )
    return RoundResult(round=plan.round, try_=0, replicates=tuple(replicates), emulated=True, started=1.0, finished=2.0)


def _point(load: Sent, number: int, arm: str, engine: Engine) -> Point:
    workload, count = load.workload, load.workload.dataset.requests
    dice = random.Random(f"{workload.name} {number}")
    engine.factor = noise.factor(NOISE, workload.name, [arm], number)
    if workload.levels:
        found = served(engine, [load.tokens] * count, levels=workload.levels)
    elif workload.rate is None:
        found = served(engine, [load.tokens] * count, concurrency=workload.concurrency)
    else:
        lengths = [normal(dice, load.tokens, load.tokens / 2, 10, 2 * load.tokens) for _ in range(count)]
        found = served(engine, lengths, arrivals=poisson(dice, workload.rate, count))
    return point(workload, found.report(), found.speculation)


def poisson(dice: random.Random, rate: float, count: int) -> list[float]:
    """Seconds at which requests arrive at random."""
    return list(itertools.accumulate(dice.expovariate(rate) for _ in range(count)))


def normal(dice: random.Random, mean: float, deviation: float, least: int, most: int) -> int:
    """Tokens of an answer."""
    return round(min(most, max(least, dice.gauss(mean, deviation))))


def _dataset(requests: int, tokens: int, rate: float | None = None) -> Dataset:
    return Dataset(name="chat", source="builtin://chat", requests=requests, max_tokens=2 * tokens, rate=rate)
