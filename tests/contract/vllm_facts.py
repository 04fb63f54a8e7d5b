"""What vLLM 0.33.0 has, read in its wheel (files and lines are below `vllm/`) and seen in captures of it on a CPU."""

from pathlib import Path

CAPTURES = Path(__file__).parent / "captures" / "vllm"

METRICS: dict[str, tuple[str, frozenset[str], str]] = {
    "vllm:num_requests_running": ("gauge", frozenset(), "v1/metrics/loggers.py:528"),
    "vllm:num_requests_waiting": ("gauge", frozenset(), "v1/metrics/loggers.py:538"),
    "vllm:num_requests_waiting_by_reason": ("gauge", frozenset({"reason"}), "v1/metrics/loggers.py:548"),
    "vllm:kv_cache_usage_perc": ("gauge", frozenset(), "v1/metrics/loggers.py:620"),
    "vllm:prefix_cache_queries_total": ("counter", frozenset(), "v1/metrics/loggers.py:662"),
    "vllm:prefix_cache_hits_total": ("counter", frozenset(), "v1/metrics/loggers.py:673"),
    "vllm:num_preemptions_total": ("counter", frozenset(), "v1/metrics/loggers.py:739"),
    "vllm:prompt_tokens_total": ("counter", frozenset(), "v1/metrics/loggers.py:748"),
    "vllm:generation_tokens_total": ("counter", frozenset(), "v1/metrics/loggers.py:799"),
    "vllm:request_success_total": ("counter", frozenset({"finished_reason"}), "v1/metrics/loggers.py:809"),
    "vllm:cache_config_info": (
        "gauge",
        frozenset({
            "block_size", "gpu_memory_utilization", "cache_dtype", "kv_cache_size_tokens", "kv_cache_max_concurrency",
        }),
        "v1/metrics/loggers.py:1120",
    ),
    "vllm:spec_decode_num_drafts_total": ("counter", frozenset(), "v1/spec_decode/metrics.py:229"),
    "vllm:spec_decode_num_draft_tokens_total": ("counter", frozenset(), "v1/spec_decode/metrics.py:230"),
    "vllm:spec_decode_num_accepted_tokens_total": ("counter", frozenset(), "v1/spec_decode/metrics.py:231"),
    "vllm:spec_decode_num_accepted_tokens_per_pos_total": (
        "counter", frozenset({"position"}), "v1/spec_decode/metrics.py:255",
    ),
}  # fmt: skip
"""Name as exposed (counters gain `_total`) → type, labels beside COMMON, where. Only those that Paceline reads."""
COMMON = frozenset({"model_name", "engine"})
"""v1/metrics/loggers.py:499."""
UNNAMED = frozenset({"vllm:cache_config_info"})
"""Of an engine and of no model. The real one has every argument of the cache for a label, 38 in all."""
REASONS = frozenset({"stop", "length", "abort", "error", "repetition"})
OF_SPECULATION = frozenset(name for name in METRICS if "spec_decode" in name)
"""There only with a speculative configuration, and then from the start with 0 (v1/spec_decode/metrics.py:211)."""

FIELDS = (
    "model", "speculative_config", "tokenizer", "skip_tokenizer_init", "tokenizer_mode", "revision",
    "tokenizer_revision", "trust_remote_code", "dtype", "max_seq_len", "download_dir", "load_format",
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
    "dcp_comm_backend", "disable_custom_all_reduce", "quantization", "quantization_config", "enforce_eager",
    "aux_output_config", "kv_cache_dtype", "device_config", "structured_outputs_config", "observability_config",
    "seed", "served_model_name", "enable_prefix_caching", "enable_chunked_prefill", "pooler_config",
    "compilation_config", "kernel_config",
)  # fmt: skip
"""Of the line with which the engine starts, in this order: config/vllm.py:2809."""
METHODS = ("eagle", "eagle3", "mtp", "draft_model", "ngram", "dflash", "dspark")
"""Of those of config/speculative.py:38-82, what speculates and needs no package that the image lacks."""
ABSENT = ("medusa", "mlp_speculator")

GETS = (
    "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc", "/kv_event_sources", "/v1/responses/{response_id}",
)  # fmt: skip
POSTS = (
    "/tokenize", "/detokenize", "/v1/systemone", "/v1/decisions", "/invocations", "/v1/chat/completions/batch",
    "/v1/responses", "/v1/responses/{response_id}/cancel", "/v1/messages", "/v1/messages/count_tokens",
    "/generative_scoring", "/scale_elastic_ep", "/is_scaling_elastic_ep", "/v1/chat/completions/render",
    "/v1/messages/render", "/v1/completions/render", "/v1/responses/render", "/v1/chat/completions/derender",
    "/v1/completions/derender", "/inference/v1/generate", "/inference/v1/abort_requests",
)  # fmt: skip
LEFT_OUT = frozenset({*(("GET", path) for path in GETS), *(("POST", path) for path in POSTS)})
"""Routes that are not emulated: nothing of Paceline asks for them. Its documentation, tokenizers, other vendors' APIs,
rendering without an answer, and what several processes of one deployment ask each other."""
