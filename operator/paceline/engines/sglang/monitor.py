"""The metrics of a serving SGLang. Source: the wheels of the known releases, and captures of 0.5.23.

A finished request adds its tokens and verify calls to the counters (metrics_collector.py:2092). Its first token comes
from prefill, not from a verify call, so accepted drafts = generated tokens - finished requests - verify calls. The last
step of a request discards accepted tokens beyond the end, so short answers make a head look bad. Therefore that step is
not counted, though its kept tokens are: for answers of 61 tokens this gives 2.53, where the server's own average is
2.50, and 2.47 results with the step. An answer of one token has no step, so only requests are counted that ended by
themselves after several tokens: each is in the histogram of times per output token (req_time_stats.py:492,
tokenizer_manager.py:3278). Otherwise classification requests in a pool's traffic would hide any drop, as on 0.5.17,
which lacks that histogram.

0.4.5 and 0.5.6 count no verify calls; their gauge is the mean of the last decode-log-interval steps.
"""

from paceline.engines.monitor import Monitor, Sum, added, less
from paceline.engines.sglang.versions import KnownRelease, known_release

_REQUESTS: Sum = {"sglang:num_requests_total": 1}
_TOKENS: Sum = less({"sglang:generation_tokens_total": 1}, _REQUESTS)
_FIRST: Sum = {"sglang:time_to_first_token_seconds_count": 1}
_LATER: Sum = {"sglang:inter_token_latency_seconds_count": 1}
"""This histogram has one sample per token: a chunk of several tokens counts several times
(metrics_collector.py:2161)."""
EVERY_STEP: Sum = {"sglang:realtime_tokens_total": 1}
"""This counter grows with every batch, prefill and decode (metrics_reporter.py:810, :912); 0.4.5 and 0.5.6 do not have
it."""
_ACCEPT_LENGTH = "sglang:spec_accept_length"
PREFILL_SECONDS = 300.0
"""The limit for releases before 0.5.23: --watchdog-timeout, after which a server with such a long step ends itself. It
is longer than the 30 s in which an idle scheduler of 0.4.5 (scheduler.py:1135) and 0.5.6
(scheduler_runtime_checker_mixin.py:226) corrects its gauges; 0.5.23 (metrics_reporter.py:1490) does so at once. A
hanging scheduler does not."""
PART_LABEL = "priority"
"""With --enable-priority-scheduling each gauge of requests exists per priority, and their total has priority=""
(0.5.23: metrics_collector.py:1417)."""


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
