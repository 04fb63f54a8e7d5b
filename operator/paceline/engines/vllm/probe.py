"""How a round reads vLLM: its configuration from the start log, acceptance and preemptions from its metrics.

Sources: vLLM 0.33.0 (`v1/engine/core.py:140`, `config/vllm.py:2809`, `config/speculative.py:2196`,
`v1/spec_decode/metrics.py:207`, `v1/metrics/loggers.py`, `entrypoints/openai/chat_completion/protocol.py:507`).

Nothing here needs VLLM_SERVER_DEV_MODE, so servers are measured exactly as they are served
(docs/decisions/0012-vllm-without-dev-mode.md).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.engines.probe import (
    Probe,
    ProbeError,
    Scrape,
    Speculation,
    Work,
    count_between,
    increase,
    json_object,
    samples,
    totals,
)
from paceline.engines.vllm.speculative import DEPTH

_VERSION = "/version"
_METRICS = "/metrics"
DRAFTS = "vllm:spec_decode_num_drafts_total"
DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
ACCEPTED_AT = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
PREEMPTIONS = "vllm:num_preemptions_total"
COUNTERS = {
    # Does not count requests whose client left, though the tokens below do.
    "requests": "vllm:request_success_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "cached_tokens": "vllm:prefix_cache_hits_total",
}
CACHE_CONFIG = "vllm:cache_config_info"
OF_THE_CACHE = ("block_size", "gpu_memory_utilization")
"""Labels of the cache's configuration that are missing in the start log."""

CONFIGURATION = re.compile(r"Initializing a V1 LLM engine \(v[^)]*\) with config: (?P<fields>.*)")
CACHE_TOKENS = "kv_cache_size_tokens"
CAPACITY = re.compile(r"\bKV cache size: (?P<tokens>\d[\d,]*) tokens")
"""`v1/core/kv_cache_utils.py:1131`: it follows the device (`GPU`, `CPU`, `XPU`, `GPU + host`), and releases differ in
the text after it."""
_ARGUMENTS = re.compile(r"non-default args: (?P<fields>.*)")
_DEPTHS = {
    "'num_speculative_tokens_per_batch_size': [": "schedule",
    "'enable_adaptive_verification': True": "adaptive",
}
DROPPED = "Disabling num_speculative_tokens_per_batch_size"
"""Warnings that vLLM drops the schedule and continues with a constant depth (`config/vllm.py:1103` and `:1123`)."""
_FIELD = re.compile(r"(?P<name>\w+)=(?P<value>.*)", re.DOTALL)
_WORDS: Mapping[str, Any] = {"None": None, "True": True, "False": False}
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def probe(_version: str) -> Probe:
    return Probe(
        pages=(_VERSION, _METRICS),
        reads_log=True,
        resolved=resolved,
        kv_tokens=kv_tokens,
        speculation=speculation,
        work=work,
        flush_path=None,
        adapter=lambda _, adapter: adapter,
        cuts_drafts=True,  # v1/core/sched/scheduler.py:2879
        body=body,
    )


def body(load: str) -> Mapping[str, Any]:
    """Its own salt keeps a load from finding other loads' prompts in the prefix cache."""
    return {"cache_salt": load}


def resolved(scrape: Scrape) -> Mapping[str, Any]:
    """The start log's configuration, flattened, plus the method and the draft tokens of the speculation.

    `draft_positions` counts the positions with counters in the metrics: the depth that really runs.
    """
    line = CONFIGURATION.search(scrape.log)
    if line is None:
        raise ProbeError("the server's log has no line 'Initializing a V1 LLM engine … with config: …'")
    configuration = outermost_fields(line["fields"])
    speculative = outermost_fields(
        configuration.pop("speculative_config", "").removeprefix("SpeculativeConfig(").removesuffix(")")
    )
    page = tuple(samples(scrape.pages[_METRICS]))
    cache = next((sample.labels for sample in page if sample.name == CACHE_CONFIG), {})
    return {
        "version": json_object(scrape.pages[_VERSION]).get("version", ""),
        **{name: _value(value) for name, value in configuration.items()},
        **{name: _scalar(cache[name]) for name in OF_THE_CACHE if name in cache},
        "method": _scalar(speculative.get("method", "None")),
        "num_spec_tokens": _scalar(speculative.get("num_spec_tokens", "None")),
        DEPTH: _depth(scrape.log),
        "draft_positions": len({sample.labels.get("position") for sample in page if sample.name == ACCEPTED_AT}),
    }


def _depth(log: str) -> str:
    """How a step's depth is chosen: "fixed", "schedule" or "adaptive". The engine's printed configuration omits that
    (`config/speculative.py:2196`); the arguments have it, and a warning reports a dropped schedule."""
    arguments = _ARGUMENTS.search(log)
    for mark, depth in _DEPTHS.items():
        if arguments and mark in arguments["fields"] and DROPPED not in log:
            return depth
    return "fixed"


def kv_tokens(scrape: Scrape) -> int | None:
    """Tokens that the cache holds: from its configuration in the metrics, which every device has, else from the start
    log. Of several engines, one engine's."""
    page = samples(scrape.pages[_METRICS])
    tokens = next((sample.labels.get(CACHE_TOKENS, "") for sample in page if sample.name == CACHE_CONFIG), "")
    if tokens.isdecimal():
        return int(tokens) or None
    line = CAPACITY.search(scrape.log)
    return int(line["tokens"].replace(",", "")) or None if line else None


def speculation(before: Scrape, after: Scrape) -> Speculation:
    """vLLM's counter of drafts counts verify calls, each of one request; a call yields the accepted tokens and one
    bonus token.

    Proposed tokens that adaptive verification skips still count as proposed: the device drops them
    (`v1/worker/gpu/spec_decode/adaptive_verification.py`), and the scheduler counts its plan.
    """
    then, now = totals(before.pages[_METRICS]), totals(after.pages[_METRICS])
    calls, proposed, accepted, preemptions = (
        increase(then.get(name), now.get(name)) for name in (DRAFTS, DRAFT_TOKENS, ACCEPTED, PREEMPTIONS)
    )
    return Speculation(
        accept_length=1 + accepted / calls if calls and accepted is not None else None,
        verify_calls=calls,
        retractions=preemptions,
        draft_tokens=proposed / calls if calls and proposed is not None else None,
        accepted_at=_accepted_at(before, after, calls, accepted),
    )


def _accepted_at(before: Scrape, after: Scrape, calls: int | None, accepted: int | None) -> tuple[float, ...]:
    """Acceptance by position; empty if the positions do not add up to the accepted tokens: then their counters mean
    something else."""
    then, now = _by_position(before), _by_position(after)
    grown = [increase(then.get(position), now[position]) for position in sorted(now)]
    counts = [count for count in grown if count is not None]
    if not calls or len(counts) < len(grown) or sum(counts) != accepted:
        return ()
    return tuple(count / calls for count in counts)


def _by_position(scrape: Scrape) -> Mapping[int, float]:
    """Accepted draft tokens since the start, summed over all engines; the first position is 0."""
    counts: dict[int, float] = {}
    for sample in samples(scrape.pages[_METRICS]):
        position = sample.labels.get("position", "")
        if sample.name == ACCEPTED_AT and position.isdecimal():
            counts[int(position)] = counts.get(int(position), 0.0) + sample.value
    return counts


def work(before: Scrape, after: Scrape) -> Work:
    return count_between(totals(before.pages[_METRICS]), totals(after.pages[_METRICS]), COUNTERS)


def outermost_fields(text: str) -> dict[str, str]:
    """`a=1, b=C(d=2, e='f')` → its outermost names with their values."""
    pairs = (_FIELD.fullmatch(part) for part in _split(text))
    return {pair["name"]: pair["value"] for pair in pairs if pair}


def _split(text: str) -> Iterator[str]:
    """Splits at commas outside brackets and quotes."""
    part, depth, quote, escaped = "", 0, "", False
    for letter in text:
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and not escaped
        elif letter in "'\"":
            quote = letter
        else:
            depth += BRACKETS.get(letter, 0)
        if letter == "," and not depth and not quote:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def _value(text: str) -> Any:
    """A scalar, or a dictionary of scalars with text keys."""
    if not (text.startswith("{'") and text.endswith("}")):
        return _scalar(text)
    pairs = (part.partition(": ") for part in _split(text[1:-1]))
    return {key.strip("'"): _value(value) for key, _, value in pairs}


def _scalar(text: str) -> Any:
    """A scalar in Python's notation; other text remains text."""
    if text in _WORDS:
        return _WORDS[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
