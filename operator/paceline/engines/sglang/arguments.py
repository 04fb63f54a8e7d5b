"""SGLang's arguments: which ones Paceline renders, a candidate may set, and a round compares; rules about them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from paceline.engines import rules
from paceline.engines.arguments import FlagList
from paceline.engines.keys import ADMIN_KEY, API_KEY
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang import flags_by_release as by_release
from paceline.engines.sglang.flags_by_release import elsewhere, first_with, flags
from paceline.engines.sglang.versions import is_newer
from paceline.engines.ways_out import with_ways_out

SPECULATIVE = "--speculative-"
"""Prefix of the flags that render a candidate's draft and shape."""
MANAGED_FLAGS: Mapping[str, str] = {
    **with_ways_out(
        "--model-path", "--model", "--revision", "--served-model-name", "--trust-remote-code", "--api-key",
        "--admin-api-key", "--tp-size", "--tensor-parallel-size", "--nnodes", "--node-rank", "--dist-init-addr",
        "--nccl-init-addr", "--config", "--host", "--port", "--enable-metrics", "--random-seed",
        "--decode-log-interval", "--download-dir",
    ),
    f"{SPECULATIVE}*": "write a candidate's draft and shape",
}  # fmt: skip
"""Flag → way out."""

TUNING = frozenset({
    "--speculative-attention-mode",
    "--speculative-draft-attention-backend",
    "--speculative-draft-kv-cache-dtype",
    "--speculative-draft-model-quantization",
    "--speculative-draft-window-size",
    "--speculative-draft-sink-size",
    "--speculative-dsa-topk-backend",
    "--speculative-moe-runner-backend",
    "--speculative-moe-a2a-backend",
    "--speculative-token-map",
    "--speculative-use-rejection-sampling",
    "--speculative-use-block-verification",
    "--speculative-adaptive-config",
    "--speculative-domino-candidate-pool-size",
    "--speculative-dspark-sps-table-path",
    "--speculative-dspark-confidence-sts-path",
    "--speculative-dspark-align-verify-tokens-to-graph-tier",
    "--speculative-ngram-branch-length",
    "--speculative-ngram-capacity",
    "--speculative-ngram-match-type",
    "--speculative-ngram-max-trie-depth",
    "--speculative-ngram-min-bfs-breadth",
})  # fmt: skip
"""Flags with the prefix SPECULATIVE that a candidate may set: the resource has no fields for them."""

CANDIDATE_FLAGS = frozenset({
    "--enable-linear-replayssm-spec",
    "--enable-multi-layer-eagle",
    "--linear-attn-verify-backend",
})  # fmt: skip
"""Flags of speculation with another prefix. A candidate's `args` may hold these and TUNING; everything else is set in
spec.engine.args, for all arms (docs/decisions/0020)."""

LOSSY = dict.fromkeys(
    ("--speculative-accept-threshold-single", "--speculative-accept-threshold-acc"),
    "it accepts tokens that the target would not have written",
)

COMPARED = (
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "page_size",
    "max_running_requests", "mem_fraction_static", "context_length", "dtype", "kv_cache_dtype", "quantization",
    "chunked_prefill_size", "max_prefill_tokens", "schedule_policy", "random_seed", "tp_size", "sampling_backend",
    "disable_radix_cache", "decode_log_interval", "moe_runner_backend", "moe_a2a_backend",
)  # fmt: skip
"""Resolved arguments that every server must report and that status shows. All others except `MOVED` are compared, too.
"""

MOVED = (
    "speculative_*", "_speculative_*",
    "enable_multi_layer_eagle", "enable_linear_replayssm_spec", "linear_attn_verify_backend",
    "disable_overlap_schedule", "enable_mixed_chunk",
    "cuda_graph_bs", "cuda_graph_config.decode.bs", "disable_piecewise_cuda_graph", "disable_hybrid_swa_memory",
    "max_total_num_tokens", "max_req_input_len",
    "avg_spec_accept_length", "last_gen_throughput", "memory_usage",
)  # fmt: skip
"""Resolved arguments that may differ between arms that differ only in speculation, and so are not compared:
speculation's own; features that speculation disables, which is part of its cost; batch sizes of its CUDA graphs; the KV
cache left after the draft; and the counters that 0.4.5 shows next to its arguments. Checked against every release of
`data/moves.json` and captures: tests/contract/test_arguments.py."""

_RETIRED: Mapping[str, str] = {
    "--enable-ep-moe": "--ep-size",
    "--enable-deepep-moe": "--moe-a2a-backend=deepep",
    "--enable-flashmla": "--attention-backend=flashmla",
    "--enable-flashinfer-mla": "--attention-backend=flashinfer",
}
"""Flags dropped by releases up to 0.5.4 → a replacement; for later ones, releases name it themselves
(`flags.successors`)."""


@cache
def flag_list(version: str) -> FlagList:
    """Allows unknown speculative flags for a newer release, and deprecated flags that still work."""
    known, is_listed = flags(version), by_release.is_listed(version)
    successors = {**by_release.successors(), **_RETIRED}
    basis = "" if is_listed else f" (judged by {by_release.judged_by(version)})"
    return FlagList(
        source=f"SGLang {version}{basis}",
        flags=known,
        complete=not is_newer(version),
        exact=is_listed,
        managed=MANAGED_FLAGS,
        forbidden=LOSSY,
        own=TUNING | CANDIDATE_FLAGS,
        newer_own=SPECULATIVE,
        renamed={name: new for name, new in successors.items() if known.keys() >= _flags_of(new)},
        elsewhere=lambda name: elsewhere(name, version),
    )


def _flags_of(instead: str) -> set[str]:
    """Some replacements are templates: --cuda-graph-backend-{decode,prefill}=disabled, --attn-dp-size <dp-size>."""
    name = re.sub(r"[= ].*", "", instead)
    options = re.search(r"\{(.+)\}", name)
    return {name.replace(options[0], option) for option in options[1].split(",")} if options else {name}


def _misplaced(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find(*TUNING):
        yield parsed.refused(f"{parsed.written} belongs to candidates; move it to the candidates' args")


def _admin_key(configuration: Configuration) -> Iterator[Refusal]:
    if configuration.server.engine.admin_key and "--admin-api-key" not in configuration.flags.flags:
        message = f"{configuration.engine} has no admin key; take {first_with('--admin-api-key')}, or remove it"
        yield Refusal(path="engine.adminKeySecretRef", message=message)


def _tokenizers(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--tokenizer-worker-num") if configuration.server.engine.api_key else ():
        if parsed.value not in ("", "1"):
            message = f"{parsed.written}={parsed.value} cannot be combined with apiKeySecretRef; remove one of them"
            yield parsed.refused(message)


def _grpc(configuration: Configuration) -> Iterator[Refusal]:
    engine = configuration.server.engine
    for parsed in configuration.find("--grpc-port") if engine.api_key or engine.admin_key else ():
        yield parsed.refused(f"{parsed.written} opens a port that needs no key; remove it, or the keys")


RULES = (
    replace(rules.STRAY, id="args-stray"),
    replace(rules.UNFILLED, id="args-variable"),
    replace(rules.MANAGED, id="args-owned"),
    EngineRule(
        id="args-misplaced",
        check=_misplaced,
        reason="the baseline would carry it, and its revision would change with it",
        source="ours",
    ),
    replace(
        rules.FORBIDDEN,
        id="args-lossy",
        reason="a faster arm would not write the baseline's text",
        source="fields/spec.py:109",
    ),
    replace(rules.ABBREVIATED, id="args-abbreviated", source="argparse, allow_abbrev; --tp and --pp tried"),
    replace(rules.RETIRED, id="args-gone", source="the flag lists; --cuda-graph-max-bs tried"),
    replace(rules.UNKNOWN, id="args-unknown"),
    replace(rules.MISVALUED, id="args-value"),
    replace(rules.TWICE, id="args-twice"),
    replace(rules.DIFFERENT, id="args-different"),
    EngineRule(
        id="key-variables",
        check=rules.reserved_variables({API_KEY: "write apiKeySecretRef", ADMIN_KEY: "write adminKeySecretRef"}),
        reason="the command would use it instead of the key",
        source="ours",
    ),
    EngineRule(
        id="key-admin", check=_admin_key, reason="the server exits 2: unrecognized arguments", source="the flag lists"
    ),
    EngineRule(
        id="key-tokenizers",
        check=_tokenizers,
        reason="AssertionError: several tokenizer workers cannot check keys",
        source="entrypoints/http_server.py:259",
    ),
    EngineRule(
        id="key-grpc",
        check=_grpc,
        reason="the server exits: --grpc-port is incompatible with keys",
        source="fields/serving.py",
    ),
)
