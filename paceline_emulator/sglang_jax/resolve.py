"""From parsed flags to a server: sglang-jax's defaults, and its refusals with its own words.

What `check_server_args` (server_args.py:1852) refuses is raised before anything is loaded, what only the runner finds
out (model_runner.py:592, model_runner_kv_cache_mixin.py:449, eagle_draft_worker.py:417) after it: `loaded`.
"""

from typing import Any

from paceline_emulator import models
from paceline_emulator.resolve import Launch
from paceline_emulator.settings import Settings

Args = dict[str, Any]

RUNNING_OTHERWISE = 2048
HOOKED = ("LlamaForCausalLM", "Qwen3ForCausalLM")
UNSAID: Args = {"extra_metric_labels": None, "max_queued_requests": None, "admin_api_key": None}
"""What the emulated SGLang's parts ask for and sglang-jax does not have."""
DEFAULTS: Args = {
    "device": "tpu",
    "random_seed": 42,
    "mem_fraction_static": 0.88,
    "chunked_prefill_size": 4096,
    "grammar_backend": "llguidance",
    "dp_schedule_policy": "cache_aware",
}


def resolve(parsed: Args, settings: Settings) -> Launch:
    args = {**UNSAID, **parsed}
    args |= {name: value for name, value in DEFAULTS.items() if args[name] is None}
    args["tokenizer_path"] = args["tokenizer_path"] or args["model_path"]
    args["served_model_name"] = args["served_model_name"] or args["model_path"]
    algorithm = args["speculative_algorithm"]
    if args["enable_recurrent_extra_buffer"] and algorithm is not None:
        raise ValueError(
            "--enable-recurrent-extra-buffer does not support speculative decoding yet; got "
            f"--speculative-algorithm={algorithm}. Disable one of them."
        )
    if args["tp_size"] % args["nnodes"]:
        raise AssertionError("tp_size must be divisible by number of nodes")
    if args["chunked_prefill_size"] > 0 and args["chunked_prefill_size"] % args["page_size"]:
        raise AssertionError("chunked_prefill_size must be divisible by page_size")
    if algorithm is not None and not args["disable_overlap_schedule"]:
        _overlap(args, algorithm)
    if algorithm == "DFLASH":
        _dflash(args)
    target = models.load(args["model_path"], args["revision"], cache=settings.hub_cache, offline=settings.offline)
    head = None
    if algorithm is not None:
        # Without a path or a revision of its own the draft is the target's (configs/model_config.py:556).
        path = args["speculative_draft_model_path"] or args["model_path"]
        revision = args["speculative_draft_model_revision"] or args["revision"]
        head = models.load(path, revision, cache=settings.hub_cache, offline=settings.offline)
    return Launch(
        args=args, target=target, head=head, running_requests=args["max_running_requests"] or RUNNING_OTHERWISE
    )


def loaded(launch: Launch) -> None:
    """Raises what ends the real server when it has loaded its weights."""
    args, architecture = launch.args, (launch.target.architectures or ["?"])[0]
    if args["speculative_algorithm"] == "EAGLE3" and architecture not in HOOKED:
        raise AttributeError(f"'{architecture}' object has no attribute 'set_eagle3_layers_to_capture'")
    if args["kv_cache_dtype"] not in ("auto", "bf16"):
        raise ValueError(f"Unsupported kv_cache_dtype: {args['kv_cache_dtype']}.")
    if launch.speculative and args["speculative_eagle_topk"] > 1:
        raise TypeError("object of type 'NoneType' has no len()")


def _overlap(args: Args, algorithm: str) -> None:
    chain = (
        args["speculative_eagle_topk"] == 1
        and args["speculative_num_draft_tokens"] == args["speculative_num_steps"] + 1
    )
    overlaps = {"NEXTN": chain, "EAGLE3": chain and args["attention_backend"] == "fa", "DFLASH": True}
    if not overlaps.get(algorithm, False):
        raise ValueError(
            "Speculative overlap scheduler only supports DFLASH, EAGLE3+FA, or NEXTN with --speculative-eagle-topk=1 "
            "and --speculative-num-draft-tokens == --speculative-num-steps + 1. Please pass --disable-overlap-schedule "
            "for other speculative configs."
        )


def _dflash(args: Args) -> None:
    if args["speculative_eagle_topk"] != 1:
        raise ValueError("DFLASH requires --speculative-eagle-topk=1 (linear chain, no tree).")
    if args["speculative_num_steps"] != 1:
        raise ValueError("DFLASH (minimal) requires --speculative-num-steps=1.")
    if args["speculative_draft_model_path"] is None:
        raise ValueError("DFLASH requires --speculative-draft-model-path (the diffusion draft).")
    if args["enable_lora"] or args["enable_static_lora"] or args["lora_paths"]:
        raise ValueError("DFLASH does not support LoRA.")
    if args["grammar_backend"] != "none":
        raise ValueError("DFLASH does not support constrained decoding.")
