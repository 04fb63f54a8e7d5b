"""What SGLang shows of a server in service. Source: the wheels of the known releases, and captures of 0.5.23.

A finished request adds its tokens and verify calls to the counters (metrics_collector.py:2092); its first token comes
from prefill and is in no verify call, so accepted drafts = generated tokens - finished requests - verify calls. The
last step of a request throws away what it accepted beyond the end, which makes a head look bad whose answers are short.
So that step is left out of the steps, though not what it kept: of answers of 61 tokens 2.53 for the 2.50 of the
server's own average, where it would be 2.47 with it. An answer of one token has no step, so those are counted that
ended by themselves after several: each is in the histogram of times per output token (req_time_stats.py:492,
tokenizer_manager.py:3278). A pool of classifiers among its traffic would otherwise hide any drop, as it does on 0.5.17,
which has no such histogram.
0.4.5 and 0.5.6 count no verify calls; their gauge is the mean of the last decode-log-interval steps.
"""

from paceline.engines.monitor import Monitor, Sum, added, less
from paceline.engines.sglang.versions import KnownRelease, known_release

_REQUESTS: Sum = {"sglang:num_requests_total": 1}
_TOKENS: Sum = less({"sglang:generation_tokens_total": 1}, _REQUESTS)
_FIRST: Sum = {"sglang:time_to_first_token_seconds_count": 1}
_LATER: Sum = {"sglang:inter_token_latency_seconds_count": 1}
"""One a token: a chunk of several counts as many times (metrics_collector.py:2161)."""
EVERY_STEP: Sum = {"sglang:realtime_tokens_total": 1}
"""Grows with every batch, prefill and decode (metrics_reporter.py:810, :912); 0.4.5 and 0.5.6 have none."""
_ACCEPT_LENGTH = "sglang:spec_accept_length"
PREFILL_SECONDS = 300.0
"""Before 0.5.23: --watchdog-timeout, after which a server whose step takes as long ends itself. It is more than the
30 s in which an idle scheduler of 0.4.5 (scheduler.py:1135) and 0.5.6 (scheduler_runtime_checker_mixin.py:226) corrects
its gauges; 0.5.23 (metrics_reporter.py:1490) does at once. One that hangs does not."""
PART_LABEL = "priority"
"""With --enable-priority-scheduling each gauge of requests is there for each priority, and their total under
priority="" (0.5.23: metrics_collector.py:1417)."""


def monitor(version: str) -> Monitor:
    return _monitor(known_release(version))


def _monitor(release: KnownRelease) -> Monitor:
    sums = {
        "requests": _REQUESTS,
        "tokens": _TOKENS,
        "ttft_seconds": {"sglang:time_to_first_token_seconds_sum": 1},
        "first_tokens": _FIRST,
        "itl_seconds": {"sglang:inter_token_latency_seconds_sum": 1},
        "later_tokens": _LATER,
        "moved": added(_FIRST, _LATER, EVERY_STEP),
        "under_way": {"sglang:num_running_reqs": 1, "sglang:num_queue_reqs": 1},
    }
    if release.verify_calls is None:
        return Monitor(
            prefix="sglang:",
            sums=sums,
            accept_length=_ACCEPT_LENGTH,
            prefill_seconds=PREFILL_SECONDS,
            part_label=PART_LABEL,
        )
    calls: Sum = {release.verify_calls: 1}
    speculation = {"verify_steps": less(calls, {release.ended: 1}), "accepted": less(_TOKENS, calls)}
    return Monitor(prefix="sglang:", sums=sums | speculation, part_label=PART_LABEL)
