"""Rules about servers that sglang-jax cannot start, or that cannot be compared: each with its source.

Sources are below `sgl_jax/srt/` of sglang-jax at cddbf6f (`SA` is `server_args.py`); 0.1.0rc0 agrees. The API itself
refuses (`api/compatibility.py`): algorithms that it lacks (for STANDALONE no draft worker is built,
managers/scheduler.py:383), shapes other than chains of at least two steps (with topk above 1 the server dies at its
first draft, speculative/eagle_draft_worker.py:417, with one step while compiling, speculative/base_worker.py:89), and
accelerators other than TPUs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from paceline.core import Arm, Server
from paceline.engines import rules
from paceline.engines.arguments import FlagList, read_flags
from paceline.engines.keys import API_KEY
from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.ways_out import with_ways_out

LISTED = "0.1.0rc0"
"""The release whose flags are listed, by `tests/contract/make_sglang_jax_flags.py`. Older releases are judged by it,
too."""

MANAGED_FLAGS: Mapping[str, str] = {
    **with_ways_out(
        "--model-path", "--model", "--revision", "--served-model-name", "--host", "--port", "--tensor-parallel-size",
        "--tp-size", "--trust-remote-code", "--random-seed", "--decode-log-interval", "--api-key", "--download-dir",
        "--nnodes", "--node-rank", "--dist-init-addr",
    ),
    "--speculative-*": "write a candidate's draft and shape",
}  # fmt: skip
"""Flag → way out."""
FORBIDDEN = {"--log-level": "the log lines with the acceptance length have level info"}

COMPARED = (
    "attention_backend", "page_size", "max_running_requests", "mem_fraction_static", "context_length", "dtype",
    "kv_cache_dtype", "quantization", "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed",
    "tp_size", "dp_size", "moe_backend", "disable_radix_cache", "disable_overlap_schedule", "enable_mixed_chunk",
    "disable_precompile", "decode_log_interval",
)  # fmt: skip
"""Resolved arguments that every server must report; all others except MOVED are compared, too. Unlike on SGLang,
overlap scheduling is compared: a flag on every arm disables it, not speculation."""
MOVED = ("speculative_*", "max_total_num_tokens", "max_req_input_len")
"""Resolved arguments that are not compared: speculation's own, and the KV cache left after the draft."""
CANDIDATE_FLAGS: frozenset[str] = frozenset()
"""Flags that a candidate's `args` may hold: none. Speculative flags are rendered from the resource, everything else is
set in spec.engine.args, for all arms (docs/decisions/0020)."""

CHAINED = ("EAGLE", "EAGLE3", "NEXTN")
"""Algorithms whose prefix cache keeps pairs of tokens (speculative/spec_info.py:69, mem_cache/radix_cache.py:194)."""
PAGE_SIZE, NO_PREFIX_CACHE = "--page-size", "--disable-radix-cache"

EAGLE3_OVERLAPS = (0, 1, 0)
"""Since the commit before cddbf6f (#1534), so not in any 0.0.x."""
OVERLAP, GRAMMAR = "--disable-overlap-schedule", "--grammar-backend"
LORA = ("--enable-lora", "--enable-static-lora", "--lora-paths")
HOOKED = frozenset({"LlamaForCausalLM", "Qwen3ForCausalLM"})
"""Targets with `set_eagle3_layers_to_capture` (models/llama.py, models/qwen3.py). Others, such as Qwen3-MoE, load for
minutes and then end with an AttributeError (model_executor/model_runner.py:592)."""


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    return rules.refusals(RULES, Configuration(server=server, arms=arms, flags=flag_list(server.engine.version)))


@cache
def flag_list(version: str) -> FlagList:
    return FlagList(
        source=f"sglang-jax {LISTED}",
        flags=read_flags(__package__, f"flags-{LISTED}.json"),
        complete=is_known(version),
        exact=is_known(version),
        managed=MANAGED_FLAGS,
        forbidden=FORBIDDEN,
        own=CANDIDATE_FLAGS,
    )


def eagle3_targets(version: str) -> frozenset[str] | None:
    return HOOKED if is_known(version) else None


def is_known(version: str) -> bool:
    """Whether all of its flags are listed; a name that is not a version may have any flags."""
    number, listed = release(version), release(LISTED)
    return number is not None and listed is not None and number <= listed


def _kv_cache(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--kv-cache-dtype"):
        if parsed.value.startswith("fp8"):
            message = f"{parsed.written} {parsed.value} stops the server once the model is loaded; write bf16 or auto"
            yield parsed.refused(message)


def _devices(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--device-indexes"):
        yield parsed.refused(
            "--device-indexes must be left out: a server takes every device of its pod; "
            "set accelerator.count to as many as it needs"
        )


def _every_device(configuration: Configuration) -> Iterator[Refusal]:
    accelerator = configuration.server.accelerator
    size, devices = accelerator.tensor_parallel_size, accelerator.count * accelerator.nodes
    if size != devices:
        yield Refusal(
            path="accelerator.tensorParallelSize",
            message=f"tensorParallelSize must be count = {devices}: sglang-jax counts all devices, data parallelism "
            f"included; got {size}",
        )


def _two_devices(configuration: Configuration) -> Iterator[Refusal]:
    if configuration.server.accelerator.product == "tpu7x":
        message = "tpu7x has two devices per chip, which Paceline does not count yet; use v6e or v5"
        yield Refusal(path="accelerator.product", message=message)


def _overlap(configuration: Configuration) -> Iterator[Refusal]:
    if any(configuration.find(OVERLAP)):
        return
    backend = configuration.value("--attention-backend") or "fa"
    with_backend = f" and --attention-backend {backend}" if backend != "fa" else ""
    for arm in configuration.arms:
        if arm.draft and not _overlaps(configuration.version, backend, arm.draft.algorithm):
            yield Refusal(
                path="engine.args",
                message=f"{OVERLAP} is missing: candidate {arm.name} ({arm.draft.algorithm}) cannot run with "
                f"the overlap scheduler{with_backend}, and all arms must run alike",
            )


def _overlaps(version: str, backend: str, algorithm: str) -> bool:
    number = release(version)
    eagle3 = backend == "fa" and (number is None or number >= EAGLE3_OVERLAPS)
    return {"NEXTN": True, "DFLASH": True, "EAGLE3": eagle3}.get(algorithm, False)


def _grammar(configuration: Configuration) -> Iterator[Refusal]:
    if configuration.value(GRAMMAR) != "none" and (arm := _first_block(configuration)):
        message = f"{GRAMMAR}=none is missing: candidate {arm} (DFLASH) has no constrained decoding"
        yield Refusal(path="engine.args", message=message)


def _lora(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find(*LORA):
        if arm := _first_block(configuration):
            yield parsed.refused(f"{parsed.written} cannot be combined with DFLASH; remove it, or candidate {arm}")


def _recurrent(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--enable-recurrent-extra-buffer"):
        if any(arm.draft for arm in configuration.arms):
            yield parsed.refused(f"{parsed.written} cannot be combined with speculation; remove it")


def _pages(configuration: Configuration) -> Iterator[Refusal]:
    """With pages of one token and a prefix cache, a server of these algorithms exits when first idle. Captured at 1 and
    at 64, and at 1 without the prefix cache, where the server frees everything."""
    if configuration.value(PAGE_SIZE) not in (None, "1") or any(configuration.find(NO_PREFIX_CACHE)):
        return
    parsed = next(configuration.find(PAGE_SIZE), None)
    for arm in configuration.arms:
        if arm.draft and arm.draft.algorithm in CHAINED:
            message = (
                f"write {PAGE_SIZE}=64: with pages of one token{'' if parsed else ', the default'}, candidate "
                f"{arm.name} ({arm.draft.algorithm}) exits when first idle (memory leak detected), and all arms must "
                "run alike"
            )
            yield parsed.refused(message) if parsed else Refusal(path="engine.args", message=message)
            return


def _first_block(configuration: Configuration) -> str | None:
    return next((arm.name for arm in configuration.arms if arm.draft and arm.draft.algorithm == "DFLASH"), None)


RULES: tuple[EngineRule[Configuration], ...] = (
    replace(rules.MANAGED, id="owned-flag", source="ours"),
    replace(rules.STRAY, id="stray-word"),
    replace(rules.UNKNOWN, id="known-flag", source="SA:611-1800"),
    replace(
        rules.MISVALUED,
        id="known-value",
        reason="argparse exits with 2, for attention backends of GPUs too",
        source="SA:611-1800",
    ),
    replace(rules.ABBREVIATED, id="whole-flag"),
    replace(rules.TWICE, id="one-value"),
    replace(rules.UNFILLED, id="no-variables"),
    replace(rules.DIFFERENT, id="equal-arms"),
    EngineRule(
        id="kv-cache-dtype",
        check=_kv_cache,
        reason="fp8 parses and is refused after loading",
        source="model_runner_kv_cache_mixin.py:449",
    ),
    EngineRule(
        id="device-indexes",
        check=_devices,
        reason="a base above 0 switches the compile cache off",
        source="managers/scheduler.py:580",
    ),
    EngineRule(
        id="every-device",
        check=_every_device,
        reason="the mesh is made of all visible devices",
        source="utils/mesh_utils.py:15",
    ),
    EngineRule(
        id="two-devices-a-chip",
        check=_two_devices,
        reason="a tpu7x-standard-4t node has 4 chips and 8 devices",
        source="ours",
    ),
    EngineRule(
        id="overlap",
        check=_overlap,
        reason="ValueError: NEXTN, DFLASH, and EAGLE3 with the backend fa overlap, nothing else",
        source="SA:1865",
    ),
    EngineRule(
        id="dflash-grammar",
        check=_grammar,
        reason="ValueError: DFLASH does not support constrained decoding",
        source="SA:1931",
    ),
    EngineRule(id="dflash-lora", check=_lora, reason="ValueError: DFLASH does not support LoRA", source="SA:1929"),
    EngineRule(
        id="recurrent-buffer",
        check=_recurrent,
        reason="ValueError: --enable-recurrent-extra-buffer only without speculation",
        source="SA:427",
    ),
    EngineRule(
        id="page-size",
        check=_pages,
        reason="at page size 1 a finished request keeps its last token, and an idle scheduler exits over that",
        source="mem_cache/radix_cache.py:311, managers/scheduler.py:1699",
    ),
    replace(
        rules.FORBIDDEN,
        id="log-lines",
        reason="only the log has the acceptance length",
        source="managers/scheduler_metrics_mixin.py:125",
    ),
    EngineRule(
        id="key-variable",
        check=rules.reserved_variables({API_KEY: "write apiKeySecretRef"}),
        reason="the command would use it instead of the key",
        source="ours",
    ),
)
