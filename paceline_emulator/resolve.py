"""From parsed flags to resolved arguments: SGLang's defaults, its silent rewriting and its refusals.

Sources: SGLang 0.5.23, `srt/arg_groups/speculative_hook.py`, `model_override_base.py`, `validation_hook.py`. The GPU is
taken to be Hopper with 144 GB. A refusal is raised with the real one's type and words: the last line of the traceback
is what a person sees in the pod's log, and the exit code is 1.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline_emulator import depth, layers, lora, memory, models
from paceline_emulator.layers import States
from paceline_emulator.models import Model
from paceline_emulator.settings import Settings

Args = dict[str, Any]
Warn = Callable[[str], None]

ALGORITHMS = ("EAGLE", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO")
ALIASES = {"NEXTN": "EAGLE", "MTP": "EAGLE"}
EAGLE_FAMILY = ("EAGLE", "EAGLE3", "STANDALONE")
BLOCK_FAMILY = ("DFLASH", "DSPARK")

# (steps, topk, draft tokens) where all three are left out.
AUTOMATIC_TREE = {"LlamaForCausalLM": (5, 4, 8), "Grok1ForCausalLM": (5, 4, 8)}
AUTOMATIC_TREE_OF_OTHERS = (3, 1, 4)

# Their draft is part of the target's checkpoint.
MTP_INSIDE = (
    "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM", "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM",
    "BailingMoeV2_5ForCausalLM", "MistralLarge3ForCausalLM", "PixtralForConditionalGeneration", "HYV3ForCausalLM",
    "HYV4ForCausalLM", "Qwen4ExpForConditionalGeneration",
)  # fmt: skip
PAGED_TREES = ("flashinfer", "fa3", "triton")

MEM_FRACTION_STATIC = 0.836
RUNNING_WITH_SPECULATION = 48
RUNNING_OTHERWISE = 2048
"""What the KV cache of a large GPU allows; the baseline's own limit is sized from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One server: its resolved arguments, its models, and how many requests it runs at once."""

    args: Args
    target: Model
    head: Model | None
    running_requests: int
    states: States | None = None
    """Of the target, that the head is given; None where it is given none."""

    @property
    def speculative(self) -> bool:
        return self.args["speculative_algorithm"] is not None


def resolve(parsed: Args, settings: Settings, warn: Warn) -> Launch:
    """Raises what SGLang raises; everything it rewrites is said through `warn`."""
    args = dict(parsed)
    algorithm = _algorithm(args)
    args["speculative_algorithm"] = algorithm
    target = models.load(args["model_path"], args["revision"], cache=settings.hub_cache, offline=settings.offline)
    context = _context(args, target, settings, warn)
    _attention(args, warn)
    _defaults(args, settings.surface.version)
    if args["served_model_name"] is None:
        args["served_model_name"] = args["model_path"]
    if ":" in args["served_model_name"]:
        raise AssertionError(
            "served_model_name cannot contain a colon (':') character. The colon is reserved for the "
            "'model:adapter' syntax used in LoRA adapter specification. Invalid value: "
            f"'{args['served_model_name']}'"
        )
    if args["dp_size"] > 1 and args["attn_dp_size"] > 1:
        raise ValueError("dp_size and attn_dp_size cannot both be greater than 1.")
    if args["tokenizer_worker_num"] > 1 and args["api_key"]:
        raise AssertionError("API key is not supported with tokenizer_worker_num > 1")
    head = None
    if algorithm is not None:
        _together(args)
        head = _speculate(args, algorithm, target, context, settings, warn)
        lora.check_speculation(args, algorithm)
    given = layers.states(settings.surface.version, target, head) if algorithm == "EAGLE3" and head else None
    limit = args["max_running_requests"]
    return Launch(args=args, target=target, head=head, running_requests=limit or RUNNING_OTHERWISE, states=given)


def _algorithm(args: Args) -> str | None:
    named: str | None = args["speculative_algorithm"]
    if named is None:
        return None
    algorithm = ALIASES.get(named.upper(), named.upper())
    if algorithm not in ALGORITHMS:
        raise ValueError(f"Unknown speculative algorithm name: {named}")
    return algorithm


def _context(args: Args, target: Model, settings: Settings, warn: Warn) -> int:
    asked: int | None = args["context_length"]
    if asked is None:
        return target.context
    if asked > target.context:
        _too_long("User-specified", asked, target.context, settings, warn)
    return asked


def _too_long(whose: str, asked: int, derived: int, settings: Settings, warn: Warn) -> None:
    message = (
        f"Warning: {whose} context_length ({asked}) is greater than the derived context_length ({derived}). This may "
        "lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ from "
        "max_position_embeddings in the model's config."
    )
    if not settings.overwrite_longer_context:
        raise ValueError(
            f"{message} To allow overriding this maximum, set the env var SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
        )
    warn(message)


def _attention(args: Args, warn: Warn) -> None:
    """On Hopper the default changes behind the user's back with an explicit tree: fa3, or flashinfer with branching."""
    branching = args["speculative_algorithm"] is not None and (args["speculative_eagle_topk"] or 1) > 1
    paged_tree = args["speculative_algorithm"] is not None and args["speculative_eagle_topk"] is not None
    paged = (args["page_size"] or 1) > 1
    if args["attention_backend"] is None:
        args["attention_backend"] = "flashinfer" if branching or (paged_tree and paged) else "fa3"
        warn(f"Attention backend not specified. Use {args['attention_backend']} backend by default.")
    if args["page_size"] is None:
        args["page_size"] = 64 if "trtllm_mha" in _backends(args) else 1


def _backends(args: Args) -> tuple[str, str]:
    """Of the prefill and the decode phase."""
    both = args["attention_backend"]
    return args["prefill_attention_backend"] or both, args["decode_attention_backend"] or both


def _defaults(args: Args, version: str) -> None:
    """Resolved values that the operator compares between arms."""
    args["tokenizer_path"] = args["tokenizer_path"] or args["model_path"]
    args["device"] = args["device"] or "cuda"
    if args["mem_fraction_static"] is None:
        by_the_arm = version == memory.VERSION
        args["mem_fraction_static"] = memory.mem_fraction_static(args) if by_the_arm else MEM_FRACTION_STATIC
    args["chunked_prefill_size"] = args["chunked_prefill_size"] or 8192
    args["sampling_backend"] = args["sampling_backend"] or "flashinfer"
    args["grammar_backend"] = args["grammar_backend"] or "xgrammar"
    if args["random_seed"] is None:
        args["random_seed"] = random.randrange(1 << 30)


def _together(args: Args) -> None:
    """What speculation of any kind does not go together with."""
    if args["weight_cache_mode"] != "off":
        raise ValueError("--weight-cache-mode does not support speculative decoding.")
    if "flex_attention" in _backends(args):
        raise AssertionError("Speculative decoding is currently not supported with Flex Attention backend")
    if args["pp_size"] > 1 and args["speculative_algorithm"] != "EAGLE":
        raise AssertionError("Pipeline parallelism is not compatible with overlap schedule, speculative decoding.")


def _speculate(args: Args, algorithm: str, target: Model, context: int, settings: Settings, warn: Warn) -> Model | None:
    if args["max_running_requests"] is None:
        args["max_running_requests"] = RUNNING_WITH_SPECULATION
        warn(
            "Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting "
            "--max-running-requests."
        )
    if algorithm == "NGRAM":
        _ngram(args, warn)
        return None
    if algorithm == "UNO":
        if args["uno_lora_path"] is None:
            raise ValueError("UNO requires --uno-lora-path.")
        return None
    path = args["speculative_draft_model_path"]
    if path is None and any(architecture in MTP_INSIDE for architecture in target.architectures):
        path = args["speculative_draft_model_path"] = args["model_path"]
    if path is None and algorithm in BLOCK_FAMILY:
        raise ValueError(f"{algorithm} requires setting --speculative-draft-model-path.")
    revision = args["speculative_draft_model_revision"]
    if path is not None and revision is None:
        revision = args["speculative_draft_model_revision"] = "main"
    head = models.load(path, revision, cache=settings.hub_cache, offline=settings.offline) if path else None
    if head is not None and head.verifier and "model_type" not in head.config:
        raise ValueError(
            f"Unrecognized model in {path}. Should have a `model_type` key in its config.json."
        )  # transformers, AutoConfig
    (_eagle if algorithm in EAGLE_FAMILY else _block)(args, target, head, warn)
    if head is None:
        raise AttributeError("'NoneType' object has no attribute 'hot_token_id'")
    if head.context < context:
        _too_long("Target model's", context, head.context, settings, warn)
    return head


def _ngram(args: Args, warn: Warn) -> None:
    args["speculative_eagle_topk"] = args["speculative_ngram_max_bfs_breadth"]
    if args["speculative_num_draft_tokens"] is None:
        args["speculative_num_draft_tokens"] = 12
        warn(
            "speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding. You can override "
            "this by explicitly setting --speculative-num-draft-tokens."
        )
    if args["speculative_num_steps"] is None:
        args["speculative_num_steps"] = args["speculative_num_draft_tokens"] // args["speculative_eagle_topk"]
    args["enable_mixed_chunk"] = False
    warn("The mixed chunked prefill are disabled because of using ngram speculative decoding.")
    if args["speculative_eagle_topk"] > 1 and args["page_size"] > 1 and args["attention_backend"] != "flashinfer":
        raise ValueError(
            f"speculative_eagle_topk({args['speculative_eagle_topk']}) > 1 with page_size({args['page_size']}) > 1 is "
            "unstable and produces incorrect results for paged attention backends. This combination is only supported "
            "for the 'flashinfer' backend."
        )


def _eagle(args: Args, target: Model, head: Model | None, warn: Warn) -> None:
    if args["speculative_algorithm"] == "STANDALONE" and (args["attn_dp_size"] > 1 or args["enable_dp_attention"]):
        raise ValueError("Currently standalone speculative decoding does not support dp attention.")
    if args.get("speculative_adaptive"):
        _adaptive(args, warn)
    if args["speculative_num_steps"] is None:
        if args["speculative_eagle_topk"] is not None or args["speculative_num_draft_tokens"] is not None:
            raise AssertionError
        architecture = target.architectures[0] if target.architectures else ""
        tree = AUTOMATIC_TREE.get(architecture, AUTOMATIC_TREE_OF_OTHERS)
        if args["speculative_algorithm"] == "STANDALONE":
            tree = AUTOMATIC_TREE_OF_OTHERS
        args["speculative_num_steps"], args["speculative_eagle_topk"], args["speculative_num_draft_tokens"] = tree
    steps, topk = args["speculative_num_steps"], args["speculative_eagle_topk"]
    if topk is None:
        raise TypeError("'>' not supported between instances of 'NoneType' and 'int'")
    if "trtllm_mha" in _backends(args) and topk > 1:
        raise ValueError("trtllm_mha backend only supports topk = 1 for speculative decoding.")
    _rejection_sampling(args, topk)
    if topk == 1 and args["speculative_num_draft_tokens"] != steps + 1:
        warn("speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1")
        args["speculative_num_draft_tokens"] = steps + 1
    if topk > 1 and args["page_size"] > 1 and args["attention_backend"] not in PAGED_TREES:
        raise ValueError(
            f"speculative_eagle_topk > 1 with page_size > 1 is only supported on {PAGED_TREES}; got "
            f"attention_backend={args['attention_backend']!r}. Use page_size == 1 or one of those backends."
        )
    _drafts(steps, topk, args["speculative_num_draft_tokens"])


def _adaptive(args: Args, warn: Warn) -> None:
    """What cannot adapt is served with a depth that does not move, and only a warning says so
    (`speculative_hook.py:1371`)."""
    if reason := _not_adaptive(args):
        warn(f"speculative_adaptive disabled: {reason}. Falling back to static speculative params.")
        args["speculative_adaptive"] = False
        return
    allowed = depth.depths(depth.table(args["speculative_adaptive_config"]))
    args["speculative_eagle_topk"] = 1
    if args["speculative_num_steps"] is None:
        args["speculative_num_steps"] = allowed[len(allowed) // 2]
    if args["speculative_num_steps"] not in allowed:
        raise ValueError(
            f"--speculative-num-steps={args['speculative_num_steps']} is not in the adaptive config candidate_steps "
            f"{allowed}. Pass one of those values."
        )
    args["speculative_num_draft_tokens"] = args["speculative_num_steps"] + 1


def _not_adaptive(args: Args) -> str:
    """`adaptive_spec_params.py:56`."""
    algorithm, topk = args["speculative_algorithm"], args["speculative_eagle_topk"]
    if algorithm not in ("EAGLE", "EAGLE3"):
        return f"speculative_algorithm={algorithm} (only EAGLE/EAGLE3 are supported)"
    if topk not in (None, 1):
        return f"speculative_eagle_topk={topk} (only topk=1 is supported)"
    if args["attn_dp_size"] > 1 or args["enable_dp_attention"]:
        return "attention DP is not supported (adaptive tier decisions are not synchronized across DP ranks)"
    if args["enable_two_batch_overlap"]:
        return (
            "enable_two_batch_overlap=True is not supported (adaptive state swap would discard the TboAttnBackend "
            "wrapper)"
        )
    return ""


def _rejection_sampling(args: Args, topk: int) -> None:
    if not args["speculative_use_rejection_sampling"]:
        return
    if args["speculative_algorithm"] not in ("EAGLE", "EAGLE3"):
        raise NotImplementedError(
            "--speculative-use-rejection-sampling is only supported for EAGLE / EAGLE3 / NEXTN, not "
            f"speculative_algorithm={args['speculative_algorithm']}."
        )
    if topk != 1:
        raise ValueError("--speculative-use-rejection-sampling requires --speculative-eagle-topk=1.")
    if (args["speculative_accept_threshold_single"], args["speculative_accept_threshold_acc"]) != (1.0, 1.0):
        raise ValueError(
            "--speculative-use-rejection-sampling is incompatible with --speculative-accept-threshold-single / "
            "--speculative-accept-threshold-acc; rejection sampling ignores the accept thresholds."
        )


def _drafts(steps: int, topk: int, tokens: int | None) -> None:
    """The real server looks at this only when it captures its graphs; the words are torch's."""
    if topk > 1 and tokens is None:
        raise TypeError("unsupported operand type(s) for -: 'NoneType' and 'int'")
    if topk > 1 and tokens is not None and tokens - 1 > topk + (steps - 1) * topk**2:
        raise RuntimeError("selected index k out of range")


def _block(args: Args, target: Model, head: Model | None, warn: Warn) -> None:
    """DFLASH and DSPARK: a block of tokens at once, so the tree is given by its width."""
    name = args["speculative_algorithm"]
    if args["speculative_eagle_topk"] not in (None, 1):
        warn(f"{name} only supports speculative_eagle_topk == 1; overriding it to 1.")
    asked = args["speculative_dflash_block_size"] if name == "DFLASH" else args["speculative_dspark_block_size"]
    block = asked or (head.config.get("block_size") if head else None) or 16
    width = block + 1 if name == "DSPARK" else block
    if args["speculative_num_draft_tokens"] not in (None, width) and (asked or name == "DSPARK"):
        raise ValueError(
            f"{name} draft tokens ({args['speculative_num_draft_tokens']}) do not match its block ({width})."
        )
    args["speculative_num_steps"], args["speculative_eagle_topk"] = 1, 1
    args["speculative_num_draft_tokens"] = args["speculative_num_draft_tokens"] or width
