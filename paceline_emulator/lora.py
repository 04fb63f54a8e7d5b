"""LoRA adapters: which are loaded, and requests for others (`tokenizer_manager.py:3722` of SGLang 0.5.23).

Adapters are as fast as the model, and write the same.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

SPECULATING = ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")


def loaded(args: Mapping[str, Any]) -> dict[str, str]:
    """Name → path, of SGLang's `--lora-paths` or vLLM's `--lora-modules`."""
    found = {}
    for word in args.get("lora_paths") or args.get("lora_modules") or ():
        if word.startswith("{"):
            said = json.loads(word)
            found[said.get("lora_name") or said["name"]] = said.get("lora_path") or said["path"]
        else:
            name, _, path = word.partition("=")
            found[name] = path or name
    return found


def resolved(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a server that has adapters, as it says them (`arg_groups/lora_hook.py:49` of 0.5.23)."""
    if not (there := loaded(args)):
        return {}
    paths = [
        {"lora_id": _id(name, path), "lora_name": name, "lora_path": path, "pinned": False}
        for name, path in there.items()
    ]
    return {"enable_lora": True, "enable_lora_overlap_loading": False, "lora_paths": paths}


def _id(name: str, path: str) -> str:
    """As `lora_registry.py:47` makes it."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{name}\0{path}").hex


def gauges(args: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str], float]]:
    """Of a server that has adapters. The real one fills the slots in when it logs a step."""
    if there := loaded(args):
        most = args["max_loras_per_batch"]
        used = min(len(there), most)
        for name, value in (("used", used), ("total", most)):
            yield f"sglang:lora_pool_slots_{name}", {}, value
        yield "sglang:lora_pool_utilization", {}, used / most


def check_speculation(args: Mapping[str, Any], algorithm: str) -> None:
    """ValueError for an algorithm that does not go with adapters (`arg_groups/lora_hook.py:240`)."""
    if algorithm == "NGRAM" or not (args["enable_lora"] or args["lora_paths"]):
        return
    if algorithm not in SPECULATING:
        raise ValueError(
            "LoRA is only compatible with NGRAM, EAGLE, NEXTN, EAGLE3, DFLASH, or DSPARK speculative decoding, not "
            f"{algorithm}."
        )
    if args["speculative_adaptive"]:
        raise ValueError(
            "LoRA with EAGLE/NEXTN/EAGLE3 speculative decoding does not support --speculative-adaptive: the draft is "
            "built from a static ServerArgs snapshot, and the runtime-state swap does not rebuild LoRA cuda-graph "
            "metadata."
        )


def check(args: Mapping[str, Any], model: str) -> None:
    """Of SGLang: `model` may be BASE:ADAPTER. ValueError for an adapter that is not there."""
    served = args["served_model_name"]
    if model == served or ":" not in model:
        return
    base = served if model.startswith(f"{served}:") else model.split(":", 1)[0]
    adapter, there = model[len(base) + 1 :].strip(), loaded(args)
    if adapter and not there:
        raise ValueError(
            f"LoRA adapter '{adapter}' was requested, but LoRA is not enabled. Please launch the server with "
            "--enable-lora flag and preload adapters using --lora-paths or /load_lora_adapter endpoint."
        )
    if adapter and adapter not in there:
        raise ValueError(
            f"Got LoRA adapter that has never been loaded: {adapter}\nAll loaded adapters: dict_keys({list(there)})."
        )
