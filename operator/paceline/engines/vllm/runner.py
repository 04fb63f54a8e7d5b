"""vLLM's two model runners, and what each lacks according to vLLM's own lists (`config/vllm.py`, 0.24 to 0.33; line
numbers from 0.33.0).

Paceline requests the second on every arm. Otherwise vLLM would use the first for an arm with a feature that the second
lacks, and the baseline would run on another engine. `VLLM_USE_V2_MODEL_RUNNER: "0"` in `spec.engine.env` applies to the
whole run: all arms then use the first.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.core import Arm, Server
from paceline.engines.arguments import ParsedFlag
from paceline.engines.refusal import Refusal
from paceline.engines.release import Release, release
from paceline.engines.rules import Configuration
from paceline.engines.vllm.arguments import LISTED_VERSION
from paceline.engines.vllm.keys import settings

RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
TO_THE_FIRST = f'write {RUNNER}: "0" in spec.engine.env: all arms, the baseline too, then run on the first runner'
OWN_BLOCKS = ("dflash", "dspark")
"""Methods with their own speculators for parallel drafts on the second runner."""
_NEVER = (sys.maxsize,)
SECOND_SINCE: Mapping[str, Release] = {
    "dspark": (0, 25),
    "extract_hidden_states": (0, 29),
    "draft_model": (0, 31),
    "ngram": (0, 32),
    "ngram_gpu": (0, 32),
    "suffix": _NEVER,
    "custom_class": _NEVER,
}
"""Method → the first release whose second runner supports it; for others 0.24."""
FIRST_LACKS = {
    "--prefill-context-parallel-size": "",  # :3093
    "--enable-batch-sharded-sampling": "",  # :3143
    "--enable-return-routed-experts": "",  # :1200
    "--return-sampling-mask": "",  # :1309
    "--enable-trace-replay": "",  # :1340
    "--async-scheduling": "--pipeline-parallel-size",  # :3106
}
"""Flag of all arms that the first runner refuses → the flag that must be set too for that; "" if none."""
OVERLAP = ("--enable-dbo", "--ubatch-size")
"""Two batches at once, which the second runner supports only without drafts and adapters (:3242)."""
_IGNORED: Mapping[str, tuple[str, ...]] = {
    "attention_backend": ("draft_model",),
    "moe_backend": ("draft_model", "dflash", "dspark"),
}
"""Key → the methods for which the second runner ignores it (v1/worker/gpu/spec_decode of 0.33.0:
standalone_ar/speculator.py:109, dflash/utils.py:26, dspark/utils.py:97); before READ_SINCE it ignored both for all
methods (eagle/utils.py:42 of 0.29.0; vllm#54788)."""
READ_SINCE = (0, 30)
SCHEDULES_SINCE, ADAPTS_SINCE = (0, 25), (0, 28)


def is_first(server: Server) -> bool:
    value = next((one.get("value") for one in server.engine.env if one["name"] == RUNNER), "1")
    return str(value).strip().lower() in ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A feature of an arm that a runner lacks: the path that requests it, and its name."""

    path: str
    what: str


def second_lacks(arm: Arm, method: str | None, at: Release) -> Iterator[Lack]:
    """`_get_v2_model_runner_unsupported_features`, :3053; without pipelines under torchrun, which pods never use."""
    asked, path = settings(arm), "custom.args" if arm.custom else "args"
    if method and SECOND_SINCE.get(method, ()) > at:
        yield Lack(path="draft.name" if arm.custom else "draft.algorithm", what=method)
    if arm.depth_by_batch_size and at < SCHEDULES_SINCE:
        yield Lack(path="depthByBatchSize", what="schedules")
    if asked.get("parallel_drafting") and method not in OWN_BLOCKS:
        yield Lack(path=path, what="parallel drafting (P-EAGLE, PARD)")
    if asked.get("use_heterogeneous_vocab"):
        yield Lack(path=path, what="drafts of another vocabulary")
    for key, methods in _IGNORED.items():
        if key in asked and method and (method in methods or at < READ_SINCE):
            yield Lack(path=path, what=f"{key} for {method}, which it ignores")


def first_lacks(arm: Arm, method: str | None, _: Release) -> Iterator[Lack]:
    """`_get_v1_model_runner_unsupported_features`, :3089, for features of an arm; and :1080, where a schedule disables
    its arm's full CUDA graphs (vllm#49986: 20 to 31 % below no speculation)."""
    asked = settings(arm)
    if method == "dspark":
        yield Lack(path="draft.algorithm", what="DSPARK")
    if arm.adaptive or asked.get("enable_adaptive_verification"):
        yield Lack(path="adaptive" if arm.adaptive else "custom.args", what="adaptive verification")
    if arm.depth_by_batch_size:
        yield Lack(path="depthByBatchSize", what="full CUDA graphs under a schedule")
    if asked.get("draft_lm_head_quantization"):
        yield Lack(path="custom.args" if arm.custom else "args", what="quantised output layers of drafts")
    if asked.get("rejection_sample_method") == "block":
        what = "block verification, which it makes standard"  # v1/sample/rejection_sampler.py:80
        yield Lack(path="custom.args" if arm.custom else "args", what=what)


def of_arms(configuration: Configuration, methods: Mapping[str, str | None]) -> Iterator[Refusal]:
    """`methods`: arm → vLLM's name of its method."""
    first, at = is_first(configuration.server), release(configuration.version) or _NEVER
    for arm in configuration.arms if at <= (release(LISTED_VERSION) or ()) else ():
        if arm.adaptive and at < ADAPTS_SINCE:
            message = f"{configuration.engine} does not adapt its depth; take {_written(ADAPTS_SINCE)}, or name chains"
            yield Refusal(arm=arm.name, path="adaptive", message=message)
            continue
        for lack in (first_lacks if first else second_lacks)(arm, methods[arm.name], at):
            way_out = f"remove {RUNNER} from spec.engine.env" if first else TO_THE_FIRST
            runner = "first" if first else "second"
            message = f"vLLM's {runner} model runner has no {lack.what}: {way_out}"
            yield Refusal(arm=arm.name, path=lack.path, message=message)


def _written(number: Release) -> str:
    return ".".join(map(str, number))


def of_all_arms(configuration: Configuration) -> Iterator[Refusal]:
    if (release(configuration.version) or _NEVER) > (release(LISTED_VERSION) or ()):
        return
    if is_first(configuration.server):
        for parsed in configuration.find(*FIRST_LACKS):
            if _is_on(parsed) and _beside(configuration, FIRST_LACKS[parsed.name]):
                yield parsed.refused(f"vLLM's first model runner has no {parsed.written}: remove {RUNNER}=0, or it")
        return
    drafting = next((f"the drafts of {arm.name}" for arm in configuration.arms if arm.draft), "")
    for parsed in configuration.find(*OVERLAP):
        lora = next((other.written for other in configuration.find("--enable-lora") if _is_on(other)), "")
        if _is_on(parsed) and (beside := lora or drafting):
            yield parsed.refused(
                f"{parsed.written} cannot be combined with {beside} on vLLM's second runner: {TO_THE_FIRST}"
            )


def _is_on(parsed: ParsedFlag) -> bool:
    """A switch that is not off, or a number above 1."""
    return not parsed.written.startswith("--no-") and (not parsed.values or parsed.value not in ("0", "1"))


def _beside(configuration: Configuration, name: str) -> bool:
    return not name or any(_is_on(parsed) for parsed in configuration.find(name))
