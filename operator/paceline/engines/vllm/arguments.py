"""vLLM's arguments: which exist, which ones Paceline renders, and which ones a round compares.

dev/vllm/extract_flags.py reads the list in vLLM's wheel. vLLM accepts underscores for dashes and `--flag.key value` for
a key of a JSON flag.
"""

from collections.abc import Mapping
from functools import cache

from paceline.engines.arguments import FlagList, read_flags
from paceline.engines.ways_out import with_ways_out

LISTED_VERSION = "0.33.0"
"""The version whose flags are listed. For other versions no flag counts as unknown."""
MANAGED_FLAGS: Mapping[str, str] = {
    **with_ways_out(
        "--model", "--revision", "--served-model-name", "--host", "--port", "--uds", "--config", "--seed",
        "--tensor-parallel-size", "--trust-remote-code", "--api-key", "--hf-token", "--download-dir", "--nnodes",
        "--node-rank", "--master-addr", "--master-port", "--headless", "--grpc",
    ),
    "--spec-*": "remove it",
    "--speculative-*": "remove it",
}  # fmt: skip
"""Flag → way out. The last two are shortcuts to the speculative configuration."""
_FORBIDDEN = {
    "--disable-log-stats": "there would be no metrics to measure speculation by",
    "--root-path": "pages would not be where they are read",
}
COMPARED = (
    "dtype", "max_seq_len", "quantization", "enforce_eager", "kv_cache_dtype", "enable_prefix_caching",
    "enable_chunked_prefill", "pipeline_parallel_size", "data_parallel_size", "disable_custom_all_reduce",
    "load_format", "block_size", "gpu_memory_utilization",
)  # fmt: skip
"""Arguments that every server must report. All others in the start line except MOVED are compared, too."""
MOVED = (
    "method", "num_spec_tokens", "draft_positions", "speculative_depth",
    "compilation_config.cudagraph_mode", "compilation_config.cudagraph_capture_sizes",
    "compilation_config.decoder_replay_cudagraph_capture_sizes", "compilation_config.max_cudagraph_capture_size",
    "compilation_config.compile_sizes", "compilation_config.compile_ranges_endpoints",
    "compilation_config.splitting_ops", "compilation_config.local_cache_dir", "compilation_config.cache_dir",
)  # fmt: skip
"""Resolved arguments that are not compared: speculation's own, and sizes and mode of CUDA graphs. The graphs depend on
the tokens of a verify step (`config/vllm.py`, _set_cudagraph_sizes), so losing some of them is part of speculation's
cost."""
CANDIDATE_FLAGS = frozenset({"--speculative-config"})
"""Flags that a candidate's `args` may hold: keys of the speculative configuration for which the resource has no field
(`keys`). Everything else is set in spec.engine.args, for all arms (docs/decisions/0020)."""
_RENAMED: Mapping[str, str] = {
    "--guided-decoding-backend": "--structured-outputs-config.backend",
    "--guided-decoding-disable-any-whitespace": "--structured-outputs-config.disable_any_whitespace=true",
    "--enable-reasoning": "--reasoning-parser",
    "--num-redundant-experts": "--eplb-config.num_redundant_experts",
    "--eplb-window-size": "--eplb-config.window_size",
    "--eplb-step-interval": "--eplb-config.step_interval",
    "--override-pooler-config": "--pooler-config",
    "--rope-scaling": "--hf-overrides.rope_parameters",
    "--disable-mm-preprocessor-cache": "--mm-processor-cache-gb=0",
    "--enable-multimodal-encoder-data-parallel": "--mm-encoder-tp-mode=data",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    "--worker-use-ray": "--distributed-executor-backend=ray",
}
"""Flags that 0.33.0 no longer has → their replacement, named by the last release with the flag (engine/arg_utils.py of
0.6.6 to 0.12.0)."""


@cache
def flag_list(version: str) -> FlagList:
    return FlagList(
        source=f"vLLM {LISTED_VERSION}",
        flags=read_flags(__package__, f"flags-{LISTED_VERSION}.json"),
        complete=version == LISTED_VERSION,
        exact=version == LISTED_VERSION,
        managed=MANAGED_FLAGS,
        forbidden=_FORBIDDEN,
        own=CANDIDATE_FLAGS,
        renamed=_RENAMED,
        spelling=_spelling,
    )


def _spelling(written: str) -> str:
    """--block_size, --compilation-config.mode, -O3."""
    name = written.partition(".")[0].replace("_", "-")
    return "--optimization-level" if name.startswith("-O") else name


FLAGS = flag_list(LISTED_VERSION)
