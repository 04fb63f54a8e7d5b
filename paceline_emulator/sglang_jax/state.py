"""What /get_server_info says: every argument, and the state of the scheduler as the captured one has it."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from paceline_emulator import info
from paceline_emulator.sglang_jax.server import Server

Object = dict[str, Any]


def server_info(server: Server, version: str) -> Object:
    """`status` is ready as soon as it answers."""
    shape, args = _shape(), server.launch.args
    answer = {name: args[name] for name in shape["arguments"]}
    return {
        **answer,
        "status": "ready",
        "max_total_num_tokens": info.kv_tokens(server),
        "max_req_input_len": info.context(server) - info.MARGIN,
        "internal_states": [_state(server, shape["state"])],
        "version": version,
    }


def _state(server: Server, shape: Object) -> Object:
    engine, args = server.engine, server.launch.args
    running, capacity = len(engine.running), info.kv_tokens(server)
    free, seats = capacity - info.used_tokens(server), server.launch.running_requests
    return {
        **shape,
        **{name: args[name] for name in shape if name in args},
        "last_gen_throughput": engine.report.throughput,
        "memory_usage": {"kvcache": info.KV_GB, "token_capacity": capacity},
        "waiting_queue_size": len(engine.waiting),
        "running_batch_size": running,
        "prefill_decode_size": running,
        "waiting_queue_rids": [request.id for request in engine.waiting],
        "running_batch_rids": [request.id for request in engine.running],
        "cur_batch_is_none": not running,
        "last_batch_is_none": not running,
        "req_to_token_pool_total": seats,
        "req_to_token_pool_available": seats - running,
        "req_to_token_pool_used": running,
        "available_kv_tokens": free,
        "available_kv_tokens_per_dp": [free],
        "forward_ct_decode": server.steps,
    }


def pending(server: Server) -> str:
    """Why a flush is refused (managers/scheduler.py, flush_cache)."""
    running = len(server.engine.running)
    said = {
        "waiting": len(server.engine.waiting),
        "grammar": 0,
        "pending_dp": 0,
        "running": running,
        "cur_batch": int(running > 0),
        "last_batch": int(running > 0),
        "chunked": False,
        "pending_results": int(running > 0),
        **dict.fromkeys(("pd_prefill", "pd_prealloc", "pd_transfer", "pd_bootstrap"), 0),
    }
    return ", ".join(f"{name}={value}" for name, value in said.items())


@cache
def _shape() -> Object:
    """Made from the capture by tests/contract/make_catalogues.py."""
    found: Object = json.loads((files("paceline_emulator") / "data" / "sglang_jax_server_info.json").read_text())
    return found
