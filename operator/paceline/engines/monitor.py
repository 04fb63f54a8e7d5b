"""How a serving pool is monitored: which counters of an engine's /metrics are read, and how they are added.

A round reads one idle server (`engines.probe`); production is monitored by the differences of counters between two
scrapes, so every row here is sums of counters, and two gauges.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce

Sum = Mapping[str, int]
"""Metric name → how many times its samples, summed over all label sets, are counted."""


class UnreadableError(ValueError):
    """A /metrics response lacks the required metrics; the message is for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A server at one moment. All but the last two are totals since its start.

    `accepted` are accepted draft tokens; with `verify_steps` they make the acceptance length: 1 + accepted / steps.
    Steps that the end of a request cut short may be left out. `moved` only shows activity: it grows with every token or
    request. `under_way` are running and waiting requests; `accept_length` is the engine's own for its last interval, if
    it does not count verify steps; 0 if unknown.
    """

    requests: float
    """Finished requests."""
    tokens: float
    """Tokens generated for finished requests, without the first token of each."""
    verify_steps: float
    accepted: float
    ttft_seconds: float
    first_tokens: float
    itl_seconds: float
    later_tokens: float
    moved: float
    under_way: float
    accept_length: float = 0.0


_LARGEST = 1e30
"""Maximum value of a sample: no server has counted so far, and the sum of a response full of them is still finite."""
TOTALS = (
    "requests", "tokens", "verify_steps", "accepted", "ttft_seconds", "first_tokens", "itl_seconds", "later_tokens",
    "moved",
)  # fmt: skip
"""The totals among the fields of `Counts`."""


@dataclass(frozen=True, kw_only=True)
class Monitor:
    """The metrics that an engine's release shows of its servers.

    `sums` is by field of `Counts`; missing fields are 0. `accept_length` is the gauge of a release that counts no
    verify steps. `cannot` says why this release cannot be monitored; "" if it can.
    """

    path: str = "/metrics"
    prefix: str = ""
    """Prefix of the engine's own metrics: a response without any of them is another program's."""
    sums: Mapping[str, Sum] = field(default_factory=dict)
    accept_length: str = ""
    prefill_seconds: float = 0.0
    """Seconds that a healthy server with requests may leave all counters unchanged, if the release does not count
    prefill."""
    part_label: str = ""
    """A label that splits the gauges of `under_way`; in their total it is empty or missing."""
    cannot: str = ""

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all metrics that are read."""
        gauge = (self.accept_length,) if self.accept_length else ()
        return frozenset((*gauge, *(name for each in self.sums.values() for name in each)))

    @cached_property
    def sample(self) -> re.Pattern[bytes]:
        """Matches a line with one of the names: the name without the prefix, the labels, and the value.

        It begins with a literal, for which the matcher searches at memory speed: a response has 700 other lines.
        """
        short = sorted((name.removeprefix(self.prefix).encode() for name in self.names), key=len, reverse=True)
        names = b"|".join(map(re.escape, short))
        return re.compile(rb"\n" + re.escape(self.prefix.encode()) + rb"(" + names + rb")(\{[^\n]*\})? (\S+)")

    @cached_property
    def part(self) -> re.Pattern[bytes]:
        """Matches the labels of a partial sample."""
        return re.compile(rb"[{,]" + re.escape(self.part_label.encode()) + rb'="[^"]')

    def counted(self, name: str, part: object) -> bool:
        """Whether a sample counts. `part` is its value of `part_label`, or whether it has one."""
        return not (part and self.part_label and name in self.sums.get("under_way", {}))

    def read(self, page: bytes) -> Counts:
        """Raises UnreadableError. A counter appears with its first event, so a missing one is 0."""
        if self.prefix.encode() not in page:
            raise UnreadableError(f"{self.path} has no line of {self.prefix}*")
        lines = self.sample.findall(b"\n" + page)
        named = ((self.prefix + name.decode(), labels, value) for name, labels, value in lines)
        return self.counts(
            (name, _float(value)) for name, labels, value in named if self.counted(name, self.part.search(labels))
        )

    def counts(self, samples: Iterable[tuple[str, float]]) -> Counts:
        """Counts from samples of the watched metrics, by name, in any order. Raises UnreadableError if a value is not a
        number."""
        totals, lengths = dict[str, float](), list[float]()
        for name, value in samples:
            if not abs(value) <= _LARGEST:
                raise UnreadableError(f"{self.path}: {name} is not a number")
            totals[name] = totals.get(name, 0.0) + value
            if name == self.accept_length and value >= 1:
                lengths.append(value)
        fields = {name: _sum(self.sums.get(name, {}), totals) for name in (*TOTALS, "under_way")}
        return Counts(**fields, accept_length=math.fsum(lengths) / len(lengths) if lengths else 0.0)


def added(*sums: Sum) -> Sum:
    return reduce(lambda one, other: {**one, **{name: one.get(name, 0) + n for name, n in other.items()}}, sums, {})


def less(one: Sum, *others: Sum) -> Sum:
    """`one` minus `others`."""
    return added(one, *({name: -n for name, n in other.items()} for other in others))


def _sum(sum: Sum, totals: Mapping[str, float]) -> float:
    return math.fsum(times * totals.get(name, 0.0) for name, times in sum.items())


def _float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
