"""What SGLang can do that does not go with speculation, or with some of it: one row each.

Rows are of 0.5.23, in whose wheel they were read, unless `until` says that they end before a version.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paceline.engines.adapter import Refusal
from paceline.engines.release import Release, release
from paceline.engines.sglang.argv import draft_tokens
from paceline.engines.sglang.case import Candidate, Case, Rule, Written
from paceline.engines.sglang.variables import variable

ALL = frozenset({"EAGLE", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"})
NONE: frozenset[str] = frozenset()
CHANGED = "0.5.23"
"""The known release in which some of these were lifted."""


On = Callable[[Candidate, Written], bool]


def _is_set(_: Candidate, __: Written) -> bool:
    return True


def _above_one(_: Candidate, written: Written) -> bool:
    return written.value.isdecimal() and int(written.value) > 1


def _spreads_attention(one: Candidate, written: Written) -> bool:
    return written.name == "--enable-dp-attention" or _above_one(one, written)


def _with_host_cache(one: Candidate, written: Written) -> bool:
    return _above_one(one, written) and "--enable-hierarchical-cache" in one.written


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Flags of which one that is `on` leaves only these `algorithms`, with or without trees and adaptive depth.

    `lifted_by` is an environment variable of the server or another flag that makes the row void.
    """

    id: str
    flags: tuple[str, ...]
    on: On = _is_set
    algorithms: frozenset[str] = ALL
    trees: bool = True
    adaptive: bool = True
    since: str = "0.0"
    until: str | None = None
    lifted_by: str = ""
    reason: str
    source: str


ATTENTION_DP = ("--attn-dp-size", "--enable-dp-attention")

FEATURES = (
    Feature(
        id="pipeline-parallel-before",
        flags=("--pp-size", "--pipeline-parallel-size"),
        on=_above_one,
        algorithms=NONE,
        until=CHANGED,
        reason="AssertionError: pipeline parallelism is not compatible with speculative decoding",
        source="server_args.py:3980 of 0.5.6",
    ),
    Feature(
        id="pipeline-parallel",
        flags=("--pp-size",),
        on=_above_one,
        algorithms=frozenset({"EAGLE"}),
        adaptive=False,
        since=CHANGED,
        reason="AssertionError: only EAGLE with one layer, and no adaptive depth",
        source="validation_hook.py:119",
    ),
    Feature(
        id="pipeline-parallel-switch",
        flags=("--pp-size",),
        on=_above_one,
        algorithms=ALL - {"EAGLE"},
        since=CHANGED,
        lifted_by="SGLANG_ENABLE_PP_SPEC",
        reason="AssertionError: only on prefill nodes, or with SGLANG_ENABLE_PP_SPEC=1",
        source="validation_hook.py:119",
    ),
    Feature(
        id="lora-before",
        flags=("--enable-lora", "--lora-paths"),
        algorithms=frozenset({"NGRAM"}),
        since="0.5.6",
        until=CHANGED,
        reason="ValueError: LoRA is only compatible with NGRAM",
        source="server_args.py:4142 of 0.5.6",
    ),
    Feature(
        id="lora",
        flags=("--enable-lora", "--lora-paths"),
        algorithms=ALL - {"STANDALONE"},
        adaptive=False,
        since=CHANGED,
        reason="ValueError: LoRA is not compatible with STANDALONE, nor with adaptive depth",
        source="lora_hook.py:240",
    ),
    Feature(
        id="weight-cache",
        flags=("--weight-cache-mode",),
        on=lambda _, written: written.value != "off",
        algorithms=NONE,
        reason="ValueError: the weight cache has no draft's weights",
        source="model_path_hook.py:281, tried",
    ),
    Feature(
        id="flex-attention",
        flags=("--attention-backend", "--prefill-attention-backend", "--decode-attention-backend"),
        on=lambda _, written: written.value == "flex_attention",
        algorithms=NONE,
        reason="AssertionError: speculative decoding is not supported",
        source="attention_hook.py:161, tried",
    ),
    Feature(
        id="multi-layer",
        flags=("--enable-multi-layer-eagle",),
        algorithms=frozenset({"EAGLE"}),
        trees=False,
        adaptive=False,
        reason="the worker asserts a chain of EAGLE; adaptive depth becomes static, and only the log says so",
        source="multi_layer_eagle_worker_v2.py:150, adaptive_spec_params.py:85",
    ),
    Feature(
        id="attention-dp",
        flags=ATTENTION_DP,
        on=_spreads_attention,
        algorithms=ALL - {"STANDALONE", "NGRAM"},
        adaptive=False,
        reason="ValueError; adaptive depth becomes static, and only the log says so",
        source="speculative_hook.py:1078 and :1371, adaptive_spec_params.py:78",
    ),
    Feature(
        id="attention-dp-head",
        flags=ATTENTION_DP,
        on=_spreads_attention,
        algorithms=ALL - {"DFLASH", "DSPARK"},
        lifted_by="--enable-dp-lm-head",
        reason="ValueError: block drafts need --enable-dp-lm-head with attention DP",
        source="speculative_hook.py",
    ),
    Feature(
        id="two-batch-overlap",
        flags=("--enable-two-batch-overlap",),
        adaptive=False,
        reason="adaptive depth becomes static, and only the log says so",
        source="adaptive_spec_params.py:90, tried",
    ),
    Feature(
        id="pdmux",
        flags=("--enable-pdmux",),
        adaptive=False,
        reason="adaptive depth becomes static, and only the log says so",
        source="adaptive_spec_params.py:95, tried",
    ),
    Feature(
        id="hisparse",
        flags=("--enable-hisparse",),
        trees=False,
        adaptive=False,
        reason="ValueError: HiSparse speculates with chains of a fixed depth",
        source="hisparse_hook.py:118",
    ),
    Feature(
        id="unified-memory",
        flags=("--enable-unified-memory",),
        algorithms=ALL - {"STANDALONE", "NGRAM"},
        trees=False,
        reason="AssertionError: DSPARK, DFLASH, EAGLE and EAGLE3 only, and chains",
        source="kv_cache_hook.py:588",
    ),
    Feature(
        id="context-parallel-cache",
        flags=("--dcp-size",),
        on=_with_host_cache,
        algorithms=frozenset({"DSPARK"}),
        reason="ValueError: HiCache with --dcp-size above 1 supports DSPARK only",
        source="hicache_hook.py:141",
    ),
    Feature(
        id="watermark",
        flags=("--enable-watermark",),
        algorithms=frozenset({"NGRAM", "EAGLE", "EAGLE3"}),
        reason="ValueError: watermarks are written with NGRAM, EAGLE and EAGLE3 only",
        source="validation_hook.py:90",
    ),
    Feature(
        id="dwdp",
        flags=("--dwdp-size",),
        on=_above_one,
        algorithms=NONE,
        reason="AssertionError: DWDP does not support speculative decoding",
        source="parallel_hook.py:451",
    ),
)


def _goes_not_with(feature: Feature) -> Callable[[Case], Iterator[Refusal]]:
    def broken(case: Case) -> Iterator[Refusal]:
        if not _applies(feature, release(case.version) or release(CHANGED) or ()):
            return
        for one in case.candidates:
            found = next((one.written[flag] for flag in feature.flags if flag in one.written), None)
            if found is None or not feature.on(one, found) or _lifted(feature, one):
                continue
            if one.runs_as not in feature.algorithms:
                way_out = f"take {', '.join(sorted(feature.algorithms))}" if feature.algorithms else "remove it"
                yield found.refused(f"{found.given.name} does not go with {one.algorithm}: {_way(feature, way_out)}")
            elif one.branching > 1 and not feature.trees:
                yield one.refused(one.branches_at, f"{found.given.name} speculates with chains only: write 1")
            elif one.arm.adaptive and not feature.adaptive:
                yield one.refused("adaptive", f"{found.given.name} does not go with adaptive depth: name a tree")

    return broken


def _applies(feature: Feature, version: Release) -> bool:
    since, until = release(feature.since) or (), release(feature.until or "")
    return since <= version and (until is None or version < until)


def _lifted(feature: Feature, one: Candidate) -> bool:
    said = variable(one.case.server, feature.lifted_by) or {}
    return feature.lifted_by in one.written or said.get("value") == "1"


def _way(feature: Feature, way_out: str) -> str:
    if not feature.lifted_by:
        return way_out
    variable = feature.lifted_by.isupper()
    return f"set {feature.lifted_by}=1 in spec.engine.env" if variable else f"add {feature.lifted_by}, or {way_out}"


def _half_a_server(case: Case) -> Iterator[Refusal]:
    for one in case.shared:
        if one.name == "--disaggregation-mode" and one.value != "null":
            yield one.refused(f"{one.given.name}={one.value} is half a server, which cannot be measured; remove it")


def _snapshots(case: Case) -> Iterator[Refusal]:
    for one in case.candidates:
        found = one.written.get("--mamba-track-interval")
        width = draft_tokens(one.arm)
        if found and 0 < one.number("--mamba-track-interval") < width:
            yield found.refused(f"{found.given.name} must be at least the {width} draft tokens of {one.arm.name}")


RULES = (
    *(
        Rule(id=feature.id, broken=_goes_not_with(feature), reason=feature.reason, source=feature.source)
        for feature in FEATURES
    ),
    Rule(
        id="disaggregation",
        broken=_half_a_server,
        reason="a prefill or decode server answers no request by itself, so no arm could be measured",
        source="fields/disagg.py",
    ),
    Rule(
        id="mamba-track-interval",
        broken=_snapshots,
        reason="AssertionError: the interval is at least the draft tokens",
        source="mamba_hook.py:132",
    ),
)
