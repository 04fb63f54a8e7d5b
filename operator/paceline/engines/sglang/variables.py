"""Environment variables of SGLang that change speculation: which releases read each, and what takes its place.

A release ignores what it does not read, without a word. Read in the wheels (dev/sglang/extract_variables.py), to which
tests hold the spans; sources are where the first and the last of them read it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from paceline.core import Server
from paceline.engines.adapter import Refusal
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.candidate import NEWER, OLDER, YES, candidates, variable
from paceline.engines.sglang.flags import is_in
from paceline.engines.sglang.versions import is_newer


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """`since` and `until` are the first and the last release that reads it; without `until` it goes on."""

    name: str
    since: str
    until: str = ""
    instead: str = "remove it"
    source: str

    def read_by(self, version: str) -> bool:
        return is_in(version, [[self.since, self.until] if self.until else [self.since]])


OVERLAPPING = "SGLANG_ENABLE_SPEC_V2"
GREEDY = "SGLANG_NGRAM_FORCE_GREEDY_VERIFY"
LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
VARIABLES = (
    Variable(
        name=OVERLAPPING,
        since="0.5.4.post1",
        until="0.5.13.post1",
        instead="later releases overlap by themselves, and --disable-overlap-schedule in spec.engine.args ends that",
        source="server_args.py:1436 of 0.5.4.post1; arg_groups/speculative_hook.py:291 of 0.5.13, :69 of 0.5.14",
    ),
    Variable(name=LONGER, since="0.4.5", source="configs/model_config.py:88 of 0.4.5, :1303 of 0.5.23"),
    Variable(
        name=GREEDY,
        since="0.5.5.post3",
        until="0.5.13.post1",
        source="speculative/ngram_info.py:417 of 0.5.6, :440 of 0.5.13",
    ),
    Variable(name="SGLANG_ENABLE_SPLITKV_VERIFY", since="0.5.14", source="layers/attention/triton_backend.py:153"),
    Variable(
        name="SGLANG_DISABLE_DRAFT_EXTEND_CUDA_GRAPH",
        since="0.5.16",
        source="speculative/eagle_worker_v2.py:470 of 0.5.16",
    ),
    Variable(
        name="SGLANG_RAGGED_VERIFY_MODE",
        since="0.5.16",
        source="model_executor/runner/decode_cuda_graph_runner.py:302 of 0.5.16",
    ),
    Variable(
        name="SGLANG_DSPARK_FAST_SAMPLING",
        since="0.5.16",
        until="0.5.21",
        instead="it is always on: environ.py:2258",
        source="speculative/dspark_components/dspark_draft.py:171 of 0.5.16",
    ),
    Variable(
        name="SGLANG_DSPARK_FOLDED_SAMPLING",
        since="0.5.17",
        until="0.5.21",
        instead="write SGLANG_DSPARK_FOLDED_PROPOSAL=0 to keep it off, or remove it: environ.py:2265",
        source="speculative/dspark_components/dspark_draft_sampler.py:140 of 0.5.17",
    ),
    Variable(name="SGLANG_SPEC_TP_SYNC", since="0.5.19", source="speculative/spec_tp_sync.py:80 of 0.5.19"),
    Variable(
        name="SGLANG_ENABLE_PP_SPEC",
        since="0.5.21",
        instead="no earlier release speculates over a pipeline",
        source="arg_groups/validation_hook.py:58 of 0.5.21",
    ),
    Variable(
        name="SGLANG_DSPARK_USE_GREEDY_DRAFT",
        since="0.5.22",
        source="speculative/dspark_components/dspark_worker_v2.py:326 of 0.5.22",
    ),
)
BY_NAME = {row.name: row for row in VARIABLES}


def ignored(server: Server) -> Iterator[Refusal]:
    """Of a newer release nothing is said."""
    engine = server.engine
    for index, entry in enumerate(() if is_newer(engine.version) else engine.env):
        name = str(entry["name"])
        row = BY_NAME.get(NEWER + name.removeprefix(OLDER) if name.startswith(OLDER) else name)
        if row and not row.read_by(engine.version):
            when = f"{row.since} to {row.until} read it" if row.until else f"{row.since} is the first that reads it"
            message = f"SGLang {engine.version} does not read {name} ({when}): {row.instead}"
            yield Refusal(path=f"engine.env[{index}]", message=message)


def _greedy(configuration: Configuration) -> Iterator[Refusal]:
    entry = variable(configuration.server, GREEDY) or {}
    drafts = any(candidate.algorithm == "NGRAM" for candidate in candidates(configuration))
    if drafts and BY_NAME[GREEDY].read_by(configuration.version) and str(entry.get("value", "")).lower() in YES:
        index = list(configuration.server.engine.env).index(entry)
        message = f"{entry['name']}: it takes the likeliest token where a request samples; remove it"
        yield Refusal(path=f"engine.env[{index}]", message=message)


RULES = (
    EngineRule(
        id="variable-lossy",
        check=_greedy,
        reason="a faster arm would write other text than the baseline",
        source="speculative/ngram_info.py:440 of 0.5.13",
    ),
)
