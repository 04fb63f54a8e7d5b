"""Timeouts of a round: for a server to become ready, and for a workload to finish."""

import math
from dataclasses import dataclass

from paceline.core import ramp
from paceline.core.workload import Workload

START_SECONDS = 1800.0
WORKLOAD_SECONDS = 1800.0
"""The shortest timeout of a workload, in seconds."""
LEAST_SPEED = 5.0
"""Tokens per second of one request among others; a slower server counts as hung. Half of the slowest speed published
for any example: 10, a chain of sglang-jax on a TPU v5e."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """In seconds. `start` runs from a server's start to ready; `workload` bounds each workload, None derives it."""

    start: float = START_SECONDS
    workload: float | None = None

    def of(self, workload: Workload) -> float:
        """Seconds for one workload; by default, enough for every answer to reach maxTokens at the least speed."""
        if self.workload is not None:
            return self.workload
        answer = workload.dataset.max_tokens / LEAST_SPEED
        if workload.rate:
            return math.ceil(workload.dataset.requests / workload.rate + max(WORKLOAD_SECONDS, answer))
        if workload.levels:
            return max(WORKLOAD_SECONDS, math.ceil(math.ceil(ramp.answer_times(workload.levels)) * answer))
        return max(WORKLOAD_SECONDS, math.ceil(math.ceil(workload.dataset.requests / workload.concurrency) * answer))


DEFAULT_TIMEOUTS = Timeouts()
