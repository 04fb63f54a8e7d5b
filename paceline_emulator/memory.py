"""Which share of a GPU's memory SGLang 0.5.6 gives to weights and KV cache, where nobody says.

As in its wheel: srt/server_args.py:776-858, `_handle_gpu_memory_settings`, for GPUs from 60 to 160 GB. It reserves for
activations, CUDA graphs and parallelism, and for a draft as soon as it speculates: so the share depends on the arm.
"""

from collections.abc import Mapping
from typing import Any

VERSION = "0.5.6"
H200_MIB = 143771
"""What nvidia-smi tells of the GPU that is emulated."""
CHUNK = 8192
FLOOR_MIB = 10 * 1024
DRAFT_MIB = {None: 0, "NGRAM": 0, "STANDALONE": 6 * 1024}
EAGLE_MIB = 2 * 1024
"""Of every other algorithm."""


def mem_fraction_static(args: Mapping[str, Any], memory_mib: int = H200_MIB) -> float:
    """With three digits, as it is rounded there."""
    chunk = args["chunked_prefill_size"] or CHUNK
    graphs = args.get("cuda_graph_max_bs") or (256 if args["tp_size"] < 4 else 512)
    reserved: float = 512 + 1.5 * max(chunk if chunk > 0 else args["max_prefill_tokens"], 2048)
    reserved += 2 * graphs
    reserved += args["tp_size"] * args["pp_size"] / 8 * 1024
    if args.get("enable_dp_attention"):
        reserved += graphs * args["dp_size"] * (4.5 if graphs > 300 else 3)
    reserved = max(reserved, FLOOR_MIB) + DRAFT_MIB.get(args["speculative_algorithm"], EAGLE_MIB)
    share: float = round((memory_mib - reserved) / memory_mib, 3)
    return share
