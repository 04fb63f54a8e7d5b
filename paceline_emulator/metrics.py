"""Prometheus text with SGLang's own names, types, labels and buckets: `data/metrics.json`, made from captures.

What nobody sets is there with 0, as on the real server; families that the real one shows only once they were used
(`onUse`) appear with their first value.
"""

import bisect
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

Labels = tuple[tuple[str, str], ...]
COMMON = {"engine_type": "unified", "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True, kw_only=True)
class Histogram:
    """Counts per bucket, not yet cumulated."""

    bounds: list[float]
    counts: list[int]
    total: float = 0.0

    def observe(self, value: float, times: int) -> None:
        """`value` in the unit of the metric's name, seen `times` times."""
        self.counts[bisect.bisect_left(self.bounds, value)] += times
        self.total += value * times


@dataclass(slots=True, kw_only=True)
class Metrics:
    """`model` is the served name; `extra` the user's --extra-metric-labels; `shown` which of SGLang's families are on
    the page (None: all)."""

    model: str
    extra: Mapping[str, str]
    shown: frozenset[str] | None = None
    families: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: dict[str, dict[Labels, float]] = field(default_factory=dict)
    histograms: dict[str, dict[Labels, Histogram]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        listed = json.loads((files(__package__) / "data" / "metrics.json").read_text())
        self.families = {family["name"]: family for family in listed}

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """A counter goes up (or a gauge by `amount`)."""
        series = self.values.setdefault(name, {})
        key = _key(labels)
        series[key] = series.get(key, 0.0) + amount

    def put(self, name: str, value: float, **labels: str) -> None:
        """A gauge, or a counter that somebody else counts."""
        self.values.setdefault(name, {})[_key(labels)] = float(value)

    def observe(self, name: str, value: float, times: int = 1, **labels: str) -> None:
        """Into a histogram, in its unit."""
        series = self.histograms.setdefault(name, {})
        key = _key(labels)
        if key not in series:
            bounds = [float(bound) for bound in self.families[name]["buckets"][:-1]]
            series[key] = Histogram(bounds=bounds, counts=[0] * (len(bounds) + 1))
        series[key].observe(value, times)

    def text(self) -> str:
        """The whole answer to GET /metrics."""
        lines: list[str] = []
        for name, family in self.families.items():
            if self.shown is not None and name.startswith("sglang:") and name not in self.shown:
                continue
            samples = list(self._samples(name, family))
            if samples:
                lines += [f"# HELP {name} {family['help']}", f"# TYPE {name} {family['type']}", *samples]
        return "\n".join(lines) + "\n"

    def _samples(self, name: str, family: dict[str, Any]) -> Iterator[str]:
        histogram = family["type"] == "histogram"
        for extras, labels, default in self._series(name, family):
            if histogram:
                yield from self._histogram(name, family, extras, labels)
            else:
                value = self.values.get(name, {}).get(extras)
                yield f"{name}{_braces(labels)} {default if value is None else repr(value)}"

    def _series(self, name: str, family: dict[str, Any]) -> Iterator[tuple[Labels, dict[str, str], str]]:
        """(what the caller labelled it with, all its labels, the value if nobody set one)"""
        if family["onUse"]:
            wanted = family["series"][0]["labels"]
            used: dict[Labels, Any] = {**self.values.get(name, {}), **self.histograms.get(name, {})}
            for extras in used:
                yield extras, self._labelled(wanted, dict(extras)), "0.0"
            return
        for series in family["series"]:
            fixed = series["fixed"]
            extras = _key({key: value for key, value in fixed.items() if key not in COMMON})
            yield extras, self._labelled(series["labels"], fixed), series.get("value", "0.0")

    def _labelled(self, wanted: list[str], given: Mapping[str, str]) -> dict[str, str]:
        offered = {**COMMON, "model_name": self.model, "pid": str(os.getpid()), **given}
        labels = {key: offered[key] for key in wanted if key in offered}
        return {**labels, **self.extra} if "engine_type" in labels else labels

    def _histogram(self, name: str, family: dict[str, Any], extras: Labels, labels: dict[str, str]) -> Iterator[str]:
        found = self.histograms.get(name, {}).get(extras)
        counts = found.counts if found else [0] * len(family["buckets"])
        yield f"{name}_sum{_braces(labels)} {found.total if found else 0.0}"
        seen = 0
        for bound, count in zip(family["buckets"], counts, strict=True):
            seen += count
            yield f"{name}_bucket{_braces({**labels, 'le': bound})} {float(seen)}"
        yield f"{name}_count{_braces(labels)} {float(seen)}"


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _braces(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{key}="{_escape(value)}"' for key, value in sorted(labels.items()))
    return "{" + inside + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
