"""Older releases of SGLang, as far as an operator can tell them apart: pages, metrics, the shape of the server's info.

Read in their wheels (`srt/entrypoints/http_server.py`, `srt/metrics/collector.py`). What runs behind the surface is the
newest: how an older release is faster or slower is not emulated, nor what it rewrites or refuses of its arguments.
Which layers a head is given is (`layers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

NEWEST = "0.5.23"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """`lacks` are pages that only newer ones have, `metrics` the families that are shown (None: all).

    `health_generates`: /health asks for a token. `ranks`: the server's info has `internal_states`; without, what they
    would hold stands beside the arguments.
    """

    version: str
    lacks: frozenset[str] = frozenset()
    metrics: frozenset[str] | None = None
    health_generates: bool = True
    ranks: bool = True
    spec_details: bool = True
    """An answer can have what its drafts came to."""
    checks_forms: bool = True
    """Schemas whose keywords the grammar would ignore are refused; not looked up for the older ones."""


AFTER_0_5_6 = frozenset({"/ready", "/v1/loads"})
AFTER_0_4_5 = AFTER_0_5_6 | {"/server_info", "/model_info"}

IN_0_4_5 = frozenset({
    "sglang:cache_hit_rate", "sglang:cached_tokens_total", "sglang:e2e_request_latency_seconds",
    "sglang:gen_throughput", "sglang:generation_tokens_total", "sglang:inter_token_latency_seconds",
    "sglang:num_queue_reqs", "sglang:num_requests_total", "sglang:num_running_reqs", "sglang:num_used_tokens",
    "sglang:prompt_tokens_total", "sglang:spec_accept_length", "sglang:time_to_first_token_seconds",
    "sglang:token_usage",
})  # fmt: skip
IN_0_5_6 = IN_0_4_5 | {
    "sglang:generation_tokens_histogram", "sglang:is_cuda_graph", "sglang:mamba_usage", "sglang:max_total_num_tokens",
    "sglang:new_token_ratio", "sglang:num_aborted_requests_total", "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs", "sglang:num_grammar_queue_reqs", "sglang:num_paused_reqs",
    "sglang:num_prefill_inflight_queue_reqs", "sglang:num_retracted_reqs", "sglang:pending_prealloc_token_usage",
    "sglang:per_stage_req_latency_seconds", "sglang:prompt_tokens_histogram", "sglang:queue_time_seconds",
    "sglang:spec_accept_rate", "sglang:swa_token_usage", "sglang:utilization",
}  # fmt: skip

SURFACES: Mapping[str, Surface] = {
    "0.4.5": Surface(
        version="0.4.5",
        lacks=AFTER_0_4_5,
        metrics=IN_0_4_5,
        health_generates=False,
        ranks=False,
        spec_details=False,
        checks_forms=False,
    ),
    "0.5.6": Surface(version="0.5.6", lacks=AFTER_0_5_6, metrics=IN_0_5_6, spec_details=False, checks_forms=False),
    NEWEST: Surface(version=NEWEST),
}
