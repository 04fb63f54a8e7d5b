"""What the server says of itself: /server_info, /model_info, /v1/models, /v1/loads and the gauges.

Shapes come from captures of the real server (`data/server_info.json`, `data/model_info.json`); values are the resolved
ones. Keys are shown in clear, as there.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from paceline_emulator import flags, lora
from paceline_emulator.older import NEWEST, Surface

if TYPE_CHECKING:
    from paceline_emulator.server import Server

ACCELERATOR = None
KV_TOKENS = 1_000_000
"""What an emulated GPU's KV cache holds; a head takes HEAD_SHARE of it."""
HEAD_SHARE = 0.03
WEIGHT_GB, KV_GB, GRAPH_GB, AVAILABLE_GB = 40.0, 70.0, 1.5, 140.0
PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
MARGIN = 6
"""max_req_input_len is the context length less this."""

BESIDE_ARGUMENTS = {"version", "max_total_num_tokens", "max_req_input_len"}
IN_OLDER_STATES = {"last_gen_throughput", "memory_usage", "avg_spec_accept_length"}

Object = dict[str, Any]


def compact(value: Any) -> str:
    """JSON without blanks, as the real server writes it."""
    return json.dumps(value, separators=(",", ":"))


def kv_tokens(server: Server) -> int:
    asked: int | None = server.launch.args["max_total_tokens"]
    return asked or int(KV_TOKENS * (1 - HEAD_SHARE if server.launch.head else 1))


def context(server: Server) -> int:
    asked: int | None = server.launch.args["context_length"]
    return asked or server.launch.target.context


def used_tokens(server: Server) -> int:
    return sum(request.prompt_tokens + request.produced for request in server.engine.running)


def token_usage(server: Server) -> float:
    return used_tokens(server) / kv_tokens(server)


def server_info(server: Server) -> Object:
    shape = _shape("server_info.json")
    args = {key: value for key, value in server.launch.args.items() if key in shape["top"]}
    startup = _startup(server)
    top = {
        **shape["top"],
        **_filled(shape["top"], args),
        **lora.resolved(args),
        "launch_command": shlex.join(server.argv),
        "status": "ready" if server.ready else "starting",
        "max_total_num_tokens": kv_tokens(server),
        "max_req_input_len": context(server) - MARGIN,
        "startup_time": startup,
        "version": version(server),
    }
    state = {key: value for key, value in top.items() if key not in shape["leftOutOfState"]}
    average, width = server.engine.average_accept_length, server.engine.report.width
    state |= {
        **shape["state"],
        "pp_max_micro_batch_size": server.launch.running_requests,
        "disable_chunked_prefix_cache": True,
        "world_size": server.launch.args["tp_size"] * server.launch.args["pp_size"],
        "effective_max_running_requests_per_dp": server.launch.running_requests,
        "last_gen_throughput": server.engine.report.throughput,
        "memory_usage": {
            "weight": WEIGHT_GB,
            "kvcache": KV_GB,
            "startup_available": AVAILABLE_GB,
            "token_capacity": kv_tokens(server),
            "token_capacity_swa": None,
            "graph": dict.fromkeys(PHASES, 0.0) | {"decode": GRAPH_GB},
        },
        "decode_cuda_graph_memory_gb": GRAPH_GB,
        **({} if average is None else {"avg_spec_accept_length": average}),
    }
    if server.engine.drafting and width:  # as it is just now; at the top is what it began with
        state |= {"speculative_num_steps": width - 1, "speculative_num_draft_tokens": width}
    return _as_shown(server.settings.surface, top, state)


def version(server: Server) -> str:
    return f"{server.settings.surface.version}+emulated"


def _as_shown(surface: Surface, top: Object, state: Object) -> Object:
    """Older releases say less, and 0.4.5 all at one level."""
    if surface.version != NEWEST:
        arguments = flags.arguments(surface.version)
        top = {key: value for key, value in top.items() if key in arguments | BESIDE_ARGUMENTS}
        state = {key: value for key, value in state.items() if key in arguments | IN_OLDER_STATES}
    return {**top, "internal_states": [state]} if surface.ranks else {**top, **state}


def _filled(template: Object, args: Object) -> Object:
    """Flags whose default is None keep what the real server resolves them to, unless it is of the captured run."""
    of_the_run = ("max_total_tokens", "model_path", "tokenizer_path", "served_model_name", "context_length")
    return {
        key: template[key] if value is None and key not in of_the_run else value
        for key, value in args.items()
        if not key.startswith("watermark_")
    }


def _startup(server: Server) -> Object:
    seconds = server.settings.startup
    return {
        "load_weight": 0.6 * seconds,
        "kv_cache_allocation": 0.1 * seconds,
        "scheduler_e2e": 0.9 * seconds,
        "cuda_graph": dict.fromkeys(PHASES, 0.0) | {"decode": 0.2 * seconds},
        "tokenizer_e2e": seconds,
    }


def model_info(server: Server) -> Object:
    args, target = server.launch.args, server.launch.target
    return {
        **_shape("model_info.json"),
        "model_path": args["model_path"],
        "served_model_name": args["served_model_name"],
        "tokenizer_path": args["tokenizer_path"],
        "preferred_sampling_params": args["preferred_sampling_params"],
        "weight_version": args["weight_version"],
        "load_format": args["load_format"],
        "reasoning_parser": args["reasoning_parser"],
        "tool_call_parser": args["tool_call_parser"],
        "model_type": target.config.get("model_type"),
        "architectures": target.architectures,
    }


def models(server: Server) -> Object:
    name = server.launch.args["served_model_name"]
    model = {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": name,
        "parent": None,
        "max_model_len": context(server),
    }
    adapters = [
        {**model, "id": adapter, "root": path, "parent": name, "max_model_len": None}
        for adapter, path in lora.loaded(server.launch.args).items()
    ]
    return {"object": "list", "data": [model, *adapters]}


def loads(server: Server) -> Object:
    """Without --enable-metrics what comes from the scheduler's statistics stays 0, as on the real server."""
    engine, metrics_on = server.engine, server.launch.args["enable_metrics"]
    report, totals, used = engine.report, engine.totals, used_tokens(server)
    prefilled = totals.prefill_computed + totals.prefill_cached
    waiting = sum(request.prompt_tokens for request in engine.waiting)
    load: Object = {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": len(engine.running),
        "num_waiting_reqs": len(engine.waiting),
        "num_waiting_uncached_tokens": waiting,
        "num_used_tokens": used,
        "num_total_tokens": used + waiting,
        "num_active_tokens": used,
        "num_prealloc_ready_tokens": 0,
        "max_total_num_tokens": kv_tokens(server),
        "max_running_requests": server.launch.running_requests,
        "token_usage": round(token_usage(server), 4),
        "gen_throughput": round(report.throughput, 2) if metrics_on else 0.0,
        "cache_hit_rate": round(totals.prefill_cached / prefilled, 4) if metrics_on and prefilled else 0.0,
        "utilization": 0.0,
        "total_prefill_uncached_tokens": totals.prefill_computed,
        "total_prefill_busy_us": 0,
        "decode_moments": [float(totals.decode_steps), float(totals.decoded), 0.0, 0.0, 0.0, 0.0],
        "memory": {
            "weight_gb": WEIGHT_GB,
            "kv_cache_gb": KV_GB,
            "graph_gb": GRAPH_GB,
            "token_capacity": kv_tokens(server),
        },
    }
    if server.launch.speculative and engine.average_accept_length is not None:
        rate = report.accept_rate if metrics_on else 0.0
        load["speculative"] = {"accept_length": engine.average_accept_length, "accept_rate": rate}
    load["disaggregation"] = {
        "mode": "null",
        "prefill_bootstrap_queue_reqs": 0,
        "prefill_inflight_queue_reqs": 0,
        "decode_prealloc_queue_reqs": 0,
        "decode_transfer_queue_reqs": 0,
        "decode_retracted_queue_reqs": 0,
        "kv_transfer_speed_gb_s": 0.0,
        "kv_transfer_latency_ms": 0.0,
    }
    load["queues"] = {"waiting": len(engine.waiting), "grammar": 0, "paused": 0, "retracted": 0, "prealloc_ready": 0}
    return {
        "timestamp": datetime.now(UTC).isoformat(),
        "version": version(server),
        "accelerator": ACCELERATOR,
        "num_accelerators": server.launch.args["tp_size"] * server.launch.args["pp_size"],
        "loads": [load],
    }


SECTIONS = {"spec": "speculative", "disagg": "disaggregation"}
ALL_SECTIONS = ("memory", "speculative", "disaggregation", "queues", "lora")


def only(load: Object, include: str | None) -> Object:
    """One rank's load with the sections asked for: `core,memory,spec,disagg,queues` or all."""
    wanted = {SECTIONS.get(word.strip(), word.strip()) for word in (include or "all").split(",")}
    return {key: value for key, value in load.items() if key not in ALL_SECTIONS or key in wanted or "all" in wanted}


def loads_as_prometheus(all_loads: list[Object]) -> str:
    """Other names than /metrics: `sglang_KEY`, `sglang_SECTION_KEY`, with the rank as label."""
    prefixes = {"speculative": "spec", "disaggregation": "disagg"}
    samples: dict[str, list[str]] = {}
    for load in all_loads:
        flat = {
            **{f"sglang_{key}": value for key, value in load.items()},
            **{
                f"sglang_{prefixes.get(section, section)}_{key}": value
                for section, inner in load.items()
                if isinstance(inner, dict)
                for key, value in inner.items()
            },
        }
        for name, value in flat.items():
            if isinstance(value, (int, float)) and name != "sglang_dp_rank":
                samples.setdefault(name, []).append(f'{name}{{dp_rank="{load["dp_rank"]}"}} {value}')
    lines = [line for name, found in samples.items() for line in (f"# TYPE {name} gauge", *found)]
    return "\n".join(lines) + "\n"


def gauges(server: Server) -> Iterator[tuple[str, dict[str, str], float]]:
    """(metric, labels, value) of everything in /metrics that is read off the state rather than counted."""
    args, engine = server.launch.args, server.engine
    report, totals = engine.report, engine.totals
    prefilled = totals.prefill_computed + totals.prefill_cached
    used, capacity = used_tokens(server), kv_tokens(server)
    plain: dict[str, float] = {
        "max_total_num_tokens": capacity,
        "weight_memory_usage_gb": WEIGHT_GB,
        "kv_cache_memory_usage_gb": KV_GB,
        "startup_available_gpu_memory_gb": AVAILABLE_GB,
        "page_size": args["page_size"],
        "num_pages": capacity // args["page_size"],
        "context_len": context(server),
        "num_running_reqs": len(engine.running),
        "num_queue_reqs": len(engine.waiting),
        "gen_throughput": report.throughput,
        "cache_hit_rate": totals.prefill_cached / prefilled if prefilled else 0.0,
        "decode_sum_seq_lens": report.used_tokens,
        "token_usage": used / capacity,
        "full_token_usage": used / capacity,
        "num_used_tokens": used,
        "kv_available_tokens": capacity - used,
        "kv_used_tokens": used,
        "spec_accept_length": report.accept_length,
        "spec_accept_rate": report.accept_rate,
        "spec_num_steps": max(0, report.width - 1) if engine.drafting else args["speculative_num_steps"] or 0,
        "spec_num_draft_tokens": report.width if engine.drafting else args["speculative_num_draft_tokens"] or 0,
        "new_token_ratio": 0.7,
        "is_cuda_graph": 1.0,
        "scheduler_idle_seconds_total": max(0.0, time.time() - server.started - totals.busy_seconds),
        "scheduler_process_cpu_seconds_total": time.process_time(),
    }
    yield from ((f"sglang:{name}", {}, value) for name, value in plain.items())
    yield from lora.gauges(args)
    yield "sglang:graph_memory_usage_gb", {"phase": "decode"}, GRAPH_GB
    startup = _startup(server)
    for phase, seconds in startup.items():
        if phase == "cuda_graph":
            for graph, spent in seconds.items():
                yield "sglang:startup_cuda_graph_time_seconds", {"phase": graph}, spent
        else:
            yield "sglang:startup_time_seconds", {"phase": phase}, seconds
    for mode, tokens in (
        ("prefill_compute", totals.prefill_computed),
        ("prefill_cache", totals.prefill_cached),
        ("decode", totals.decoded),
    ):
        yield "sglang:realtime_tokens_total", {"mode": mode}, tokens
    yield "sglang:prefill_effective_tokens_total", {"mode": "input"}, totals.prefill_computed
    yield "sglang:prefill_effective_tokens_total", {"mode": "device_hit"}, totals.prefill_cached
    yield "sglang:cuda_graph_passes_total", {"mode": "prefill_none"}, totals.prefills
    yield "sglang:cuda_graph_passes_total", {"mode": "decode_none"}, totals.decode_steps
    yield (
        "sglang:scheduler_stage_seconds_total",
        {"category": "run_batch", "forward_overlap": "none"},
        totals.busy_seconds,
    )
    yield "sglang:process_cpu_seconds_total", {"component": "tokenizer"}, time.process_time()


def _shape(name: str) -> Object:
    found: Object = json.loads((files(__package__) / "data" / name).read_text())
    return found
