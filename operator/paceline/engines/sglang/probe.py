"""How a round reads SGLang: resolved arguments and acceptance length in its server info, counters in its metrics."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from paceline.engines.probe import (
    Histogram,
    Probe,
    Scrape,
    Speculation,
    Work,
    count_between,
    increase,
    json_object,
    positive,
    samples,
    totals,
)
from paceline.engines.sglang.versions import KnownRelease, known_release

_METRICS = "/metrics"
_ACCEPTED_AT = "accepted_at"
"""No answer of the known releases has acceptance by position: 0.5.23 has gauges of length and rate and one counter, of
verify calls (metrics_collector.py:511, :1865), and its server info an average (internal_state.py:119). Its answers can
include a histogram (protocol.py:393, :456; schedule_batch.py:1566), other releases' cannot."""
HISTOGRAM = ("sglext", "spec_tokens_details", "spec_correct_drafts_histogram")
"""Path of the histogram in an answer."""
ACTIVE_TOKENS = "sglang:spec_num_draft_tokens"
_COUNTERS = {
    "requests": "sglang:num_requests_total",
    "prompt_tokens": "sglang:prompt_tokens_total",
    "cached_tokens": "sglang:cached_tokens_total",
}
"""Equal in all known releases."""
PROMOTED = {"FROZEN_KV_MTP": "EAGLE"}
"""SGLang's name of EAGLE with Gemma 4's assistant as the draft (speculative_hook.py:109)."""
FLUSH_SECONDS = 30
"""Seconds that the server may take to become idle before it refuses to empty its cache."""


def probe(version: str) -> Probe:
    """The probe for the resource's engine version."""
    release = known_release(version)
    counters = {"verify_calls": release.verify_calls, "retractions": release.retractions}
    return Probe(
        pages=(_METRICS, release.info),
        resolved=partial(resolved, release),
        kv_tokens=partial(kv_tokens, release),
        speculation=partial(speculation, release),
        work=partial(work, release),
        flush_path=f"/flush_cache?timeout={FLUSH_SECONDS}",
        whole={"separate_reasoning": False},
        own_temperature=release.own_temperature,
        adapter=_with_adapter if release.adapters else None,
        draft_tokens=draft_tokens if release.adaptive else None,
        histogram=Histogram(body={"return_spec_tokens_details": True}, read=histogram) if release.histogram else None,
        unseen=(
            *(field for field, counter in counters.items() if counter is None),
            *(() if release.histogram else (_ACCEPTED_AT,)),
        ),
    )


def _with_adapter(served: str, adapter: str) -> str:
    return f"{served}:{adapter}"


def resolved(release: KnownRelease, scrape: Scrape) -> Mapping[str, Any]:
    """Arguments that a release lacks are None, and so equal on all arms."""
    arguments = {**dict.fromkeys(release.absent_arguments), **json_object(scrape.pages[release.info])}
    algorithm: Any = arguments.get("speculative_algorithm")
    return {**arguments, "speculative_algorithm": PROMOTED.get(algorithm, algorithm)}


def kv_tokens(release: KnownRelease, scrape: Scrape) -> int | None:
    return positive(json_object(scrape.pages[release.info]).get("max_total_num_tokens"))


def speculation(release: KnownRelease, before: Scrape, after: Scrape) -> Speculation:
    """The acceptance length is the server's own average since the flush before the workload."""
    then, now = totals(before.pages[_METRICS]), totals(after.pages[_METRICS])
    # A counter appears with its first event: an SGLang page without retractions means none yet.
    none_yet = 0.0 if any(name.startswith("sglang:") for name in now) else None
    return Speculation(
        accept_length=accept_length(json_object(after.pages[release.info])),
        verify_calls=_increase(release.verify_calls, then, now, None),
        retractions=_increase(release.retractions, then, now, none_yet),
    )


def draft_tokens(page: str) -> float | None:
    """The draft tokens of the latest verify calls (`metrics_collector.py:541`, which counts the root), averaged over
    ranks. None before the first: the gauge starts at 0."""
    tokens = [sample.value for sample in samples(page) if sample.name == ACTIVE_TOKENS and sample.value >= 1]
    return math.fsum(tokens) / len(tokens) - 1 if tokens else None


def histogram(answer: Mapping[str, Any]) -> tuple[int, ...]:
    """Item n: verify calls that accepted n draft tokens."""
    found: Any = answer
    for key in HISTOGRAM:
        found = found.get(key) if isinstance(found, Mapping) else None
    counts = tuple(found) if isinstance(found, list) else ()
    return counts if all(isinstance(count, int) and count >= 0 for count in counts) else ()


def work(release: KnownRelease, before: Scrape, after: Scrape) -> Work:
    """An aborted answer ends normally, with usage, and counts among the requests, but not in `ended`."""
    counters = {**_COUNTERS, "timed": release.ended} if release.ended != _COUNTERS["requests"] else _COUNTERS
    return count_between(totals(before.pages[_METRICS]), totals(after.pages[_METRICS]), counters)


def accept_length(info: Mapping[str, Any]) -> float | None:
    """Mean over the data-parallel ranks that report one; a server without speculation has none.

    0.4.5 has no ranks and reports it among its arguments.
    """
    states = [state for state in info.get("internal_states") or (info,) if isinstance(state, Mapping)]
    lengths = [state.get("avg_spec_accept_length") for state in states]
    read = [float(length) for length in lengths if isinstance(length, int | float)]
    return math.fsum(read) / len(read) if read else None


def _increase(
    counter: str | None, before: Mapping[str, float], after: Mapping[str, float], none_yet: float | None
) -> int | None:
    return increase(before.get(counter), after.get(counter, none_yet)) if counter else None
