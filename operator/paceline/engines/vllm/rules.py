"""What vLLM cannot be asked for and the API lets pass, each with the reason and the way out.

Paths are below `vllm/` of its wheel 0.33.0. A rule is a function from a server and its arms to what it finds; the
table below gives it an id and a source.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from paceline.core import Arm, Server
from paceline.engines.adapter import Refusal
from paceline.engines.vllm import custom, depth, flags
from paceline.engines.vllm.depth import OWN_WIDTH
from paceline.engines.vllm.structured import enforcer

METHODS: Mapping[str, str] = {
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "MTP": "mtp",
    "NEXTN": "mtp",
    "STANDALONE": "draft_model",
    "NGRAM": "ngram",
    "DFLASH": "dflash",
    "DSPARK": "dspark",
}
"""Algorithm → `method` of the speculative configuration."""
NGRAM_TOKENS = 4
"""Where the resource does not say how many; vLLM itself has no default."""
FEWEST_RUNNING_REQUESTS = 48

OWNED = frozenset({
    "--model", "--revision", "--served-model-name", "--host", "--port", "--uds", "--config", "--seed",
    "--tensor-parallel-size", "--trust-remote-code", "--api-key", "--hf-token", "--download-dir",
    "--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless", "--grpc",
})  # fmt: skip
OWNED_PREFIX = "--spec"
"""The speculative configuration and its short cuts, whole or in part: `rejection_sample_method` among its keys can fake
acceptance or loosen what is accepted."""
BLINDING = {
    "--disable-log-stats": "there would be no metrics to measure speculation by",
    "--root-path": "pages would not be where they are read",
}
EAGLE_FAMILY = ("eagle", "eagle3", "mtp", "dflash", "dspark")
KEY = "VLLM_API_KEY"
"""The variable that vLLM reads its key from; so no argument has it."""
QUIET = frozenset({"WARNING", "ERROR", "CRITICAL"})

COMPARED = (
    "dtype", "max_seq_len", "quantization", "enforce_eager", "kv_cache_dtype", "enable_prefix_caching",
    "enable_chunked_prefill", "pipeline_parallel_size", "data_parallel_size", "disable_custom_all_reduce",
    "load_format", "block_size", "gpu_memory_utilization",
)  # fmt: skip
"""What every server must say. All else that the start line has is compared, too, but for MOVED."""
MOVED = (
    "method", "num_spec_tokens", "draft_positions", "speculative_depth",
    "compilation_config.cudagraph_mode", "compilation_config.cudagraph_capture_sizes",
    "compilation_config.decoder_replay_cudagraph_capture_sizes", "compilation_config.max_cudagraph_capture_size",
    "compilation_config.compile_sizes", "compilation_config.compile_ranges_endpoints",
    "compilation_config.splitting_ops", "compilation_config.local_cache_dir", "compilation_config.cache_dir",
)  # fmt: skip
"""Not compared: speculation's own, and sizes and mode of CUDA graphs. These follow from the verify width
(`config/vllm.py`, _set_cudagraph_sizes), so losing some of them is part of what speculation costs."""
OWN_FLAGS: frozenset[str] = frozenset()
"""Options that a candidate's `args` may hold. None: all of speculation is in --speculative-config, which is made of the
resource, and everything else is said in spec.engine.args, for all arms (docs/decisions/0020)."""

Found = tuple[str | None, str, str]
"""The arm, or None for what all share; the path below it; what to say."""


def proposed(arm: Arm) -> int:
    """num_speculative_tokens: what is proposed in a step, without the token that verifying adds, at most; 0 for the
    baseline.

    DFLASH's block begins with the last accepted token (`v1/spec_decode/dflash.py:126`), DSPARK's does not count it
    (`v1/worker/gpu/spec_decode/dspark/speculator.py:11`).
    """
    if arm.draft is None:
        return 0
    if arm.tree:
        return arm.tree.num_steps
    if arm.schedule:
        return arm.deepest
    if arm.adaptive:
        return arm.adaptive.num_steps or OWN_WIDTH
    if arm.block_size:
        return arm.block_size - 1 if arm.draft.algorithm == "DFLASH" else arm.block_size
    width = arm.ngram.num_draft_tokens if arm.ngram else None
    return width - 1 if width else NGRAM_TOKENS


def running_requests(server: Server) -> int:
    """The user's --max-num-seqs, or room for twice the largest concurrency that is measured."""
    asked = flags.value(server.engine.args, "--max-num-seqs")
    return int(asked) if asked and asked.isdecimal() else max(FEWEST_RUNNING_REQUESTS, 2 * server.largest_concurrency)


def owned(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm, at, args in _lists(server, arms):
        for one in flags.given(args):
            if one.name in OWNED or one.name.startswith(OWNED_PREFIX):
                yield arm, f"{at}[{one.index}]", f"{one.written} is set by Paceline from the resource; remove it"


def unknown(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    if server.engine.version != flags.VERSION:
        return
    for arm, at, args in _lists(server, arms):
        for one in flags.given(args):
            if one.name not in flags.options() and not one.name.startswith(OWNED_PREFIX):
                near = flags.nearest(one.name)
                meant = f"; did you mean {near}?" if near else ""
                yield arm, f"{at}[{one.index}]", f"{one.written} is no option of vLLM {flags.VERSION}{meant}"


def shortened(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """Of other releases than the one whose list we have; of that one `unknown` tells it."""
    if server.engine.version == flags.VERSION:
        return
    for arm, at, args in _lists(server, arms):
        for one in flags.given(args):
            meant = sorted(name for name in flags.options() if name.startswith(one.name)) if len(one.name) > 2 else []
            if one.name not in flags.options() and meant and not one.name.startswith(OWNED_PREFIX):
                yield (
                    arm, f"{at}[{one.index}]",
                    f"{one.written} is short for {' or '.join(meant[:3])}; write the option in full",
                )  # fmt: skip


def stray(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm, at, args in _lists(server, arms):
        for index, word in flags.stray(args):
            yield arm, f"{at}[{index}]", f"{word} belongs to no option; remove it, or write --option={word}"


def twice(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """Keys of a JSON option may be many; the same option, by whatever name, may not."""
    shared = {one.name for one in flags.given(server.engine.args)}
    for arm, at, args in _lists(server, arms):
        seen = set(shared) if arm else set()
        for one in flags.given(args):
            if one.name in seen and "." not in one.written:
                yield arm, f"{at}[{one.index}]", f"{one.written} is given twice; keep one"
            seen.add(one.name)


def variables(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """The kubelet would fill it in where it is served, and nobody where it is measured."""
    for arm, at, args in _lists(server, arms):
        for index, argument in enumerate(args):
            if "$(" in argument:
                yield arm, f"{at}[{index}]", f"{argument}: $(VAR) is not filled in; write the value"


def blinding(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm, at, args in _lists(server, arms):
        for one in flags.given(args):
            if one.name in BLINDING:
                yield arm, f"{at}[{one.index}]", f"{one.written}: {BLINDING[one.name]}; remove it"


def quiet(server: Server, _: tuple[Arm, ...]) -> Iterator[Found]:
    for index, variable in enumerate(server.engine.env):
        if variable["name"] == "VLLM_LOGGING_LEVEL" and str(variable.get("value", "")).upper() in QUIET:
            message = f"{variable['value']} hides the start log, which says what the server runs with; write INFO"
            yield None, f"engine.env[{index}]", message


def different(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    """An allow list. What is no option, and what is set from the resource, is told by another rule."""
    for arm in arms:
        for one in flags.given(arm.args):
            unknown = server.engine.version == flags.VERSION and one.name not in flags.options()
            owned = one.name in OWNED or one.name.startswith(OWNED_PREFIX)
            if one.name not in OWN_FLAGS and not owned and not unknown:
                message = f"{one.written} is no part of speculation, and arms may differ in nothing else"
                yield arm.name, f"args[{one.index}]", f"{message}: set it in spec.engine.args, for all arms"


def seats(server: Server, _: tuple[Arm, ...]) -> Iterator[Found]:
    for one in flags.given(server.engine.args):
        if one.name == "--max-num-seqs" and not re.fullmatch(r"[+-]?\d+", one.value or ""):  # below 1: `room`
            said = f"{one.value} is no number of requests" if one.value else f"{one.written} needs a value"
            yield None, f"engine.args[{one.index}]", f"{said}; write one, such as 64"


def block(_: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for arm in arms:
        if arm.draft and arm.draft.algorithm in METHODS and arm.block_size and proposed(arm) < 1:
            yield arm.name, "blockSize", f"{arm.block_size} leaves no token to propose; write at least 2"


def shared_kv(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    for one in flags.given(server.engine.args):
        if one.name == "--kv-sharing-fast-prefill" and not one.written.startswith("--no-"):
            for arm in arms:
                if arm.draft and METHODS.get(arm.draft.algorithm) in EAGLE_FAMILY:
                    message = f"{one.written} does not go with {arm.draft.algorithm}, which {arm.name} has; remove it"
                    yield None, f"engine.args[{one.index}]", message


def lora_budget(server: Server, arms: tuple[Arm, ...]) -> Iterator[Found]:
    args = server.engine.args
    budget = flags.value(args, "--max-num-batched-tokens")
    lora = any(one.written == "--enable-lora" for one in flags.given(args))
    if not lora or not budget or not budget.isdecimal():
        return
    for arm in arms:
        needed = running_requests(server) * (proposed(arm) + 1)
        if arm.draft and arm.draft.algorithm in METHODS and int(budget) < needed:
            message = (
                f"--max-num-batched-tokens {budget} is too little for {arm.name} with LoRA: write at least {needed}"
            )
            yield None, "engine.args", f"{message} (requests at a time, times tokens a step)"


def own_key(server: Server, _: tuple[Arm, ...]) -> Iterator[Found]:
    """The client of a round would not know it."""
    for index, variable in enumerate(server.engine.env):
        if variable["name"] == KEY:
            yield None, f"engine.env[{index}].name", f"{KEY} is set by Paceline; write apiKeySecretRef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`source` is where vLLM says so, or what would go wrong here."""

    id: str
    source: str
    find: Callable[[Server, tuple[Arm, ...]], Iterator[Found]]


RULES = (
    Rule(id="vllm-owned", source="one place for each value: the resource", find=owned),
    Rule(id="vllm-unknown", source="engine/arg_utils.py; argparse exits with 2", find=unknown),
    Rule(
        id="vllm-shortened",
        source="argparse takes any beginning of an option; rules and limits would miss it",
        find=shortened,
    ),
    Rule(id="vllm-stray", source="argparse exits with 2", find=stray),
    Rule(id="vllm-twice", source="utils/argparse_utils.py:475, the last one wins", find=twice),
    Rule(id="vllm-variable", source="what is measured is what is served", find=variables),
    Rule(id="vllm-blind", source="v1/engine/async_llm.py:205", find=blinding),
    Rule(id="vllm-quiet", source="v1/engine/core.py:140 is logged at INFO", find=quiet),
    Rule(id="vllm-different", source="arms differ in speculation alone", find=different),
    Rule(id="vllm-seats", source="config/scheduler.py: max_num_seqs", find=seats),
    Rule(id="vllm-block", source="config/speculative.py: num_speculative_tokens > 0", find=block),
    Rule(id="vllm-shared-kv", source="config/vllm.py:2018", find=shared_kv),
    Rule(id="vllm-lora-budget", source="engine/arg_utils.py:2712", find=lora_budget),
    Rule(
        id="vllm-enforcer",
        source="ValueError on each structured request: v1/structured_output/backend_lm_format_enforcer.py:133",
        find=enforcer,
    ),
    Rule(id="vllm-adaptive", source="config/vllm.py:3153, and :1211 of routed experts", find=depth.adaptive),
    Rule(id="vllm-schedule", source="config/vllm.py:1082 and :1110", find=depth.schedule),
    Rule(id="vllm-custom-keys", source="config/speculative.py; ours", find=custom.keys),
    Rule(id="vllm-custom-known", source="config/speculative.py:1246", find=custom.known),
    Rule(id="vllm-custom-stray", source="argparse exits with 2", find=custom.stray),
    Rule(id="vllm-key", source="entrypoints/serve/middleware/register.py:32", find=own_key),
)


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    """Everything that stands in the way, in the order of the rules."""
    return tuple(
        Refusal(rule=rule.id, arm=arm, path=path, message=message)
        for rule in RULES
        for arm, path, message in rule.find(server, arms)
    )


def _lists(server: Server, arms: tuple[Arm, ...]) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """Every argument list: whose, where, and what it holds."""
    yield None, "engine.args", server.engine.args
    for arm in arms:
        yield arm.name, "args", arm.args
