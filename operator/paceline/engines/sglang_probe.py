"""SGLang as a round sees it: resolved arguments and acceptance length in its server info, counters in its metrics."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from paceline.engines.probe import Look, Probe, Speculation, increase, json_object, totals

METRICS = "/metrics"
VERIFY_CALLS = "sglang:spec_verify_calls_total"
RETRACTIONS = "sglang:num_retracted_requests_total"
FLUSH_SECONDS = 30
"""For the server to become idle before it refuses to empty its cache."""


def probe(version: str) -> Probe:
    """Of an engine version, as the resource names it."""
    info = "/server_info"
    return Probe(
        pages=(METRICS, info),
        resolved=partial(resolved, info),
        speculation=partial(speculation, info),
        flush_path=f"/flush_cache?timeout={FLUSH_SECONDS}",
        backend="sglang-oai-chat",
    )


def resolved(info: str, look: Look) -> Mapping[str, Any]:
    return json_object(look.pages[info])


def speculation(info: str, before: Look, after: Look) -> Speculation:
    """The acceptance length is the server's own average since the flush before the workload."""
    then, now = totals(before.pages[METRICS]), totals(after.pages[METRICS])
    # A counter appears with its first event: on SGLang's page no retractions means none yet.
    none_yet = 0.0 if any(name.startswith("sglang:") for name in now) else None
    return Speculation(
        accept_length=accept_length(json_object(after.pages[info])),
        verify_calls=increase(then.get(VERIFY_CALLS), now.get(VERIFY_CALLS)),
        retractions=increase(then.get(RETRACTIONS), now.get(RETRACTIONS, none_yet)),
    )


def accept_length(info: Mapping[str, Any]) -> float | None:
    """Mean over the data-parallel ranks that have one; a server that does not speculate has none."""
    states = [state for state in info.get("internal_states") or () if isinstance(state, Mapping)]
    lengths = [state.get("avg_spec_accept_length") for state in states]
    read = [float(length) for length in lengths if isinstance(length, int | float)]
    return math.fsum(read) / len(read) if read else None
