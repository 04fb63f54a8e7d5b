"""Timeouts of a round: for a server to become ready, and for a workload to finish."""

import math

from paceline.core import ramp
from paceline.core.model import model
from paceline.core.types import Seconds
from paceline.core.workload import Workload

START_SECONDS = 1800.0
WORKLOAD_SECONDS = 1800.0
"""The shortest timeout of a workload, in seconds."""
PULL_SECONDS = 3600.0
"""Time for the image of an arm, which is pulled when its turn comes: tens of gigabytes."""
LEAST_SPEED = 5.0
"""Tokens per second of one request among others; a slower server counts as hung. Half of the slowest published speed of
any example: 10, a chain of sglang-jax on a TPU v5e."""


@model
class Timeouts:
    """Time limits of a round."""

    start: Seconds = START_SECONDS
    """Time from a server's start until it is ready. A first start that compiles kernels (torch.compile, DeepGEMM, XLA)
    may take longer."""
    workload: Seconds | None = None
    """Time for each workload of each arm. If absent, the time that all answers take at 5 tokens per second each, and at
    least 30m."""

    def of(self, workload: Workload) -> float:
        """Seconds for one workload; by default, enough for every answer to reach maxTokens at the minimum speed."""
        if self.workload is not None:
            return self.workload
        answer = workload.dataset.max_tokens / LEAST_SPEED
        if workload.rate:
            return math.ceil(workload.dataset.requests / workload.rate + max(WORKLOAD_SECONDS, answer))
        if workload.levels:
            return max(WORKLOAD_SECONDS, math.ceil(math.ceil(ramp.answer_times(workload.levels)) * answer))
        return max(WORKLOAD_SECONDS, math.ceil(math.ceil(workload.dataset.requests / workload.concurrency) * answer))


DEFAULT_TIMEOUTS = Timeouts()
