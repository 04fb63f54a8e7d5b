"""What a command line comes to: the models, the speculation, and what vLLM refuses before it serves.

Sources: `config/speculative.py` of 0.33.0 (lines in the comments); a refusal is an exception, mostly pydantic's
(`invalid`), which ends the process with a traceback and 1.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline_emulator import lora, models
from paceline_emulator.models import Model
from paceline_emulator.profile import Shape
from paceline_emulator.settings import Settings
from paceline_emulator.vllm import values
from paceline_emulator.vllm.invalid import Fault, checking, of_fields
from paceline_emulator.vllm.log import log

HEADS = ("eagle", "eagle3", "dflash", "dspark", "draft_model")
"""Methods that need a model of their own; `mtp` finds it in the target's checkpoint."""
METHODS = (*HEADS, "mtp", "ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states")
COSTLESS = ("ngram", "ngram_gpu", "suffix", "dflash", "dspark")
"""A lookup, or one parallel pass: drafting more costs no more."""
KEYS = frozenset({
    "method", "model", "num_speculative_tokens", "revision", "code_revision", "quantization", "max_model_len",
    "draft_tensor_parallel_size", "tensor_parallel_size", "draft_load_config", "enforce_eager", "moe_backend",
    "attention_backend", "kv_cache_dtype", "parallel_drafting", "draft_sample_method", "use_local_argmax_reduction",
    "draft_lm_head_quantization", "use_heterogeneous_vocab", "rejection_sample_method", "prompt_lookup_min",
    "prompt_lookup_max", "num_speculative_tokens_per_batch_size", "disable_padded_drafter_batch",
    "enable_adaptive_verification", "suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests",
    "suffix_decoding_max_spec_factor", "suffix_decoding_min_token_prob",
})  # fmt: skip
CONFIG = "SpeculativeConfig"
DEFAULT_SEATS = 256
AUTO = -1
"""Of --max-model-len: what the model has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    method: str
    head: Model | None
    tokens: int
    schedule: tuple[tuple[int, ...], ...] = ()
    """`[from, to, tokens]` by batch size; empty: always as many."""
    adaptive: bool = False

    def shape(self, tokens: int, verified: int | None = None) -> Shape:
        """A chain, of which fewer may be verified than were proposed; the verifying token comes on top."""
        worth = 0.5 if self.method.startswith(("ngram", "suffix")) else 1.0
        costly = self.method not in COSTLESS
        width = (tokens if verified is None else verified) + 1
        return Shape(steps=max(1, tokens), branches=1, width=width, costly=costly, worth=worth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`args` as parsed; `context` tokens; `seats` requests at a time."""

    args: Mapping[str, Any]
    target: Model
    names: tuple[str, ...]
    speculation: Speculation | None
    context: int
    seats: int

    @property
    def adapters(self) -> Mapping[str, str]:
        """Name → path."""
        return lora.loaded(self.args) if self.args["enable_lora"] else {}

    @property
    def asked(self) -> Mapping[str, Any]:
        """What the command line says of what matters here (`entrypoints/.../startup.py:96` prints all of it)."""
        args = self.args
        said = {"model_tag": args["model_tag"], "speculative_config": args["speculative_config"]}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def configuration(self) -> str:
        """As the start log has it (`config/vllm.py:2809`); what is no scalar is left empty."""
        args, spec = self.args, self.speculation
        said = (
            f"SpeculativeConfig(method={spec.method!r}, model={spec.head.path if spec.head else None!r}, "
            f"num_spec_tokens={spec.tokens})"
            if spec
            else None
        )
        fields = {
            "model": repr(self.target.path),
            "speculative_config": said,
            "tokenizer": repr(self.target.path),
            "skip_tokenizer_init": False,
            "tokenizer_mode": args["tokenizer_mode"],
            "revision": args["revision"],
            "tokenizer_revision": args["tokenizer_revision"],
            "trust_remote_code": bool(args["trust_remote_code"]),
            "dtype": "torch.bfloat16" if args["dtype"] == "auto" else f"torch.{args['dtype']}",
            "max_seq_len": self.context,
            "download_dir": args["download_dir"],
            "load_format": args["load_format"],
            "tensor_parallel_size": args["tensor_parallel_size"],
            "pipeline_parallel_size": args["pipeline_parallel_size"],
            "data_parallel_size": args["data_parallel_size"],
            "disable_custom_all_reduce": bool(args["disable_custom_all_reduce"]),
            "quantization": args["quantization"],
            "quantization_config": None,
            "enforce_eager": bool(args["enforce_eager"]),
            "kv_cache_dtype": args["kv_cache_dtype"],
            "device_config": "cuda",
            "structured_outputs_config": "StructuredOutputsConfig(backend='auto')",
            "seed": args["seed"],
            "served_model_name": self.names[0],
            "enable_prefix_caching": args["enable_prefix_caching"] is not False,
            "enable_chunked_prefill": args["enable_chunked_prefill"] is not False,
            "pooler_config": None,
            "compilation_config": "{'mode': 3, 'cudagraph_capture_sizes': [1, 2, 4]}",
        }
        return ", ".join(f"{name}={value}" for name, value in fields.items())


def resolve(args: Mapping[str, Any], settings: Settings) -> Launch:
    def load(path: str) -> Model:
        return models.load(path, None, cache=settings.hub_cache, offline=settings.offline)

    target, said = load(args["model_tag"] or args["model"]), args["speculative_config"]
    if target.verifier:
        said, target = _of_speculator(target, said or {}), load(target.verifier)
    asked = args["max_model_len"]
    context = target.context if asked in (None, AUTO) else asked
    values.check(args, context)
    with checking("ModelConfig"):
        if context > target.context:  # config/model.py: verify_max_len
            raise ValueError(
                f"User-specified max_model_len ({asked}) is greater than the derived max_model_len ({target.context})"
            )
    with checking(CONFIG):
        spec = None if said is None else _together(speculation(said, load), args)
    return Launch(
        args=args,
        target=target,
        names=tuple(args["served_model_name"] or (target.path,)),
        speculation=spec,
        context=context,
        seats=args["max_num_seqs"] or DEFAULT_SEATS,
    )


def _of_speculator(head: Model, said: Mapping[str, Any]) -> Mapping[str, Any]:
    """A speculator as the model: its verifier is served, and speculates (`transformers_utils/config.py:800`)."""
    of = head.config["speculators_config"]["proposal_methods"][0]
    method = head.config["speculators_model_type"]
    return {"num_speculative_tokens": of["speculative_tokens"], **said, "method": method, "model": head.path}


def speculation(said: Mapping[str, Any], load: Any) -> Speculation:
    """Of `--speculative-config`; raises ValueError in vLLM's words."""
    if unknown := sorted(set(said) - KEYS):  # config/utils.py:71
        name = unknown[0]
        of_fields(CONFIG, [(name, Fault("unexpected_keyword_argument", "Unexpected keyword argument"), said[name])])
    if "tensor_parallel_size" in said:  # :1940
        raise ValueError(
            "'tensor_parallel_size' is not a valid argument in the speculative_config. "
            "Please pass 'draft_tensor_parallel_size' instead."
        )
    tokens, method, path = said.get("num_speculative_tokens"), said.get("method"), said.get("model")
    if method == "suffix" and tokens is None:  # :1732
        tokens = said.get("suffix_decoding_max_tree_depth", 24)
    if tokens is None:  # :1946
        raise ValueError("num_speculative_tokens must be provided with speculative model")
    if not isinstance(tokens, int) or tokens < 1:
        fault = Fault("greater_than", "Input should be greater than 0")
        of_fields(CONFIG, [("num_speculative_tokens", fault, tokens)])
    method = method or _guessed(str(path or ""))
    if method not in METHODS:  # :1500
        raise NotImplementedError(f"Unsupported speculative method: '{method}'")
    if method in HEADS and path is None:  # :1293
        raise ValueError("num_speculative_tokens was provided but without speculative model.")
    ranges = said.get("num_speculative_tokens_per_batch_size")
    return Speculation(
        method=method,
        head=load(path) if path and method != "custom_class" else None,
        tokens=tokens,
        schedule=() if ranges is None else _schedule(ranges),
        adaptive=bool(said.get("enable_adaptive_verification")),
    )


def _schedule(ranges: Any) -> tuple[tuple[int, ...], ...]:
    """`v1/spec_decode/dynamic/utils.py:7`."""
    if not isinstance(ranges, list) or not ranges or not all(isinstance(one, list) and len(one) == 3 for one in ranges):
        raise ValueError(
            "Each num_speculative_tokens_per_batch_size entry must be a 3-item sequence: (range_start, range_end, "
            "num_speculative_tokens)."
        )
    found = sorted((int(first), int(last), int(tokens)) for first, last, tokens in ranges)
    if any(tokens < 0 for *_, tokens in found):
        raise ValueError("num_speculative_tokens_per_batch_size values must be >= 0.")
    if any(first <= before for (_, before, _), (first, *_) in itertools.pairwise(found)):
        raise ValueError("Batch-size ranges must be non-overlapping and sorted.")
    if found[0][0] != 1:
        raise ValueError(
            "The first batch-size range must start at 1 so every runtime batch size has a defined schedule."
        )
    return tuple(found)


def _together(spec: Speculation, args: Mapping[str, Any]) -> Speculation:
    """What goes not with a depth that moves: refused, or dropped with a warning (`config/vllm.py:1110`, `:3153`)."""
    if spec.adaptive and args["enable_lora"]:
        raise ValueError("Adaptive verification is not currently compatible with LoRA")
    if spec.adaptive and args["enforce_eager"]:
        raise ValueError(
            "Adaptive verification requires full CUDA graphs. Use cudagraph mode FULL, FULL_DECODE_ONLY, or "
            "FULL_AND_PIECEWISE, or disable adaptive verification."
        )
    if spec.adaptive and (args["pipeline_parallel_size"] or 1) > 1:
        raise ValueError("Adaptive verification is not currently compatible with pipeline parallelism")
    if spec.schedule and (args["data_parallel_size"] or 1) > 1:
        log(
            "APIServer",
            "WARNING",
            "vllm.py:1120",
            "Dynamic speculative decoding is not supported with data parallelism because data-parallel ranks can "
            "select different speculative-token counts, causing DP divergence and deadlocks. Disabling "
            f"num_speculative_tokens_per_batch_size and falling back to static num_speculative_tokens={spec.tokens}.",
        )
        return replace(spec, schedule=())
    return spec


def _guessed(path: str) -> str:
    """As vLLM reads a method out of a path (:1432)."""
    found = (name for name, mark in (("eagle", "eagle-"), ("eagle3", "eagle3-"), ("dflash", "dflash")) if mark in path)
    return "ngram" if path == "ngram" else next(found, "draft_model")
