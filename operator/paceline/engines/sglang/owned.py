"""Flags that are not the user's to paste: Paceline sets them from the resource, compares them, or refuses them."""

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

LOSSY = ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc")

COMPARED = (
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "max_running_requests", "mem_fraction_static", "context_length", "dtype", "kv_cache_dtype", "quantization",
    "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed", "tp_size", "sampling_backend",
    "disable_radix_cache", "decode_log_interval", "moe_runner_backend", "moe_a2a_backend",
)  # fmt: skip
"""Resolved arguments that must be equal on all arms. Not compared: overlap scheduling and mixed chunks. Some algorithms
cannot run with them (and nothing speculative can on a CPU), so losing them is part of what speculation costs."""
COMPARED_FLAGS = frozenset(f"--{argument.replace('_', '-')}" for argument in COMPARED)

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
