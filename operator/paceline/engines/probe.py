"""How a round reads a running server: one row of pure functions per engine.

The round itself is the same for every engine: scrape, send a workload's requests, scrape again. This file and the
engines' own interpret the scrapes.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)(?: -?\d+)?$", re.ASCII | re.MULTILINE
)
"""A line of the text format; a timestamp after the value is ignored."""
_LABEL = re.compile(r'(?P<name>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)"', re.ASCII)


class ProbeError(ValueError):
    """A response or a log lacks the expected content; the text is for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The state of a server at one moment: the bodies of its answers by path, and its log since its start."""

    pages: Mapping[str, str]
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """A server's speculation on one workload; None: not reported, or not credible.

    `accept_length` is accepted draft tokens + 1 per verify call; `retractions` are requests that were preempted.
    `accepted_at` is, by position, the fraction of verify calls that accepted that draft token; the fractions add up to
    `accept_length` - 1. Empty: not reported.
    """

    accept_length: float | None = None
    verify_calls: int | None = None
    retractions: int | None = None
    draft_tokens: float | None = None
    """Mean draft tokens proposed per verify call."""
    accepted_at: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A server's counts during one workload; None: not reported. Negative: the counter restarted.

    `requests` are finished requests. vLLM also counts tokens of requests whose client left before the end.
    """

    requests: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens found in its prefix cache."""
    timed: int | None = None
    """Answers of more than one token with a recorded time per token; aborted ones have none."""

    @property
    def cache_hit_rate(self) -> float | None:
        """Prompt tokens found in the prefix cache, as a fraction of all; None if none were, or if it is not known."""
        cached, all_of_them = self.cached_tokens or 0, self.prompt_tokens or 0
        return cached / all_of_them if cached > 0 and all_of_them > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """`body` has request fields that add the histogram to the answer. `read` finds it there: how many verify calls
    accepted no draft token, how many one, and so on; empty if it is not there."""

    body: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One engine, seen from a round.

    Every scrape has `pages` and, if `reads_log`, the log. `resolved` returns the arguments that the server reports, and
    its `version`; `kv_tokens` the tokens that fit in its KV cache, None if not reported. `speculation` and `work`
    compare the scrapes before and after a workload. A POST to `flush_path` empties the cache (200: done; 400: not idle
    yet); if None, `body` keeps the loads apart.

    `body` returns fields for every request of a load, with a name that no other load of the same server process has.
    `unseen` are the fields of `Speculation` that this engine cannot show: no point is refused because they are missing,
    and the evidence names them. `cuts_drafts`: draft tokens that a grammar forbids are cut before they are counted, so
    a load of structured output may have no verify call.
    """

    pages: tuple[str, ...]
    resolved: Callable[[Scrape], Mapping[str, Any]]
    kv_tokens: Callable[[Scrape], int | None]
    speculation: Callable[[Scrape, Scrape], Speculation]
    flush_path: str | None
    work: Callable[[Scrape, Scrape], Work] = lambda *_: Work()
    body: Callable[[str], Mapping[str, Any]] = lambda _: {}
    whole: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a request for an unstreamed answer with its thinking, exactly as its tokens spell it."""
    own_temperature: float | None = None
    """The temperature of requests without one. None: from the model's generation_config.json."""
    adapter: Callable[[str, str], str] | None = None
    """(Served name, LoRA adapter) → the model of a request; None if not known for this release."""
    reads_log: bool = False
    draft_tokens: Callable[[str], float | None] | None = None
    """Reads the current number of proposed draft tokens from /metrics, if no counter adds them up. It is read while a
    load runs, for arms whose depth the engine chooses; None: `speculation` has the number."""
    unseen: tuple[str, ...] = ()
    cuts_drafts: bool = False
    histogram: Histogram | None = None
    """For an engine that reports acceptance by position in an answer; None: `speculation` reports it, or nothing does.
    """


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of /metrics."""

    name: str
    labels: Mapping[str, str]
    value: float


def samples(page: str) -> Iterator[Sample]:
    """Every sample of /metrics; a value that is not a number is NaN."""
    for sample in SAMPLE.finditer(page):
        labels = {label["name"]: label["value"] for label in _LABEL.finditer(sample["labels"] or "")}
        yield Sample(sample["name"], labels, _float(sample["value"]))


def totals(page: str) -> dict[str, float]:
    """Metric name → the sum over its label sets."""
    sums: dict[str, float] = {}
    for sample in samples(page):
        sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


def increase(before: float | None, after: float | None) -> int | None:
    """The increase of a counter, which may first appear in between. None if it is missing, fell or is not a number."""
    grown = math.nan if after is None else after - (before or 0.0)
    return round(grown) if math.isfinite(grown) and grown >= 0 else None


def count_between(before: Mapping[str, float], after: Mapping[str, float], names: Mapping[str, str]) -> Work:
    """Compares the totals of two scrapes of /metrics, with each field's counter. A counter appears with its first
    event; one that disappeared has restarted."""
    reported = {field: name for field, name in names.items() if name in before or name in after}
    grown = {field: after.get(name, 0.0) - before.get(name, 0.0) for field, name in reported.items()}
    return Work(**{field: round(number) for field, number in grown.items() if math.isfinite(number)})


def positive(value: Any) -> int | None:
    """A positive whole number; None for any other value."""
    return value if isinstance(value, int) and value > 0 else None


def json_object(page: str) -> Mapping[str, Any]:
    try:
        value = json.loads(page)
    except (ValueError, RecursionError) as error:
        raise ProbeError(f"the server did not answer with JSON: {page[:80]!r}") from error
    if not isinstance(value, dict):
        raise ProbeError(f"the server did not answer with an object: {page[:80]!r}")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
