"""How long a round waits: for a server to be ready, and for a workload to be answered."""

import math
from dataclasses import dataclass

from paceline.core.workload import Workload

START_SECONDS = 1800.0
WORKLOAD_SECONDS = 1800.0
"""Fewest, however little is asked."""
LEAST_SPEED = 5.0
"""Tokens a second of one request among the others; what is slower is taken for a server that hangs. Half of the slowest
that was published for any of the examples: 10, a chain of sglang-jax on a TPU v5e."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds. `start` is from a server's start to ready; `workload` is for each, None: by what it asks."""

    start: float = START_SECONDS
    workload: float | None = None

    def of(self, asked: Workload) -> float:
        """Seconds for one workload: if absent, every answer may go to its cap at the least speed."""
        if self.workload is not None:
            return self.workload
        answer = asked.dataset.max_tokens / LEAST_SPEED
        if asked.rate:
            return math.ceil(asked.dataset.requests / asked.rate + max(WORKLOAD_SECONDS, answer))
        return max(WORKLOAD_SECONDS, math.ceil(math.ceil(asked.dataset.requests / asked.concurrency) * answer))


USUAL = Timeouts()
