"""How deep an engine drafts that chooses so for itself: asked while a load runs, as no counter adds it up.

Of such arms alone: what the page costs the server is then paid by the candidate, and no baseline is slowed by it.
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paceline.engines import Probe
from paceline.pods.round.steps import DRAFT_TOKENS, Load, ServerFailed

METRICS = "/metrics"
FIRST_SECONDS = 1.0
EVERY_SECONDS = 5.0
"""Until the first look at the page, and between two."""


@contextmanager
def depth(step: Load, probe: Probe, get: Callable[[str], str]) -> Iterator[dict[str, Any]]:
    """What is to be added to the report of this load: the mean of what was seen, once the load has ended. `get` gives a
    page of the server; one that it does not give is no reason to end the load."""
    told: dict[str, Any] = {}
    read = probe.draft_tokens
    if read is None or step.warm_up or not step.arm.engine_chooses_depth:
        yield told
        return
    seen: list[float] = []
    ended = threading.Event()

    def look() -> None:
        pause = FIRST_SECONDS
        while not ended.wait(pause):
            pause = EVERY_SECONDS
            try:
                found = read(get(METRICS))
            except ServerFailed:
                continue
            if found is not None:
                seen.append(found)

    thread = threading.Thread(target=look, name="depth", daemon=True)
    thread.start()
    try:
        yield told
    finally:
        ended.set()
        thread.join()
        told |= _mean(seen)


def _mean(seen: list[float]) -> Mapping[str, float]:
    return {DRAFT_TOKENS: math.fsum(seen) / len(seen)} if seen else {}
