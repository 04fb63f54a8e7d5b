"""Features of SGLang that exclude speculation or parts of it: one row each.

Rows were read in the wheel of 0.5.23, and in those that `since` and `until` name: a row ends before its `until`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from paceline.engines.arguments import ParsedFlag
from paceline.engines.refusal import Refusal
from paceline.engines.release import Release, release
from paceline.engines.rules import Configuration, EngineRule
from paceline.engines.sglang.argv import verify_tokens
from paceline.engines.sglang.candidate import Candidate, candidates, variable

ALL = frozenset({"EAGLE", "EAGLE3", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"})
_NONE: frozenset[str] = frozenset()


IsOn = Callable[[Candidate, ParsedFlag], bool]


def _is_set(_: Candidate, __: ParsedFlag) -> bool:
    return True


def _above_one(_: Candidate, parsed: ParsedFlag) -> bool:
    return parsed.value.isdecimal() and int(parsed.value) > 1


def _spreads_attention(candidate: Candidate, parsed: ParsedFlag) -> bool:
    return parsed.name == "--enable-dp-attention" or _above_one(candidate, parsed)


def _with_host_cache(candidate: Candidate, parsed: ParsedFlag) -> bool:
    return _above_one(candidate, parsed) and "--enable-hierarchical-cache" in candidate.flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """If any of `flags` is on, only `algorithms` may be used; `trees` and `adaptive` say whether those are still
    allowed.

    `lifted_by` is an environment variable of the server or another flag that disables the row.
    """

    id: str
    flags: tuple[str, ...]
    on: IsOn = _is_set
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
        algorithms=_NONE,
        until="0.5.21",
        reason="AssertionError: pipeline parallelism is not compatible with speculative decoding",
        source="server_args.py:3980 of 0.5.6; validation_hook.py:83 of 0.5.20",
    ),
    Feature(
        id="pipeline-parallel",
        flags=("--pp-size",),
        on=_above_one,
        algorithms=frozenset({"EAGLE"}),
        adaptive=False,
        since="0.5.21",
        reason="AssertionError: only EAGLE with one layer, and no adaptive depth",
        source="validation_hook.py:119, :51 of 0.5.21",
    ),
    Feature(
        id="pipeline-parallel-switch",
        flags=("--pp-size",),
        on=_above_one,
        algorithms=ALL - {"EAGLE"},
        since="0.5.21",
        lifted_by="SGLANG_ENABLE_PP_SPEC",
        reason="AssertionError: only on prefill nodes, or with SGLANG_ENABLE_PP_SPEC=1",
        source="validation_hook.py:119",
    ),
    Feature(
        id="lora-before",
        flags=("--enable-lora", "--lora-paths"),
        algorithms=frozenset({"NGRAM"}),
        since="0.5.6",
        until="0.5.19",
        reason="ValueError: LoRA is only compatible with NGRAM",
        source="server_args.py:4142 of 0.5.6, :9373 of 0.5.18",
    ),
    Feature(
        id="lora",
        flags=("--enable-lora", "--lora-paths"),
        algorithms=ALL - {"STANDALONE"},
        adaptive=False,
        since="0.5.19",
        reason="ValueError: LoRA is not compatible with STANDALONE, nor with adaptive depth",
        source="lora_hook.py:240, :187 of 0.5.19",
    ),
    Feature(
        id="weight-cache",
        flags=("--weight-cache-mode",),
        on=lambda _, parsed: parsed.value != "off",
        algorithms=_NONE,
        reason="ValueError: the weight cache has no draft's weights",
        source="model_path_hook.py:281, tried",
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
        id="attention-dp-before",
        flags=ATTENTION_DP,
        on=_spreads_attention,
        algorithms=ALL - {"DFLASH"},
        until="0.5.23",
        reason="ValueError: DFLASH does not support DP attention",
        source="server_args.py:3592 of 0.5.12; speculative_hook.py:296 of 0.5.22",
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
        algorithms=_NONE,
        reason="AssertionError: DWDP does not support speculative decoding",
        source="parallel_hook.py:451",
    ),
)


def _excludes(feature: Feature) -> Callable[[Configuration], Iterator[Refusal]]:
    def check(configuration: Configuration) -> Iterator[Refusal]:
        if not _applies(feature, release(configuration.version) or ()):
            return
        for candidate in candidates(configuration):
            parsed = next((candidate.flags[flag] for flag in feature.flags if flag in candidate.flags), None)
            if parsed is None or not feature.on(candidate, parsed) or _is_lifted(feature, candidate):
                continue
            if candidate.runs_as not in feature.algorithms:
                way_out = f"take {', '.join(sorted(feature.algorithms))}" if feature.algorithms else "remove it"
                message = (
                    f"{parsed.written} cannot be combined with {candidate.algorithm}: {_way_out(feature, way_out)}"
                )
                yield parsed.refused(message)
            elif candidate.branching > 1 and not feature.trees:
                message = f"{parsed.written} speculates with chains only: write 1"
                yield candidate.refused(candidate.branching_field, message)
            elif not feature.adaptive and (field := candidate.arm.moving_depth):
                kind = "adaptive depth" if field == "adaptive" else "a schedule"
                yield candidate.refused(field, f"{parsed.written} cannot be combined with {kind}: name a tree")

    return check


def _applies(feature: Feature, version: Release) -> bool:
    since, until = release(feature.since) or (), release(feature.until or "")
    return since <= version and (until is None or version < until)


def _is_lifted(feature: Feature, candidate: Candidate) -> bool:
    entry = variable(candidate.configuration.server, feature.lifted_by) or {}
    return feature.lifted_by in candidate.flags or entry.get("value") == "1"


def _way_out(feature: Feature, otherwise: str) -> str:
    if not feature.lifted_by:
        return otherwise
    if feature.lifted_by.isupper():
        return f"set {feature.lifted_by}=1 in spec.engine.env"
    return f"add {feature.lifted_by}, or {otherwise}"


def _half_a_server(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.find("--disaggregation-mode"):
        if parsed.value != "null":
            yield parsed.refused(
                f"{parsed.written}={parsed.value} starts half of a server, which cannot be measured; remove it"
            )


def _mamba_interval(configuration: Configuration) -> Iterator[Refusal]:
    for candidate in candidates(configuration):
        parsed, tokens = candidate.flags.get("--mamba-track-interval"), verify_tokens(candidate.arm)
        if parsed and 0 < candidate.number("--mamba-track-interval") < tokens:
            yield parsed.refused(f"{parsed.written} must be at least the {tokens} draft tokens of {candidate.arm.name}")


RULES = (
    *(
        EngineRule(id=feature.id, check=_excludes(feature), reason=feature.reason, source=feature.source)
        for feature in FEATURES
    ),
    EngineRule(
        id="disaggregation",
        check=_half_a_server,
        reason="a prefill or decode server answers no request by itself, so no arm could be measured",
        source="fields/disagg.py",
    ),
    EngineRule(
        id="mamba-track-interval",
        check=_mamba_interval,
        reason="AssertionError: the interval must be at least the draft tokens",
        source="mamba_hook.py:132",
    ),
)
