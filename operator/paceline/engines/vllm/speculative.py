"""An arm's `--speculative-config`, and what the server must then say of its speculation.

Sources: vLLM 0.33.0, `config/speculative.py` (keys), `v1/spec_decode/dynamic/utils.py` (the schedule's ranges).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Arm, Server
from paceline.core.names import snapshot_path
from paceline.engines.adapter import Scalar
from paceline.engines.vllm import flags
from paceline.engines.vllm.rules import METHODS, proposed, running_requests

FLAG = "--speculative-config"
DEPTH = "speculative_depth"
"""Resolved (`probe.resolved`): what says how many tokens are proposed in a step."""


def speculation(server: Server, arm: Arm) -> tuple[str, ...]:
    """Nothing for the baseline. Without a method vLLM guesses one from the path: `…/eagle-3-head` would be EAGLE."""
    if arm.draft is None:
        return ()
    said: dict[str, Any] = {"method": method(arm)}
    if arm.draft.model:
        assert arm.draft.model.commit, "a head is rendered after the prefetch has pinned its commit"
        said["model"] = snapshot_path(arm.draft.model.source, arm.draft.model.commit)
    if arm.custom:
        return FLAG, _json({**said, **custom_settings(arm)})
    said["num_speculative_tokens"] = proposed(arm)
    if arm.ngram and arm.ngram.min_match:
        said["prompt_lookup_min"] = arm.ngram.min_match
    if arm.ngram and arm.ngram.max_match:
        said["prompt_lookup_max"] = arm.ngram.max_match
    if arm.adaptive:
        said["enable_adaptive_verification"] = True
    if arm.schedule:
        said["num_speculative_tokens_per_batch_size"] = list(_ranges(arm, running_requests(server)))
    return FLAG, _json(said)


def expected(arm: Arm) -> Mapping[str, Scalar]:
    """Of the start log and the metrics. Of an algorithm that is not known: its name, and how many tokens it proposes
    where that was said."""
    if arm.custom:
        tokens = custom_settings(arm).get("num_speculative_tokens")
        counted = {"num_spec_tokens": tokens, "draft_positions": tokens} if isinstance(tokens, int) else {}
        return {"method": method(arm), **counted}
    tokens = proposed(arm)
    said = {"method": method(arm), "num_spec_tokens": tokens or None, "draft_positions": tokens}
    moves = "adaptive" if arm.adaptive else "schedule" if arm.schedule else ""
    return {**said, DEPTH: moves} if moves else said


def method(arm: Arm) -> str | None:
    """As vLLM calls it."""
    if arm.draft is None:
        return None
    return arm.draft.name or METHODS[arm.draft.algorithm]


def custom_settings(arm: Arm) -> dict[str, Any]:
    """`--speculative-config.KEY=VALUE` as vLLM reads it: JSON where it is some, else text; dots lead further in."""
    settings: dict[str, Any] = {}
    for one in flags.given(arm.custom.args if arm.custom else ()):
        *outer, last = one.written.split(".")[1:] or [""]
        inner = settings
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = _read(one.value or "")
    return settings


def _ranges(arm: Arm, largest: int) -> Iterator[list[int]]:
    """Inclusive, from 1 without a gap; what is beyond the last goes on like it (`build_dynamic_sd_schedule_lookup`)."""
    starts = [depth.from_batch_size for depth in arm.schedule]
    ends = [*(start - 1 for start in starts[1:]), max(largest, starts[-1])]
    for depth, end in zip(arm.schedule, ends, strict=True):
        yield [depth.from_batch_size, end, depth.num_steps]


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(said: Mapping[str, Any]) -> str:
    return json.dumps(said, separators=(",", ":"))
