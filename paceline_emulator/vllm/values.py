"""Values that vLLM's parser takes and its configuration refuses: with 1, and in pydantic's words (`invalid`).

Captured: tests/contract/captures/vllm/wrong_values.jsonl. In the order in which the real one makes its configuration
(`engine/arg_utils.py`, create_engine_config); of two faults it tells the first.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from paceline_emulator.vllm.invalid import Fault, checking, of_fields

Args = Mapping[str, Any]
Check = Callable[[Any], Fault | None]


@cache
def words() -> Mapping[str, list[str]]:
    """Names that are taken, by option: by tests/contract/make_vllm_words.py."""
    found: Mapping[str, list[str]] = json.loads((files(__package__) / "data" / "words.json").read_text())
    return found


def at_least(least: int) -> Check:
    fault = Fault("greater_than_equal", f"Input should be greater than or equal to {least}")
    return lambda value: fault if value < least else None


def above_zero(value: Any) -> Fault | None:
    return Fault("greater_than", "Input should be greater than 0") if value <= 0 else None


def a_share(value: float) -> Fault | None:
    over = Fault("less_than_equal", "Input should be less than or equal to 1")
    return above_zero(value) or (over if value > 1 else None)


def a_cache_type(value: str) -> Fault | None:
    known = words()["kv_cache_dtype"]
    said = f"Value error, Invalid kv_cache_dtype: {value!r}. Valid values are: {known}"
    return None if value in known else Fault("value_error", said)


def a_level(value: str) -> Fault | None:
    return None if str(value) in ("0", "1", "2", "3") else Fault("enum", "Input should be 0, 1, 2 or 3")


def a_tool_parser(args: Args) -> None:
    """`entrypoints/common/cli_args.py:554` and `:620`."""
    if args["enable_auto_tool_choice"] and not args["tool_call_parser"]:
        raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")
    parser, known = args["tool_call_parser"], words()["tool_call_parser"]
    if args["enable_auto_tool_choice"] and parser not in known:
        raise KeyError(f"invalid tool call parser: {parser} (chose from {{ {','.join(known)} }})")


def a_chat_template(args: Args) -> None:
    """A text in Jinja, or a file (`renderers/chat_utils/chat_template.py:42`)."""
    template = args["chat_template"]
    if template and not set("{}\n") & set(template) and not Path(template).exists():
        raise ValueError(f"The supplied chat template string ({template}) appears path-like, but doesn't exist!")


Fields = Mapping[str, tuple[str, Check]]
"""Option → what the configuration calls it, and what is wrong with its value."""
MODEL: Fields = {"max_model_len": ("max_model_len", at_least(-1))}
CACHE: Fields = {
    "block_size": ("block_size", above_zero),
    "gpu_memory_utilization": ("gpu_memory_utilization", a_share),
    "kv_cache_dtype": ("cache_dtype", a_cache_type),
}
PARALLEL: Fields = {
    name: (name, at_least(1)) for name in ("pipeline_parallel_size", "tensor_parallel_size", "data_parallel_size")
}
SCHEDULER: Fields = {name: (name, at_least(1)) for name in ("max_num_batched_tokens", "max_num_seqs")}
LORA: Fields = {"max_loras": ("max_loras", at_least(1))}
WHOLE: Fields = {"optimization_level": ("optimization_level", a_level)}


def check(args: Args, context: int) -> None:
    """Raises what ends the server; `context` is --max-model-len, or the model's."""
    a_chat_template(args)
    a_tool_parser(args)
    of_fields("ModelConfig", _faults(MODEL, args))
    with checking("ModelConfig"):
        if args["max_model_len"] == 0:
            raise ValueError("max_model_len must be a positive integer, got int: 0. Example: max_model_len=2048")
        if (method := args["quantization"]) is not None and method not in (known := words()["quantization"]):
            raise ValueError(f"Unknown quantization method: {method}. Must be one of {known}.")
    of_fields("CacheConfig", _faults(CACHE, args))
    of_fields("ParallelConfig", _faults(PARALLEL, args))
    of_fields("SchedulerConfig", _faults(SCHEDULER, _scheduled(args, context)))
    if args["enable_lora"]:
        of_fields("LoRAConfig", _faults(LORA, args))
    if (reasoning := args["reasoning_parser"]) and reasoning not in (known := words()["reasoning_parser"]):
        raise KeyError(f"Reasoning parser '{reasoning}' not found. Available parsers: {', '.join(known)}")
    if (backend := (args["attention_backend"] or "CPU_ATTN").upper()) not in (known := words()["attention_backend"]):
        raise ValueError(f"Unknown attention backend: {backend!r}. Valid options are: {', '.join(known)}")
    of_fields("VllmConfig", _faults(WHOLE, args))


def _scheduled(args: Args, context: int) -> Args:
    """What is not given is made of the other: requests are at most the tokens of a step, and a step has at most a whole
    context for each of them (`engine/arg_utils.py:3221`)."""
    tokens, seats = args["max_num_batched_tokens"], args["max_num_seqs"]
    if tokens is not None and tokens < 1:
        seats = tokens if seats is None else min(seats, tokens)
    elif seats is not None and seats < 1 and tokens is None:
        tokens = seats * context
    return {"max_num_batched_tokens": tokens, "max_num_seqs": seats}


def _faults(fields: Fields, args: Args) -> Iterator[tuple[str, Fault, Any]]:
    for option, (name, wrong) in fields.items():
        value = args[option]
        if value is not None and (fault := wrong(value)):
            yield name, fault, value
