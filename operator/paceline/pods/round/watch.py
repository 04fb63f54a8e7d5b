"""The draft depth of an engine that chooses it while serving: read from its metrics during a load.

No counter sums the depth, so it is sampled, and only for arms whose engine chooses: reading the metrics costs the
candidate's server a little, but never slows a baseline.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from paceline.engines import Probe
from paceline.pods.round.steps import SendLoad, ServerFailed

_METRICS = "/metrics"
FIRST_SECONDS = 1.0
EVERY_SECONDS = 5.0
"""Seconds before the first sample, and between samples."""


@dataclass(slots=True)
class Samples:
    """Draft tokens per verify call, one number per sample."""

    values: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float | None:
        return math.fsum(self.values) / len(self.values) if self.values else None


@contextmanager
def depth(step: SendLoad, probe: Probe, get: Callable[[str], str]) -> Iterator[Samples]:
    """The samples of this load; complete once it has ended. `get` requests a path of the server; a failed request is
    skipped and does not end the load."""
    samples = Samples()
    read = probe.draft_tokens
    if read is None or step.window or not step.arm.engine_chooses_depth:
        yield samples
        return
    ended = threading.Event()

    def sample() -> None:
        pause = FIRST_SECONDS
        while not ended.wait(pause):
            pause = EVERY_SECONDS
            try:
                value = read(get(_METRICS))
            except ServerFailed:
                continue
            if value is not None:
                samples.values.append(value)

    thread = threading.Thread(target=sample, name="depth", daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        ended.set()
        thread.join()
