"""Estimates the cost of rounds from assumptions about servers, for `plan.forecast`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.core import Parity, Workload, ramp
from paceline.evidence import RoundPlan
from paceline.plan.speeds import as_one_of

FEW = 12
SPREAD_OF_MANY = 0.28
"""Standard deviation of ln(speed) between the requests of a baseline, above `FEW` at once: an H200's at 32 (decision
0068)."""
ENDLESS = 1_000_000_000
"""Prompts of a set of unknown size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """`start_seconds`: from a server's start to ready. `stream`: output tokens per second of each request under way or,
    if `shared`, of a single request. `spread`: standard deviation of the speed's logarithm over the baseline's
    requests at up to 12 at once, which determines how many requests later rounds send; None: as many as the first.
    `sizes`: of sets, by their source; others are assumed to be large enough for any number of requests."""

    start_seconds: float
    stream: float
    spread: float | None = None
    shared: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)

    def spread_of(self, workload: Workload) -> float | None:
        """The spread of a baseline's requests at this concurrency."""
        return SPREAD_OF_MANY if workload.concurrency > FEW else self.spread

    def size_of(self, workload: Workload) -> int:
        """Prompts of a workload's set."""
        return self.sizes.get(workload.dataset.source, ENDLESS)

    def of_round(self, plan: RoundPlan) -> float:
        """Seconds of a round, without scheduling, warm-up and the time between two arms."""
        return self.of_starts(plan) + self.of_loads(plan)

    def of_starts(self, plan: RoundPlan) -> float:
        """Seconds that a round's servers take to start."""
        return len(plan.arms) * self.start_seconds

    def of_loads(self, plan: RoundPlan) -> float:
        """Seconds that a round's servers take to answer."""
        loads = sum(self.of_workload(workload) for arm in plan.arms for workload in plan.workloads_of(arm))
        return loads + len(plan.arms) * self.of_parity(plan.parity)

    def of_parity(self, parity: Parity | None) -> float:
        """Seconds of parity's prompts, one after another, if every answer reaches its maximum length."""
        return parity.samples * parity.max_tokens / self.stream if parity else 0.0

    def of_request(self, concurrency: int) -> float:
        """Output tokens per second of each request at this concurrency."""
        return self.stream * (as_one_of(concurrency) if self.shared else 1.0)

    def of_workload(self, workload: Workload) -> float:
        """Seconds of a workload, if every answer reaches its maximum length."""
        answer = workload.dataset.max_tokens / self.of_request(workload.concurrency)
        if workload.rate:
            return workload.dataset.requests / workload.rate + answer
        if workload.levels:
            return ramp.answer_times(workload.levels) * answer
        return workload.dataset.requests / workload.concurrency * answer


@dataclass(frozen=True, slots=True)
class RoundCost:
    """Accelerator-seconds of one round."""

    starting: float = 0.0
    answering: float = 0.0

    def __add__(self, other: "RoundCost") -> "RoundCost":
        return RoundCost(self.starting + other.starting, self.answering + other.answering)

    @property
    def all(self) -> float:
        return self.starting + self.answering


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceCost:
    """The cost of one pool's evidence. A Job is a round; `reused` names the run whose evidence is reused."""

    jobs: int = 0
    server_starts: int = 0
    accelerator_seconds: float = 0.0
    by_round: tuple[RoundCost, ...] = ()
    accelerators: int = 0
    """Accelerators of one round, on one node."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """Workload → requests of the last round."""
    reused: str = ""
    search: "EvidenceCost | None" = None
    """The search's part of the cost; None without a search."""
