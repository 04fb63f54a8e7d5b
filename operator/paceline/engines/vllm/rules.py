"""Rules about configurations that the API accepts, but vLLM refuses or a run cannot compare.

Paths are below `vllm/` of its wheel 0.33.0.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from paceline.core import Arm, Server
from paceline.engines import command, rules
from paceline.engines.arguments import ParsedFlag
from paceline.engines.refusal import Refusal
from paceline.engines.release import release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.vllm import custom, depth, keys, runner
from paceline.engines.vllm.arguments import FLAGS, LISTED_VERSION, flag_list
from paceline.engines.vllm.depth import ADAPTIVE_DEPTH

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
_NGRAM_TOKENS = 4
"""Used if the resource does not give the number; vLLM has no default."""
RUNNING_REQUESTS = "--max-num-seqs"
_FEWEST_RUNNING_REQUESTS = 48
_EAGLE_FAMILY = ("eagle", "eagle3", "mtp", "dflash", "dspark")
KEY = "VLLM_API_KEY"
"""The variable with vLLM's key; so no argument has it."""
QUIET = frozenset({"WARNING", "ERROR", "CRITICAL"})
ENFORCER, INSTEAD = "lm-format-enforcer", "xgrammar"
"""A backend of structured outputs that cannot roll back a draft, and one that can."""
CHOICE, PARSER = "--enable-auto-tool-choice", "--tool-call-parser"
STRUCTURED = "--structured-outputs-config"


def refusals(server: Server, arms: tuple[Arm, ...]) -> tuple[Refusal, ...]:
    return rules.refusals(RULES, Configuration(server=server, arms=arms, flags=flag_list(server.engine.version)))


def draft_tokens(arm: Arm) -> int:
    """num_speculative_tokens: the most tokens that a step proposes, without the token that verification adds; 0 for the
    baseline.

    DFLASH's block begins with the last accepted token (`v1/spec_decode/dflash.py:126`), DSPARK's does not count it
    (`v1/worker/gpu/spec_decode/dspark/speculator.py:11`).
    """
    if arm.draft is None:
        return 0
    if arm.tree:
        return arm.tree.num_steps
    if arm.depth_by_batch_size:
        return arm.deepest
    if arm.adaptive:
        return arm.adaptive.num_steps or ADAPTIVE_DEPTH
    if arm.block_size:
        return arm.block_size - 1 if arm.draft.algorithm == "DFLASH" else arm.block_size
    tokens = arm.ngram.num_draft_tokens if arm.ngram else None
    return tokens - 1 if tokens else _NGRAM_TOKENS


def running_requests(server: Server) -> int:
    return command.running_requests(server, RUNNING_REQUESTS, _FEWEST_RUNNING_REQUESTS, FLAGS)


FLOOR = "0.24.0"
"""The oldest supported release: the first with a schedule. Its log, metrics and keys are the ones that are read here
(v1/engine/core.py, v1/spec_decode/metrics.py and config/speculative.py of the wheels of 0.10 to 0.33, compared)."""


def _version(configuration: Configuration) -> Iterator[Refusal]:
    number = release(configuration.version)
    if number is None:
        message = f"{configuration.version} is not a version; write the image's version, such as {LISTED_VERSION}"
        yield Refusal(path="engine.version", message=message)
    elif number < (release(FLOOR) or ()):
        message = f"{configuration.engine} is older than {FLOOR}, the oldest known version; take a newer image"
        yield Refusal(path="engine.version", message=message)


def _quiet(configuration: Configuration) -> Iterator[Refusal]:
    for index, variable in enumerate(configuration.server.engine.env):
        if variable["name"] == "VLLM_LOGGING_LEVEL" and str(variable.get("value", "")).upper() in QUIET:
            message = f"{variable['value']} hides the start log, which has the arguments of the server; write INFO"
            yield Refusal(path=f"engine.env[{index}]", message=message)


def _block(configuration: Configuration) -> Iterator[Refusal]:
    for arm in configuration.arms:
        if arm.draft and arm.draft.algorithm in METHODS and arm.block_size and draft_tokens(arm) < 1:
            message = f"{arm.block_size} leaves no token to propose; write at least 2"
            yield Refusal(arm=arm.name, path="blockSize", message=message)


def _shared_kv(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--kv-sharing-fast-prefill"):
        for arm in configuration.arms if not parsed.written.startswith("--no-") else ():
            if arm.draft and METHODS.get(arm.draft.algorithm) in _EAGLE_FAMILY:
                yield parsed.refused(
                    f"{parsed.written} cannot be combined with {arm.draft.algorithm}, which {arm.name} has; remove it"
                )


def _lora_budget(configuration: Configuration) -> Iterator[Refusal]:
    budget = configuration.value("--max-num-batched-tokens") or ""
    lora = any(parsed.written == "--enable-lora" for parsed in configuration.shared)
    for arm in configuration.arms if lora and budget.isdecimal() else ():
        needed = running_requests(configuration.server) * (draft_tokens(arm) + 1)
        if arm.draft and arm.draft.algorithm in METHODS and int(budget) < needed:
            yield Refusal(
                path="engine.args",
                message=f"--max-num-batched-tokens {budget} is too little for {arm.name} with LoRA: write at "
                f"least {needed} (requests at a time, times tokens per step)",
            )


def _tool_choice(configuration: Configuration) -> Iterator[Refusal]:
    if not any(configuration.find(PARSER)):
        for parsed in configuration.find(CHOICE) if configuration.flags.exact else ():
            yield parsed.refused(f"{parsed.written} also needs {PARSER}: the parser of the model's calls")


def _enforcer(configuration: Configuration) -> Iterator[Refusal]:
    drafting = next((arm.name for arm in configuration.arms if arm.draft), None)
    for parsed in configuration.shared if drafting else ():
        if _structured_backend(parsed) == ENFORCER:
            message = (
                f"{parsed.written} names {ENFORCER}, which cannot be combined with drafts, but {drafting} has them"
            )
            yield parsed.refused(f"{message}; write {INSTEAD}, or leave it out")


def _structured_backend(parsed: ParsedFlag) -> str:
    if parsed.written.replace("_", "-") == f"{STRUCTURED}.backend":
        return parsed.value
    if parsed.name != STRUCTURED or "." in parsed.written:
        return ""
    try:
        settings = json.loads(parsed.value)
    except ValueError:
        return ""
    return str(settings.get("backend", "")) if isinstance(settings, dict) else ""


def _methods(configuration: Configuration) -> Mapping[str, str | None]:
    return {arm.name: (arm.draft.name or METHODS.get(arm.draft.algorithm)) if arm.draft else None
            for arm in configuration.arms}  # fmt: skip


def _keys(configuration: Configuration) -> Iterator[Refusal]:
    return keys.faults(configuration, _methods(configuration))


def _runner(configuration: Configuration) -> Iterator[Refusal]:
    yield from runner.of_arms(configuration, _methods(configuration))
    yield from runner.of_all_arms(configuration)


RULES: tuple[EngineRule[Configuration], ...] = (
    EngineRule(
        id="vllm-version",
        check=_version,
        reason="another start log, other metrics and keys: every round would end in Error",
        source="the wheels of 0.10.0 to 0.33.0",
    ),
    replace(rules.MANAGED, id="vllm-owned"),
    replace(rules.RETIRED, id="vllm-gone", source="engine/arg_utils.py"),
    replace(rules.UNKNOWN, id="vllm-unknown", source="engine/arg_utils.py"),
    replace(rules.ABBREVIATED, id="vllm-shortened"),
    replace(rules.STRAY, id="vllm-stray"),
    replace(rules.MISVALUED, id="vllm-value", source="engine/arg_utils.py:325"),
    replace(rules.TWICE, id="vllm-twice", source="utils/argparse_utils.py:475"),
    replace(rules.UNFILLED, id="vllm-variable"),
    replace(
        rules.FORBIDDEN,
        id="vllm-blind",
        reason="no metrics, or no pages, to measure by",
        source="v1/engine/async_llm.py:205",
    ),
    EngineRule(
        id="vllm-quiet",
        check=_quiet,
        reason="the arguments that a round compares are logged at INFO",
        source="v1/engine/core.py:140",
    ),
    replace(rules.DIFFERENT, id="vllm-different"),
    EngineRule(
        id="vllm-block",
        check=_block,
        reason="ValueError: num_speculative_tokens must be positive",
        source="config/speculative.py: num_speculative_tokens > 0",
    ),
    EngineRule(
        id="vllm-shared-kv",
        check=_shared_kv,
        reason="vLLM exits at start: fast prefill cannot be combined with EAGLE",
        source="config/vllm.py:2018",
    ),
    EngineRule(
        id="vllm-lora-budget",
        check=_lora_budget,
        reason="vLLM exits at start: the batch of a verify step does not fit",
        source="engine/arg_utils.py:2712",
    ),
    EngineRule(
        id="vllm-tools",
        check=_tool_choice,
        reason="vLLM exits at start: TypeError",
        source="entrypoints/common/cli_args.py:554",
    ),
    EngineRule(
        id="vllm-enforcer",
        check=_enforcer,
        reason="ValueError on each structured request: a draft may have to be taken back",
        source="v1/structured_output/backend_lm_format_enforcer.py:133",
    ),
    EngineRule(
        id="vllm-runner",
        check=_runner,
        reason="ValueError: Model Runner V2 does not yet support …; on the first, only the log says what an arm loses",
        source="config/vllm.py:3053, :3089 and :1080",
    ),
    EngineRule(
        id="vllm-adaptive",
        check=depth.adaptive,
        reason="vLLM exits at start",
        source="config/vllm.py:3153, and :1211 of routed experts",
    ),
    EngineRule(
        id="vllm-schedule",
        check=depth.schedule,
        reason="vLLM only warns and then uses a fixed depth, which is another experiment",
        source="config/vllm.py:1082 and :1110",
    ),
    EngineRule(
        id="vllm-keys",
        check=_keys,
        reason="would render a resource setting, a lossy verification or an unreadable key",
        source="config/speculative.py; ours",
    ),
    EngineRule(
        id="vllm-custom-known",
        check=custom.known,
        reason="vLLM exits at start; no rule would apply to a name of MTP, and its depth would not be rendered",
        source="config/speculative.py:74, :1246 and :1284",
    ),
    EngineRule(id="vllm-keys-stray", check=keys.stray, reason="argparse exits with 2", source="argparse"),
    EngineRule(
        id="vllm-key",
        check=rules.reserved_variables({KEY: "write apiKeySecretRef"}),
        reason="the client of a round would not have it",
        source="entrypoints/serve/middleware/register.py:32",
    ),
)
