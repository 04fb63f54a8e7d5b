"""An arm's `--speculative-config`, and the arguments of speculation that the server must report.

Sources: vLLM 0.33.0, `config/speculative.py` (keys), `v1/spec_decode/dynamic/utils.py` (the schedule's ranges).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import Arm, Server
from paceline.core.manifest import Scalar
from paceline.engines.command import model_path
from paceline.engines.vllm.keys import FLAG
from paceline.engines.vllm.keys import settings as of_candidate
from paceline.engines.vllm.rules import METHODS, draft_tokens, running_requests

DEPTH = "speculative_depth"
"""A resolved argument (`probe.resolved`): fixed, schedule or adaptive."""


def speculation(server: Server, arm: Arm) -> tuple[str, ...]:
    """The value of `--speculative-config`; empty for the baseline. Without a method vLLM guesses one from the path:
    `…/eagle-3-head` would be EAGLE."""
    if arm.draft is None:
        return ()
    settings: dict[str, Any] = {"method": method(arm)}
    if arm.draft.model:
        settings["model"] = model_path(arm.draft.model)
    if arm.custom:
        return FLAG, _json({**settings, **of_candidate(arm)})
    settings["num_speculative_tokens"] = draft_tokens(arm)
    if arm.ngram and arm.ngram.min_match:
        settings["prompt_lookup_min"] = arm.ngram.min_match
    if arm.ngram and arm.ngram.max_match:
        settings["prompt_lookup_max"] = arm.ngram.max_match
    if arm.adaptive:
        settings["enable_adaptive_verification"] = True
    if arm.depth_by_batch_size:
        settings["num_speculative_tokens_per_batch_size"] = list(_ranges(arm, running_requests(server)))
    return FLAG, _json({**settings, **of_candidate(arm)})


def expected(arm: Arm) -> Mapping[str, Scalar]:
    """Speculation's arguments in the start log and the metrics. For a custom algorithm its name, and its draft tokens
    if set."""
    if arm.custom:
        tokens = of_candidate(arm).get("num_speculative_tokens")
        counted = {"num_spec_tokens": tokens, "draft_positions": tokens} if isinstance(tokens, int) else {}
        return {"method": method(arm), **counted}
    tokens = draft_tokens(arm)
    settings = {"method": method(arm), "num_spec_tokens": tokens or None, "draft_positions": tokens}
    moves = "adaptive" if arm.adaptive else "schedule" if arm.depth_by_batch_size else ""
    return {**settings, DEPTH: moves} if moves else settings


def method(arm: Arm) -> str | None:
    """vLLM's name of the method."""
    if arm.draft is None:
        return None
    return arm.draft.name or METHODS[arm.draft.algorithm]


def _ranges(arm: Arm, largest: int) -> Iterator[list[int]]:
    """[first batch size, last, depth]: inclusive, from 1 and without gaps; vLLM uses the last depth for larger batches
    (`build_dynamic_sd_schedule_lookup`)."""
    starts = [depth.from_batch_size for depth in arm.depth_by_batch_size]
    ends = [*(start - 1 for start in starts[1:]), max(largest, starts[-1])]
    for depth, end in zip(arm.depth_by_batch_size, ends, strict=True):
        yield [depth.from_batch_size, end, depth.num_steps]


def _json(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, separators=(",", ":"))
