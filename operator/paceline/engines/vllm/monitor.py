"""The metrics of a serving vLLM. Source: vLLM 0.33.0 (v1/spec_decode/metrics.py, v1/metrics/loggers.py).

Accepted tokens count before a request's end cuts them off (v1/core/sched/scheduler.py), so every step is complete.
"""

from paceline.engines.monitor import Monitor, Sum, less
from paceline.engines.vllm.probe import ACCEPTED, COUNTERS, DRAFTS

_FIRST: Sum = {"vllm:time_to_first_token_seconds_count": 1}
GENERATED: Sum = {"vllm:generation_tokens_total": 1}
_LATER: Sum = less(GENERATED, _FIRST)
"""The histogram of inter-token latencies has one sample per output step of several tokens (v1/metrics/stats.py:551);
its sum is still divided by tokens."""

MONITOR = Monitor(
    prefix="vllm:",
    sums={
        "requests": {COUNTERS["requests"]: 1},
        "tokens": _LATER,
        "verify_steps": {DRAFTS: 1},
        "accepted": {ACCEPTED: 1},
        "ttft_seconds": {"vllm:time_to_first_token_seconds_sum": 1},
        "first_tokens": _FIRST,
        "itl_seconds": {"vllm:inter_token_latency_seconds_sum": 1},
        "later_tokens": _LATER,
        "moved": {**GENERATED, **_FIRST},
        "under_way": {"vllm:num_requests_running": 1, "vllm:num_requests_waiting": 1},
    },
    prefill_seconds=300.0,  # VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS: a server with such a long step ends itself
)
