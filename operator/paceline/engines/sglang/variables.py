"""Environment variables of SGLang's speculation, and the releases that read each. Others ignore it silently.

dev/sglang/extract_variables.py reads them in the wheels; tests compare the releases with its output. A variable that is
only declared, or only warned about, does not count as read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from paceline.core import Server
from paceline.engines.refusal import Refusal
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import NEWER, OLDER, YES, candidates, variable
from paceline.engines.sglang.flags_by_release import is_in
from paceline.engines.sglang.versions import is_newer


@dataclass(frozen=True, slots=True)
class ReadBy:
    """The releases that read it (first to last, or still) and where: in the first one, below `srt/`."""

    since: str
    until: str
    source: str
    instead: str = "remove it"
    """The way out, in a release after them if they ended."""

    def by(self, version: str) -> bool:
        return is_in(version, [[self.since, self.until] if self.until else [self.since]])


OVERLAPPING = "SGLANG_ENABLE_SPEC_V2"
GREEDY = "SGLANG_NGRAM_FORCE_GREEDY_VERIFY"
LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
SPARSE = "SGLANG_DSPARK_"
VARIABLES: Mapping[str, ReadBy] = {
    LONGER: ReadBy("0.4.5", "", "configs/model_config.py:88"),
    OVERLAPPING: ReadBy(
        "0.5.4.post1",
        "0.5.13.post1",
        "server_args.py:1436",  # arg_groups/speculative_hook.py:69 of 0.5.14 warns of it
        "later releases overlap by default, and --disable-overlap-schedule in spec.engine.args turns it off",
    ),
    GREEDY: ReadBy("0.5.5.post3", "0.5.13.post1", "speculative/ngram_info.py:417 of 0.5.6"),
    "SGLANG_SPEC_ENABLE_STRICT_FILTER_CHECK": ReadBy("0.5.7", "0.5.16", "speculative/eagle_info.py:766"),
    "SGLANG_SPEC_NAN_DETECTION": ReadBy("0.5.10rc0", "0.5.12.post1", "server_args.py:936 of 0.5.10"),
    "SGLANG_SPEC_OOB_DETECTION": ReadBy("0.5.10rc0", "0.5.12.post1", "server_args.py:937 of 0.5.10"),
    "SGLANG_DSA_ENABLE_MTP_PRECOMPUTE_METADATA": ReadBy("0.5.13", "0.5.14", "layers/attention/dsa_backend.py:2412"),
    "SGLANG_DFLASH_PREFILL_REFILL_TARGET": ReadBy("0.5.14", "0.5.14", "speculative/dflash_utils.py:61"),
    "SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": ReadBy("0.5.14", "", "speculative/eagle_worker_v2.py:1145"),
    "SGLANG_ENABLE_SPLITKV_VERIFY": ReadBy("0.5.14", "", "layers/attention/triton_backend.py:153"),
    "SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH": ReadBy("0.5.16", "", "speculative/eagle_worker_v2.py:470"),
    "SGLANG_ENABLE_MTP_BOUNDARY_KV_FIX": ReadBy("0.5.16", "", "speculative/multi_layer_eagle_worker_v2.py:229"),
    "SGLANG_RAGGED_VERIFY_MODE": ReadBy("0.5.16", "", "model_executor/runner/decode_cuda_graph_runner.py:302"),
    f"{SPARSE}FAST_SAMPLING": ReadBy(  # environ.py:2258
        "0.5.16", "0.5.21", "speculative/dspark_components/dspark_draft.py:171", "it is always on"
    ),
    f"{SPARSE}FOLDED_SAMPLING": ReadBy(
        "0.5.17",
        "0.5.21",
        "speculative/dspark_components/dspark_draft_sampler.py:140",
        f"write {SPARSE}FOLDED_PROPOSAL=0 to keep it off, or remove it",  # environ.py:2265
    ),
    "SGLANG_SPEC_TP_SYNC": ReadBy("0.5.19", "", "speculative/spec_tp_sync.py:80"),
    "SGLANG_ENABLE_PP_SPEC": ReadBy(
        "0.5.21", "", "arg_groups/validation_hook.py:58", "no earlier release speculates over a pipeline"
    ),
    "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": ReadBy("0.5.21", "", "managers/scheduler_components/dp_attn.py:276"),
    f"{SPARSE}USE_GREEDY_DRAFT": ReadBy("0.5.22", "", "speculative/dspark_components/dspark_worker_v2.py:326"),
}


def ignored(server: Server) -> Iterator[tuple[str, str]]:
    """Path below the spec, and why the variable has no effect. Empty for a release newer than all known ones."""
    engine = server.engine
    for index, entry in enumerate(() if is_newer(engine.version) else engine.env):
        name = str(entry["name"])
        read = VARIABLES.get(NEWER + name.removeprefix(OLDER) if name.startswith(OLDER) else name)
        if read and not read.by(engine.version):
            those = f"{read.since} to {read.until} do" if read.until else f"{read.since} and later do"
            later = not read.until or is_in(engine.version, [[read.until]])
            instead = read.instead if later else "remove it"
            message = f"{name} is not read by SGLang {engine.version} ({those}): {instead}"
            yield f"engine.env[{index}].name", message


def _greedy(configuration: Configuration) -> Iterator[Refusal]:
    entry = variable(configuration.server, GREEDY) or {}
    drafts = any(candidate.algorithm == "NGRAM" for candidate in candidates(configuration))
    if drafts and VARIABLES[GREEDY].by(configuration.version) and str(entry.get("value", "")).lower() in YES:
        index = list(configuration.server.engine.env).index(entry)
        message = f"{entry['name']}: it takes the likeliest token even if a request samples; remove it"
        yield Refusal(path=f"engine.env[{index}]", message=message)


RULES = (
    EngineRule(
        id="variable-lossy",
        check=_greedy,
        reason="a faster arm would not write the baseline's text",
        source="speculative/ngram_info.py:440 of 0.5.13",
    ),
)
