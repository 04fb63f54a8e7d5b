"""Flags that are not the user's to paste, those that a candidate may have of its own, and what all arms must say."""

from collections.abc import Mapping

OWNED: Mapping[str, str] = {
    "--model-path": "write spec.target.source",
    "--model": "write spec.target.source",
    "--revision": "write spec.target.revision",
    "--served-model-name": "write spec.target.servedName",
    "--trust-remote-code": "write spec.engine.trustRemoteCode: true",
    "--api-key": "name a Secret in spec.engine.apiKeySecretRef",
    "--admin-api-key": "name a Secret in spec.engine.adminKeySecretRef",
    "--tp-size": "write spec.accelerator.tensorParallelSize",
    "--tensor-parallel-size": "write spec.accelerator.tensorParallelSize",
    "--nnodes": "write spec.accelerator.nodes",
    "--node-rank": "write spec.accelerator.nodes",
    "--dist-init-addr": "write spec.accelerator.nodes",
    "--nccl-init-addr": "write spec.accelerator.nodes",
    "--config": "write its lines into args",
    "--host": "remove it",
    "--port": "remove it",
    "--enable-metrics": "remove it",
    "--random-seed": "remove it",
    "--decode-log-interval": "remove it",
    "--download-dir": "models are read from spec.cache: remove it",
}
"""Flag → where it is said instead."""

SPECULATIVE = "--speculative-"
"""How the flags begin that a candidate's draft and shape are made into."""

TUNING = frozenset({
    "--speculative-attention-mode",
    "--speculative-draft-attention-backend",
    "--speculative-draft-kv-cache-dtype",
    "--speculative-draft-model-quantization",
    "--speculative-draft-window-size",
    "--speculative-draft-sink-size",
    "--speculative-dsa-topk-backend",
    "--speculative-moe-runner-backend",
    "--speculative-moe-a2a-backend",
    "--speculative-token-map",
    "--speculative-use-rejection-sampling",
    "--speculative-use-block-verification",
    "--speculative-adaptive-config",
    "--speculative-domino-candidate-pool-size",
    "--speculative-dspark-sps-table-path",
    "--speculative-dspark-confidence-sts-path",
    "--speculative-dspark-align-verify-tokens-to-graph-tier",
    "--speculative-ngram-branch-length",
    "--speculative-ngram-capacity",
    "--speculative-ngram-match-type",
    "--speculative-ngram-max-trie-depth",
    "--speculative-ngram-min-bfs-breadth",
})  # fmt: skip
"""Of the flags that begin with SPECULATIVE, those that are a candidate's own: the resource has no words for them."""

OWN_FLAGS = frozenset({
    "--enable-linear-replayssm-spec",
    "--enable-multi-layer-eagle",
    "--linear-attn-verify-backend",
})  # fmt: skip
"""Flags of speculation that are not called so: with TUNING all that a candidate's `args` may hold. Everything else is
said in spec.engine.args, for all arms (docs/decisions/0020)."""

LOSSY = ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc")

COMPARED = (
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "max_running_requests", "mem_fraction_static", "context_length", "dtype", "kv_cache_dtype", "quantization",
    "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed", "tp_size", "sampling_backend",
    "disable_radix_cache", "decode_log_interval", "moe_runner_backend", "moe_a2a_backend",
)  # fmt: skip
"""Resolved arguments that every arm must say, and that status shows. All others are compared, too, but for `MOVED`."""

MOVED = (
    "speculative_*", "_speculative_*",
    "enable_multi_layer_eagle", "enable_linear_replayssm_spec", "linear_attn_verify_backend",
    "disable_overlap_schedule", "enable_mixed_chunk",
    "cuda_graph_bs", "cuda_graph_config.decode.bs", "disable_piecewise_cuda_graph", "disable_hybrid_swa_memory",
    "max_total_num_tokens", "max_req_input_len",
    "avg_spec_accept_length", "last_gen_throughput", "memory_usage",
)  # fmt: skip
"""Resolved arguments that differ where arms differ in their speculation alone, and so are not compared: speculation's
own; features that speculation has to do without, which is part of what it costs (0011); batch sizes of its CUDA graphs;
the KV cache that a draft leaves; and what 0.4.5 shows of its work beside its arguments. Held to every release of
`data/sglang-moves.json` and to captures: tests/contract/test_arguments.py."""

RETIRED: Mapping[str, str] = {
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
    "--cuda-graph-bs": "--cuda-graph-bs-decode",
    "--enable-ep-moe": "--ep-size",
    "--enable-deepep-moe": "--moe-a2a-backend=deepep",
    "--enable-flashmla": "--attention-backend=flashmla",
    "--enable-flashinfer-mla": "--attention-backend=flashinfer",
    "--fp8-gemm-runner-backend": "--fp8-gemm-backend",
    "--nsa-prefill-backend": "--dsa-prefill-backend",
    "--nsa-decode-backend": "--dsa-decode-backend",
    "--grpc-mode": "--smg-grpc-mode",
    "--enable-flashinfer-allreduce-fusion": "--flashinfer-allreduce-fusion-backend=auto",
    "--disable-fast-image-processor": "--image-processor-backend=pil",
}
"""Flags that some release has no more, or only with a warning → what takes their place, where that release has it."""
