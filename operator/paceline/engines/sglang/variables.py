"""Variables of SGLang's speculation, and the releases that read them (found by name in the wheels' `srt/`)."""

from collections.abc import Iterator, Mapping

from paceline.core import Server
from paceline.engines.release import release

READ: Mapping[str, tuple[str, str]] = {
    "SGLANG_ENABLE_SPEC_V2": ("0.5.5", "0.5.20"),  # chosen by it to 0.5.13 (draft_rules), then only warned about
    "SGLANG_NGRAM_FORCE_GREEDY_VERIFY": ("0.5.6", ""),
    "SGLANG_SPEC_ENABLE_STRICT_FILTER_CHECK": ("0.5.7", "0.5.16"),
    "SGLANG_NSA_ENABLE_MTP_PRECOMPUTE_METADATA": ("0.5.7", "0.5.14"),
    "SGLANG_SPEC_NAN_DETECTION": ("0.5.10", "0.5.12"),
    "SGLANG_SPEC_OOB_DETECTION": ("0.5.10", "0.5.12"),
    "SGLANG_DSA_ENABLE_MTP_PRECOMPUTE_METADATA": ("0.5.13", "0.5.14"),
    "SGLANG_FIX_MTP_HC_HIDDEN": ("0.5.13", "0.5.17"),
    "SGLANG_DFLASH_PREFILL_REFILL_TARGET": ("0.5.14", "0.5.20"),
    "SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": ("0.5.14", ""),
    "SGLANG_ENABLE_MTP_BOUNDARY_KV_FIX": ("0.5.16", ""),
    "SGLANG_SPEC_TP_SYNC": ("0.5.19", ""),
    "SGLANG_ENABLE_PP_SPEC": ("0.5.21", ""),
    "SGLANG_ENABLE_DP_SPEC_PREFILL_COORDINATION": ("0.5.21", ""),
}
"""Variable → the first and the last release that has its name, from 0.5.5 on; "" for the newest, 0.5.23."""


def ignored(server: Server) -> Iterator[tuple[str, str]]:
    """Path below the spec, and why the variable does nothing."""
    at = release(server.engine.version)
    for index, variable in enumerate(server.engine.env):
        first, last = READ.get(str(variable["name"]), ("", ""))
        since, until = release(first), release(last)
        if at and since and (at < since or (until and at > until)):
            those = f"{first} to {last} do" if last else f"{first} and later do"
            message = f"{variable['name']} is not read by SGLang {server.engine.version} ({those}): remove it"
            yield f"engine.env[{index}].name", message
